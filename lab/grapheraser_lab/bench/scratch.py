"""Training everything from scratch: the one time of each baseline that all tables divide by.

Our own engine, a sparse PyTorch loop (`bench.sparse`) and, where asked for, PyG on dense features;
processor time of one thread, a few epochs scaled to a hundred, the median of three repetitions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from grapheraser.datasets import load_dataset
from grapheraser.engines import ShardTask, TrainingConfig, resolve_engine
from grapheraser.graph import Graph
from grapheraser.models import GNNS, PRESETS, ModelSpec
from grapheraser.reports.wording import duration
from grapheraser_lab.bench.comparison import EPOCHS, pyg_scratch_seconds
from grapheraser_lab.bench.sparse import sparse_scratch_seconds
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.timing import median_of, processor_seconds, with_error

PRESET_NAMES = (*GNNS, *(f"{model}:paper" for model in GNNS))
_REPEATS = 3
RIVALS = {"ours": "our engine", "sparse": "sparse PyTorch", "pyg": "PyG, dense features"}


def run(
    datasets: Iterable[str] = ("cora", "citeseer", "pubmed", "cs", "physics"),
    models: Iterable[str] = PRESET_NAMES,
    *,
    measured: int = 10,
    dense: Iterable[str] = GNNS,
    dense_epochs: int = 1,
    kept: str | Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure every data set and model.

    Args:
        datasets: which data sets.
        models: presets.
        measured: epochs of our engine and of sparse PyTorch that are timed.
        dense: presets that PyG trains too.
        dense_epochs: epochs of PyG that are timed.
        kept: a report of before; what is not measured now stays as it is there.
        progress: told how far it is.

    Returns: a JSON-able report; of each row the medians, and ``runs`` with every repetition.
    """
    rows: list[dict[str, Any]] = []
    for name in datasets:
        graph = load_dataset(name)
        for model in models:
            progress(f"{name} {model}")
            spec = PRESETS[model]
            runs = {
                "ours": _engine_seconds(graph, spec, measured),
                "sparse": sparse_scratch_seconds(graph, spec, epochs=EPOCHS, measured=measured),
            }
            if model in dense:
                runs["pyg"] = pyg_scratch_seconds(graph, spec, measured=dense_epochs)
            medians = {rival: median_of(runs[rival])[0] for rival in RIVALS if rival in runs}
            rows.append({"dataset": name, "model": model, **medians, "runs": runs})
    if kept is not None:
        known = {(row["dataset"], row["model"]) for row in rows}
        old = json.loads(Path(kept).read_text())["rows"]
        rows += [row for row in old if (row["dataset"], row["model"]) not in known]
    return {
        "benchmark": "scratch",
        "epochs_measured": measured,
        "rows": rows,
    }


def _engine_seconds(graph: Graph, spec: ModelSpec, measured: int) -> list[float]:
    """Training all as one shard: what it takes to begin and the first epoch, and the others."""
    task = ShardTask(0, graph.training_graph, 0)
    few, more = TrainingConfig(spec, epochs=1), TrainingConfig(spec, epochs=1 + measured)
    engine = resolve_engine("auto", few, "cpu")
    engine.train(task, few)
    first = [processor_seconds(engine.train, task, few) for _ in range(_REPEATS)]
    start, _ = median_of(first)
    whole = [processor_seconds(engine.train, task, more) for _ in range(_REPEATS)]
    return [start + max(0.0, spent - start) * (EPOCHS - 1) / measured for spent in whole]


def markdown(report: dict[str, Any]) -> str:
    """One row for each data set and model."""
    rows = [
        (row["dataset"], row["model"], *(_told(row, rival) for rival in RIVALS))
        for row in report["rows"]
    ]
    return markdown_table(("data set", "model", *RIVALS.values()), rows)


def _told(row: Mapping[str, Any], rival: str) -> str:
    runs = row.get("runs", {}).get(rival)
    return duration(row.get(rival)) if runs is None else with_error(runs)
