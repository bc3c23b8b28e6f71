"""Training everything from scratch: the one time of each baseline that all tables divide by.

Our own engine, a sparse PyTorch loop (`bench.sparse`) and, where asked for, PyG on dense features;
processor time of one thread, a few epochs scaled to a hundred, the least of two repetitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from grapheraser.datasets import load_dataset
from grapheraser.engines import ShardTask, TrainingConfig, resolve_engine
from grapheraser.environment import versions
from grapheraser.models import GNNS, PRESETS
from grapheraser.reports.wording import duration
from grapheraser_lab.bench.comparison import EPOCHS, pyg_loop
from grapheraser_lab.bench.sparse import sparse_scratch_seconds
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.framework.cell import hardware

PRESET_NAMES = (*GNNS, *(f"{model}:paper" for model in GNNS))
RIVALS = {"ours": "our engine", "sparse": "sparse PyTorch", "pyg": "PyG, dense features"}


def run(
    datasets: Iterable[str] = ("cora", "physics"),
    models: Iterable[str] = PRESET_NAMES,
    *,
    measured: int = 10,
    dense_epochs: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure every data set and model.

    Args:
        datasets: which data sets.
        models: presets.
        measured: epochs of our engine and of sparse PyTorch that are timed.
        dense_epochs: epochs of PyG that are timed; 0 leaves it out.
        progress: told how far it is.
    """
    rows = []
    for name in datasets:
        graph = load_dataset(name)
        for model in models:
            progress(f"{name} {model}")
            spec = PRESETS[model]
            task = ShardTask(0, graph.training_graph, 0)
            few, more = TrainingConfig(spec, epochs=1), TrainingConfig(spec, epochs=1 + measured)
            engine = resolve_engine("auto", few, "cpu")
            engine.train(task, few)
            start, whole = (min(_spent(engine.train, task, c) for _ in "ab") for c in (few, more))
            row: dict[str, Any] = {"dataset": name, "model": model, "pyg": None}
            row["ours"] = start + max(0.0, whole - start) * (EPOCHS - 1) / measured
            row["sparse"] = sparse_scratch_seconds(graph, spec, epochs=EPOCHS, measured=measured)
            if dense_epochs:
                train = pyg_loop(graph.training_graph, spec)
                train(1)
                row["pyg"] = _spent(train, dense_epochs) * EPOCHS / dense_epochs
            rows.append(row)
    return {
        "benchmark": "scratch",
        "epochs_measured": measured,
        "versions": versions(),
        "hardware": hardware(),
        "rows": rows,
    }


def _spent(action: Callable[..., object], *arguments: Any) -> float:
    begun = time.process_time()
    action(*arguments)
    return time.process_time() - begun


def markdown(report: dict[str, Any]) -> str:
    """One row for each data set and model."""
    rows = [
        (row["dataset"], row["model"], *(duration(row[rival]) for rival in RIVALS))
        for row in report["rows"]
    ]
    return markdown_table(("data set", "model", *RIVALS.values()), rows)
