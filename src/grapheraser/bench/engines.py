"""How long training a shard takes: the CPU engine beside the loop that a PyG user writes.

Both sides run in one process on one thread, on the same shards and for the same architectures and
epochs. Times are processor time, so a shared machine does little harm. PyG's side is `GCNConv` and
its like on dense features of all columns. Fitting all shards is measured whole for the engine, for
PyG on some of the shards and scaled, which the row says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grapheraser.bench.comparison import EPOCHS, geometric_mean, pyg_loop, shard_tasks
from grapheraser.datasets import default_shards, load_dataset
from grapheraser.environment import versions
from grapheraser.models import GNNS, PRESETS, ModelSpec
from grapheraser.reports.tables import markdown_table
from grapheraser.reports.wording import duration, plural
from grapheraser.training.cpu import train_shard, warm_up
from grapheraser.training.cpu.prepared import PreparedShard
from grapheraser.training.task import ShardTask, TrainingConfig

BAR, LEAST, BAR_ALL = 12.0, 5.0, 12.0
_ALL_SHARDS_OF = "physics"
_PYG_SHARDS = 3


def run(
    datasets: Iterable[str] = ("cora", "pubmed", "physics"),
    models: Iterable[str] = GNNS,
    *,
    partition: str = "metis",
    repeats: int = 5,
    root: str | Path | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure the median shard of every data set, and all shards of Physics, for every model.

    Returns: a JSON-able report; ``rows`` has one entry per data set and model, ``all_shards`` one
    per model, ``summary`` the geometric means and the bars.
    """
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    all_shards: list[dict[str, Any]] = []
    for model in models:
        warm_up(PRESETS[model])
    for name in datasets:
        tasks = shard_tasks(load_dataset(name, root), partition, default_shards(name), seed)
        tasks.sort(key=lambda task: (task.graph.num_nodes, task.shard))
        for model in models:
            progress(f"{name} {model}")
            rows.append({"dataset": name, **_one_shard(tasks, PRESETS[model], model, repeats)})
            if name == _ALL_SHARDS_OF:
                all_shards.append(_every_shard(tasks, PRESETS[model], model))
    return {
        "benchmark": "engines",
        "partition": partition,
        "epochs": EPOCHS,
        "threads": 1,
        "versions": versions(),
        "rows": rows,
        "all_shards": all_shards,
        "summary": _summary(rows, all_shards),
    }


def pyg_seconds(task: ShardTask, spec: ModelSpec) -> float:
    """Seconds of the PyG loop on one shard, after one epoch that pays for allocations."""
    train = pyg_loop(task.graph, spec)
    train(1)
    return _seconds(lambda: train(EPOCHS))


def _one_shard(
    tasks: Sequence[ShardTask], spec: ModelSpec, model: str, repeats: int
) -> dict[str, Any]:
    task, config = tasks[len(tasks) // 2], TrainingConfig(spec, EPOCHS)
    pyg, ours, loops = [], [], []
    for repeat in range(repeats):
        ours.append(_seconds(lambda: train_shard(task, config)))
        job = PreparedShard(task, spec, EPOCHS)
        loops.append(_seconds(job.run))
        if repeat < 2:
            pyg.append(pyg_seconds(task, spec))
    return {
        "model": model,
        "nodes": task.graph.num_nodes,
        "edges": task.graph.num_edges,
        "nonzeros": int(task.graph.x.nnz),
        "columns": len(task.columns(spec)),
        "pyg_seconds": min(pyg),
        "engine_seconds": float(np.median(ours)),
        "engine_best": min(ours),
        "epochs_seconds": min(loops),
        "speedup": min(pyg) / float(np.median(ours)),
    }


def _every_shard(tasks: Sequence[ShardTask], spec: ModelSpec, model: str) -> dict[str, Any]:
    config = TrainingConfig(spec, EPOCHS)
    ours = _seconds(lambda: [train_shard(task, config) for task in tasks])
    places = np.linspace(0, len(tasks) - 1, _PYG_SHARDS + 2).round().astype(int)[1:-1]
    pyg = float(np.mean([pyg_seconds(tasks[place], spec) for place in places])) * len(tasks)
    return {
        "model": model,
        "shards": len(tasks),
        "pyg_shards_measured": len(places),
        "pyg_seconds": pyg,
        "engine_seconds": ours,
        "speedup": pyg / ours,
    }


def _seconds(action: Callable[[], object]) -> float:
    """Processor time: with one thread that is wall time less what other processes took."""
    started = time.process_time()
    action()
    return time.process_time() - started


def _summary(
    rows: Sequence[dict[str, Any]], all_shards: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "one_shard": geometric_mean(row["speedup"] for row in rows),
        "least": min(row["speedup"] for row in rows),
        "all_shards": geometric_mean(row["speedup"] for row in all_shards) if all_shards else None,
        "bars": {"one_shard": BAR, "least": LEAST, "all_shards": BAR_ALL},
    }


def markdown(report: dict[str, Any]) -> str:
    """The report as tables."""
    rows = [
        (
            row["dataset"],
            row["model"],
            f"{row['nodes']:,}",
            f"{row['columns']:,}",
            duration(row["pyg_seconds"]),
            duration(row["engine_seconds"]),
            duration(row["epochs_seconds"]),
            f"{row['speedup']:.1f}x",
        )
        for row in report["rows"]
    ]
    summary = report["summary"]
    bars = f"bar {BAR:.0f}x; least {summary['least']:.1f}x, bar {LEAST:.0f}x"
    total = f"**{summary['one_shard']:.1f}x**"
    rows.append(("", f"geometric mean ({bars})", "", "", "", "", "", total))
    header = ("data set", "model", "nodes", "columns", "PyG loop", "CPU engine", "of it, epochs")
    tables = [markdown_table((*header, "speed-up"), rows)]
    if report["all_shards"]:
        every = [
            (
                f"{row['model']}, {plural(row['shards'], 'shard')}",
                duration(row["pyg_seconds"]),
                duration(row["engine_seconds"]),
                f"{row['speedup']:.1f}x",
            )
            for row in report["all_shards"]
        ]
        total = f"**{summary['all_shards']:.1f}x**"
        every.append((f"geometric mean (bar {BAR_ALL:.0f}x)", "", "", total))
        title = f"all shards of {_ALL_SHARDS_OF}"
        tables.append(markdown_table((title, "PyG loop *", "CPU engine", "speed-up"), every))
        tables.append(f"\\* {_PYG_SHARDS} shards measured and scaled to all.")
    return "\n\n".join(tables)
