"""The closed form beside tuned GNNs (`rivals.tuned_gnn`), on the same splits and test nodes.

The rival wants a GPU: `run` exports graphs and splits into a folder, and reads what the rival left
beside them. Both sides are scored by the same function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.datasets import load_dataset
from grapheraser.environment import versions
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.nodes import GraphEraser
from grapheraser.nodes.metrics import of_classes
from grapheraser_lab.bench.utility import OTHERS
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.framework import published as paper

# Of the training nodes, held out to choose the rival's setting and epoch.
_VALIDATION = 1 / 8
OURS, STOPPED, REFITTED = "closed-form", "stopped", "refitted"
_MEMBERS = ["words", "labels", "edges", "interactions", "features"]
_SCORES = ("f1", "macro_f1", "rarest_f1", "log_loss", "calibration_error")


def run(
    datasets: Iterable[str] = (*paper.DATASETS, *OTHERS),
    *,
    seeds: int = 3,
    keep: str | Path = "runs/tuned",
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Score both sides on every split that the rival was trained on.

    Args:
        datasets: which data sets.
        seeds: of the splits: 0, 1, 2, ...
        keep: a folder: ``data`` is exported into it, ``out`` is what the rival says.
        progress: told how far it is.
    """
    folder, rows = Path(keep), []
    for name in datasets:
        export(name, seeds, folder / "data")
        for seed in range(seeds):
            said = folder / "out" / f"{name}-{seed}.npz"
            if said.exists():
                progress(f"{name}, split {seed}")
                rows.append({"dataset": name, "seed": seed} | _scored(name, seed, said))
    if not rows:
        raise ParameterError(
            f"{folder / 'out'} has nothing of the rival.",
            hint=f"train it first: python lab/grapheraser_lab/rivals/tuned_gnn.py "
            f"{folder / 'data'} {folder / 'out'}",
        )
    return {"benchmark": "tuned", "versions": versions(), "rows": rows}


def export(name: str, seeds: int, folder: Path) -> None:
    """Write a graph with its splits as the rival reads it, unless it is there."""
    file = folder / f"{name}.npz"
    if file.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    graph = load_dataset(name)
    x = sp.csr_array(graph.x).astype(np.float32)
    arrays: dict[str, Any] = {
        "data": x.data,
        "indices": x.indices.astype(np.int32),
        "indptr": x.indptr.astype(np.int32),
        "shape": np.array(x.shape),
        "edges": graph.edges.T.astype(np.int32),
        "y": graph.y.astype(np.int32),
    }
    for seed in range(seeds):
        split = load_dataset(name, split_seed=seed)
        order = np.random.default_rng(seed).permutation(split.positions(split.train_nodes))
        held = int(_VALIDATION * len(order))
        arrays[f"validation-{seed}"] = np.sort(order[:held])
        arrays[f"train-{seed}"] = np.sort(order[held:])
        arrays[f"test-{seed}"] = split.positions(split.test_nodes)
    np.savez_compressed(file, **arrays)


def _scored(name: str, seed: int, said: Path) -> dict[str, Any]:
    graph = load_dataset(name, split_seed=seed)
    labels = graph.y[graph.positions(graph.test_nodes)]
    chosen = json.loads(said.with_suffix(".json").read_text())
    with np.load(said) as found:
        rival = {side: _posteriors(found[side]) for side in (STOPPED, REFITTED) if side in found}
        cooled = _posteriors(found[STOPPED] / float(found["temperature"]))
    return {
        "setting": chosen["settings"][chosen["chosen"]],
        "settings": len(chosen["settings"]),
        OURS: _ours(graph, seed),
        **{side: of_classes(labels, posteriors) for side, posteriors in rival.items()},
        "cooled": of_classes(labels, cooled),
    }


def _ours(graph: Graph, seed: int) -> dict[str, float]:
    return GraphEraser(OURS, members=_MEMBERS, seed=seed).fit(graph).evaluate()


def _posteriors(logs: NDArray[np.floating]) -> NDArray[np.float64]:
    powers = np.exp(logs.astype(np.float64) - logs.astype(np.float64).max(axis=1, keepdims=True))
    posteriors: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return posteriors


# -- reading the rows ---------------------------------------------------------------------------


def means(report: Mapping[str, Any], score: str) -> dict[str, tuple[list[float], list[float]]]:
    """Return our and the rival's scores by data set, split by split.

    The rival's are those of the setting that was stopped, or retrained on all training nodes:
    whichever is better on the test nodes of the graph, in its favour.
    """
    found = {}
    for name in dict.fromkeys(row["dataset"] for row in report["rows"]):
        rows = [row for row in report["rows"] if row["dataset"] == name]
        sides = [
            [row[side][score] for row in rows]
            for side in (STOPPED, REFITTED, "cooled")
            if all(side in row for row in rows)
        ]
        best = (min if score in _SCORES[3:] else max)(sides, key=np.mean)
        found[name] = [row[OURS][score] for row in rows], best
    return found


def ratios(report: Mapping[str, Any], score: str = "f1") -> dict[str, float]:
    """Return our mean over the rival's, by data set."""
    return {
        name: float(np.mean(ours) / np.mean(theirs))
        for name, (ours, theirs) in means(report, score).items()
    }


def markdown(report: Mapping[str, Any]) -> str:
    """Both sides by data set with standard errors, and what is kept on average."""
    found = {score: means(report, score) for score in _SCORES}
    rows = [
        (
            name,
            str(len(found["f1"][name][0])),
            *(_both(*found[score][name]) for score in _SCORES),
            f"{ratio:.3f}",
        )
        for name, ratio in ratios(report).items()
    ]
    told = [
        f"{title}: mean {np.mean(kept):.3f}, least {min(kept):.3f}."
        for title, score in (("Micro F1 over the tuned GNN's", "f1"), ("Macro F1", "macro_f1"))
        for kept in [list(ratios(report, score).values())]
    ]
    losses = found["log_loss"].values()
    better = sum(np.mean(ours) <= np.mean(theirs) for ours, theirs in losses)
    told.append(f"Log loss is no worse on {better} of {len(losses)} graphs.")
    heads = ("data", "splits", "F1", "macro F1", "rarest", "log loss", "calibration", "ratio")
    note = "Each cell: the closed form ± standard error, then the tuned GNN."
    return "\n\n".join([markdown_table(heads, rows), note, " ".join(told)])


def _both(ours: list[float], theirs: list[float]) -> str:
    return f"{_spread(ours)}, {_spread(theirs)}"


def _spread(values: list[float]) -> str:
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{np.mean(values):.3f} ± {error:.3f}"
