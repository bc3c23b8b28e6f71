"""The closed form beside tuned GNNs (`rivals.tuned_gnn`), on the same splits and test nodes.

The rival wants a GPU: `run` exports graphs and splits into a folder, and reads what the rival left
beside them. Both sides are scored by the same function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.aggregation.members import BEST
from grapheraser.datasets import load_dataset
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.nodes import GraphEraser
from grapheraser.nodes.metrics import of_classes
from grapheraser_lab.bench.public import published
from grapheraser_lab.bench.utility import OTHERS
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.framework import published as paper
from grapheraser_lab.rivals.tuned_gnn import GRID

# Of the training nodes, held out to choose the rival's setting and epoch.
_VALIDATION = 1 / 8
OURS = "closed-form"
STOPPED, REFITTED, COOLED = _SIDES = ("stopped", "refitted", "cooled")
_SCORES = ("f1", "macro_f1", "rarest_f1", "log_loss", "calibration_error")


def run(
    datasets: Iterable[str] = (*paper.DATASETS, *OTHERS),
    *,
    seeds: int = 3,
    keep: str | Path = "runs/tuned",
    since: str | Path | None = None,
    split: str = "random",
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Score both sides on every split that the rival was trained on.

    Args:
        datasets: which data sets.
        seeds: of the splits: 0, 1, 2, ... Of the public split, of the rival's weights.
        keep: a folder: ``data`` is exported into it, ``out`` is what the rival says.
        since: an earlier report, to go on from: what it has is not trained again.
        split: ``"random"``, or ``"public"`` for 20 training nodes a class.
        progress: told how far it is.
    """
    folder, rows = Path(keep), []
    earlier = json.loads(Path(since).read_text())["rows"] if since else []
    for row in earlier:
        _go_on(row, folder / "out" / f"{row['dataset']}-{row['seed']}.json")
    for name in datasets:
        export(name, seeds, folder / "data", split)
        for seed in range(seeds):
            said = folder / "out" / f"{name}-{seed}.json"
            if said.exists():
                progress(f"{name}, split {seed}")
                rows.append({"dataset": name, "seed": seed} | _scored(name, seed, split, said))
    if not rows:
        raise ParameterError(
            f"{folder / 'out'} has nothing of the rival.",
            hint=f"train it first: python lab/grapheraser_lab/rivals/tuned_gnn.py "
            f"{folder / 'data'} {folder / 'out'}",
        )
    return {"benchmark": "tuned", "split": split, "rows": rows}


def public(
    datasets: Iterable[str] = ("cora", "citeseer", "pubmed"),
    *,
    seeds: int = 3,
    keep: str | Path = "runs/tuned-public",
    since: str | Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """As `run`, on the public splits: labels of validation nodes choose, and teach nobody."""
    options: Any = {"keep": keep, "since": since, "split": "public", "progress": progress}
    return run(datasets, seeds=seeds, **options)


def export(name: str, seeds: int, folder: Path, split: str = "random") -> None:
    """Write a graph with its splits as the rival reads it, unless it is there."""
    file = folder / f"{name}.npz"
    if file.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    graph = _graph(name, 0, split)
    x = sp.csr_array(graph.x).astype(np.float32)
    arrays: dict[str, Any] = {
        "data": x.data,
        "indices": x.indices.astype(np.int32),
        "indptr": x.indptr.astype(np.int32),
        "shape": np.array(x.shape),
        "edges": graph.edges.T.astype(np.int32),
        "y": graph.y.astype(np.int32),
        "refit": split == "random",
    }
    for seed in range(seeds):
        graph = _graph(name, seed, split)
        parts = graph.train_nodes, graph.validation_nodes
        if split == "random":
            order = np.random.default_rng(seed).permutation(graph.train_nodes)
            held = int(_VALIDATION * len(order))
            parts = np.sort(order[held:]), np.sort(order[:held])
        else:
            arrays[f"seed-{seed}"] = 100 * seed
        named = {"train": parts[0], "validation": parts[1], "test": graph.test_nodes}
        arrays |= {f"{part}-{seed}": graph.positions(ids) for part, ids in named.items()}
    np.savez_compressed(file, **arrays)


def _graph(name: str, seed: int, split: str) -> Graph:
    return published(name) if split == "public" else load_dataset(name, split_seed=seed)


def _go_on(row: Mapping[str, Any], file: Path) -> None:
    """Tell the rival what an earlier report has of a split, unless there is more already.

    Of settings that were not chosen a report has only the number of them; they were tried in order.
    """
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    tried: dict[str, Any] = {str(number): None for number in range(row["settings"])}
    chosen = next(
        n for n, one in enumerate(GRID) if asdict(one).items() <= dict(row["setting"]).items()
    )
    scores = {side: row[side] for side in _SIDES if side in row}
    settings = tried | {str(chosen): row["setting"]}
    found = {"whole": REFITTED in row, "chosen": chosen, "settings": settings, "scores": scores}
    file.write_text(json.dumps(found))


def _scored(name: str, seed: int, split: str, file: Path) -> dict[str, Any]:
    graph, found = _graph(name, seed, split), json.loads(file.read_text())
    labels = graph.y[graph.positions(graph.test_nodes)]
    said, scores = file.with_suffix(".npz"), dict(found["scores"])
    for side, posteriors in (_rival(said) if said.exists() else {}).items():
        scores[side] = of_classes(labels, posteriors)
    return {
        "setting": found["settings"][str(found["chosen"])],
        "settings": len(found["settings"]),
        OURS: _ours(graph, seed, split),
        **scores,
    }


def _rival(file: Path) -> dict[str, NDArray[np.float64]]:
    """Return what the rival says of the test nodes: the stopped model, the refitted, the cooled."""
    with np.load(file) as found:
        logs = {side: found[side] for side in (STOPPED, REFITTED) if side in found}
        if STOPPED in found:
            logs[COOLED] = found[STOPPED] / float(found["temperature"])
        return {side: _posteriors(said) for side, said in logs.items()}


def _ours(graph: Graph, seed: int, split: str) -> dict[str, float]:
    context: dict[str, Any] = {"context": "all"} if split == "public" else {}
    return GraphEraser(OURS, members=BEST, seed=seed, **context).fit(graph).evaluate()


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
            for side in _SIDES
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
