"""How long training a shard takes: the CPU engine beside the loop that a PyG user writes.

Both sides run in one process on one thread, on the same shards and for the same architectures and
epochs; times are the process's own, so a shared machine does little harm. PyG's side is `GCNConv`
and its like on dense features of all columns. Fitting all shards is measured whole for the engine;
for PyG on some of the shards and scaled, which the row says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.datasets import default_shards, load_dataset
from grapheraser.environment import versions
from grapheraser.graph import Graph
from grapheraser.models import GNNS, PRESETS, ModelSpec
from grapheraser.partition import partition_graph
from grapheraser.seeding import derive
from grapheraser.training.cpu import train_shard, warm_up
from grapheraser.training.cpu.prepared import PreparedShard as Job
from grapheraser.training.task import ShardTask, TrainingConfig

BAR, LEAST, BAR_ALL = 12.0, 5.0, 12.0
EPOCHS = 100
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
    import torch

    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    all_shards: list[dict[str, Any]] = []
    for model in models:
        warm_up(PRESETS[model])
    for name in datasets:
        tasks = shard_tasks(load_dataset(name, root), partition, default_shards(name), seed)
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


def shard_tasks(graph: Graph, partition: str, num_shards: int, seed: int) -> list[ShardTask]:
    """The tasks of a fit, smallest shard first."""
    cut = partition_graph(graph, partition, num_shards=num_shards, seed=seed)
    training = graph.training_graph
    tasks = [
        ShardTask(int(k), training.subgraph(cut.members(int(k))), derive(seed, "train", int(k)))
        for k in cut.shard_ids
    ]
    return sorted(tasks, key=lambda task: (task.graph.num_nodes, task.shard))


def pyg_seconds(task: ShardTask, spec: ModelSpec) -> float:
    """Seconds of the plain PyG loop on one shard, after one epoch that pays for allocations."""
    import torch
    import torch.nn.functional as F

    from grapheraser.models.modules import build_module

    graph = task.graph
    x = torch.from_numpy(graph.x.toarray())
    edge_index = torch.from_numpy(graph.edge_index)
    y = torch.from_numpy(graph.y.copy())
    module = build_module(spec, graph.num_features, graph.num_classes).train()
    optimizer = torch.optim.Adam(module.parameters(), lr=spec.lr, weight_decay=spec.weight_decay)

    def train(epochs: int) -> None:
        for _ in range(epochs):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x, edge_index), y)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    train(1)
    return _seconds(lambda: train(EPOCHS))


def _one_shard(
    tasks: Sequence[ShardTask], spec: ModelSpec, model: str, repeats: int
) -> dict[str, Any]:
    task, config = tasks[len(tasks) // 2], TrainingConfig(spec, EPOCHS)
    pyg, ours, loops = [], [], []
    for repeat in range(repeats):
        ours.append(_seconds(lambda: train_shard(task, config)))
        job = Job(task, spec, EPOCHS)
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


def _geometric_mean(rows: Sequence[dict[str, Any]]) -> float | None:
    return float(np.exp(np.mean(np.log([row["speedup"] for row in rows])))) if rows else None


def _summary(
    rows: Sequence[dict[str, Any]], all_shards: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "one_shard": _geometric_mean(rows),
        "least": min(row["speedup"] for row in rows),
        "all_shards": _geometric_mean(all_shards),
        "bars": {"one_shard": BAR, "least": LEAST, "all_shards": BAR_ALL},
    }


def markdown(report: dict[str, Any]) -> str:
    """The report as tables."""
    lines = [
        "| data set | model | nodes | columns | PyG loop | CPU engine | of it, epochs | speed-up |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in report["rows"]:
        lines.append(
            f"| {row['dataset']} | {row['model']} | {row['nodes']} | {row['columns']:,} "
            f"| {row['pyg_seconds'] * 1000:,.0f} ms | {row['engine_seconds'] * 1000:.1f} ms "
            f"| {row['epochs_seconds'] * 1000:.1f} ms | {row['speedup']:.1f}x |"
        )
    summary = report["summary"]
    lines.append(
        f"| | geometric mean (bar {BAR:.0f}x; least {summary['least']:.1f}x, bar {LEAST:.0f}x) "
        f"| | | | | | **{summary['one_shard']:.1f}x** |"
    )
    if report["all_shards"]:
        lines += [
            "",
            f"| all shards of {_ALL_SHARDS_OF} | PyG loop * | CPU engine | speed-up |",
            "|---|---:|---:|---:|",
        ]
        for row in report["all_shards"]:
            lines.append(
                f"| {row['model']}, {row['shards']} shards | {row['pyg_seconds']:,.0f} s "
                f"| {row['engine_seconds']:.2f} s | {row['speedup']:.1f}x |"
            )
        lines.append(
            f"| geometric mean (bar {BAR_ALL:.0f}x) | | | **{summary['all_shards']:.1f}x** |"
        )
        lines += ["", f"\\* {_PYG_SHARDS} shards measured and scaled to all."]
    return "\n".join(lines)
