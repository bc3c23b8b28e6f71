"""Whole graphs: accuracy over the ten published folds, and what fitting, asking, forgetting take.

`CollectionEraser` has no setting to choose here: its constants are the same for all collections,
and the weights of its members are learned from the training folds. Times are processor time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.datasets.load import data_root
from grapheraser.seeding import generator
from grapheraser_lab.figures.tables import filled
from grapheraser_lab.timing import processor_seconds

_SETS = ("mutag", "ptc", "enzymes", "proteins", "imdbbinary", "nci1", "tox21", "esol")
# Numbers of references for the curve of accuracy against cost.
_REFERENCES = (256, 1024, 4096)


def run(
    datasets: Iterable[str] = _SETS,
    *,
    sizes: Iterable[int] = (100_000, 1_000_000),
    requests: int = 40,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Score every collection, and time requests on NCI1 and on generated molecules."""
    folder = data_root() / "tasks" / "graphs"
    rows, chosen = [], list(datasets)
    for name in chosen:
        progress(name)
        rows.append({"dataset": name, **over_folds(folder / f"{name}.npz")})
    cost, curve = [], []
    if "nci1" in chosen:
        for references in _REFERENCES:
            progress(f"nci1, {references} references")
            scored = over_folds(folder / "nci1.npz", references=references, folds=range(3))
            made = ge.CollectionEraser(references=references)
            timed = _timed(made, ge.Collection.from_npz(folder / "nci1.npz"), requests)
            curve.append({"references": references, **scored, **timed})
        cost.append({"graphs": "nci1", **_timed(*_default(folder / "nci1.npz"), requests)})
    for size in sizes:
        progress(f"{size} generated molecules")
        cost.append(
            {"graphs": str(size), **_timed(ge.CollectionEraser(), generated(size), requests)}
        )
    return {
        "benchmark": "graphs",
        "rows": rows,
        "cost": cost,
        "curve": curve,
    }


def markdown(report: dict[str, Any]) -> str:
    """The report as tables."""
    timed = "{forget:ms} | {forget_p90:ms} | {predict:ms}"
    names = "forget one | slowest tenth | predict one"
    words = {"ms": lambda seconds: f"{1000 * seconds:.1f} ms"}
    return "\n\n".join(
        (
            filled(
                "collection | score | mean | standard error",
                "{dataset} | {score} | {mean:.3f} | {error:.3f}",
                report["rows"],
            ),
            filled(
                f"graphs | fit | {names}",
                f"{{graphs}} | {{fit:.1f}} s | {timed}",
                report["cost"],
                words=words,
            ),
            filled(
                f"references | accuracy | {names}",
                f"{{references}} | {{mean:.3f}} | {timed}",
                report["curve"],
                words=words,
            ),
        )
    )


def _default(path: Path) -> tuple[ge.CollectionEraser, ge.Collection]:
    return ge.CollectionEraser(), ge.Collection.from_npz(path)


def over_folds(
    path: Path, references: int = 8192, folds: Iterable[int] = range(10)
) -> dict[str, Any]:
    """Fit on all but each of some folds, and score that one."""
    with np.load(path) as arrays:
        fold, y = arrays["fold"], arrays["y"]
    found = []
    for k in folds:
        tested = np.flatnonzero(fold == k)
        collection = ge.Collection.from_npz(path, test=tested)
        eraser = ge.CollectionEraser(references=references).fit(collection)
        if y.ndim == 2:
            found.append(_mean_auc(y[tested], eraser.predict_proba(tested)))
        else:
            found.append(eraser.score())
    score = "mean AUC" if y.ndim == 2 else "R2" if y.dtype.kind == "f" else "accuracy"
    error = float(np.std(found, ddof=1) / np.sqrt(len(found)))
    return {"score": score, "mean": float(np.mean(found)), "error": error, "folds": found}


def _mean_auc(y: NDArray[Any], likely: NDArray[Any]) -> float:
    """Mean over the targets of the share of pairs in the right order."""
    found = []
    for known, said in zip(y.T, likely.T, strict=True):
        ones, zeros = said[known == 1], np.sort(said[known == 0])
        below = np.searchsorted(zeros, ones, "left") + np.searchsorted(zeros, ones, "right")
        found.append(below.mean() / 2 / len(zeros))
    return float(np.mean(found))


def _timed(eraser: ge.CollectionEraser, collection: ge.Collection, requests: int) -> dict[str, Any]:
    fit = processor_seconds(eraser.fit, collection)
    some = generator(0, "bench", "graphs").permutation(collection.train_graphs)
    some = some[: 2 * requests + 3].tolist()
    gone, asked = some[: requests + 3], some[requests + 3 :]
    forget = [processor_seconds(eraser.unlearn, ge.Graphs([name])) for name in gone]
    forget = forget[3:]  # what is made once is not counted
    eraser.predict(some[-1:])
    predict = [processor_seconds(eraser.predict, [name]) for name in asked]
    return {
        "fit": fit,
        "forget": float(np.median(forget)),
        "forget_p90": float(np.percentile(forget, 90)),
        "predict": float(np.median(predict)),
    }


def generated(count: int) -> ge.Collection:
    """Generate graphs like molecules: trees of 12 to 30 atoms with a few rings, two classes."""
    draw = generator(count, "bench", "graphs", "generated")
    sizes = draw.integers(12, 31, count)
    offset = np.append(0, np.cumsum(sizes))
    owner = np.repeat(np.arange(count), sizes)
    rank = np.arange(offset[-1]) - offset[owner]
    before = np.maximum(rank - 1 - draw.integers(0, 3, len(rank)), 0) + offset[owner]
    tree = np.column_stack([before, np.arange(len(rank))])[rank > 0]
    closing = (rank >= 5) & (draw.random(len(rank)) < 0.08)
    rings = np.column_stack([np.arange(len(rank)) - 5, np.arange(len(rank))])[closing]
    y = draw.integers(0, 2, count)
    labels = draw.choice([6, 7, 8, 16], len(rank), p=[0.72, 0.12, 0.14, 0.02])
    labels[(draw.random(len(rank)) < 0.06) & (y[owner] == 1)] = 9
    edges = np.unique(np.concatenate([tree, rings]), axis=0)
    return ge.Collection.from_arrays(offset, edges, y, node_label=labels, num_classes=2)
