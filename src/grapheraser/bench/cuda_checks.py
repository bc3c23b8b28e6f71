"""Does the CUDA engine repeat its bits, and how near is it to the CPU engine?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grapheraser.bench.comparison import EPOCHS, shard_tasks
from grapheraser.datasets import load_dataset
from grapheraser.models import PRESETS, ModelSpec
from grapheraser.reports.tables import markdown_table
from grapheraser.training import cpu, cuda
from grapheraser.training.task import ShardTask, TrainingConfig

STACKS = (2, 7, 31)
_AGREEMENT = 12
# The gradient of a bias right before a batch norm is rounding errors alone.
_NO_GRADIENT = ("conv1.nn.2.bias", "conv2.nn.2.bias")

Progress = Callable[[str], None]


def run(
    *,
    root: str | Path | None = None,
    num_shards: int = 100,
    seed: int = 0,
    models: Iterable[str] = PRESETS,
    progress: Progress = lambda text: None,
) -> dict[str, Any]:
    """Bits of a shard alone, stacked and repeated; distance from the CPU engine's weights."""
    graph = load_dataset("physics", root)
    tasks = shard_tasks(graph, "blpa", num_shards, seed)
    determinism, distances = [], []
    for model in models:
        determinism.append({"model": model, **same_bits(tasks, PRESETS[model])})
        progress(f"bits: {determinism[-1]}")
        if ":" not in model:
            distances.append({"model": model, **agreement(tasks[:_AGREEMENT], PRESETS[model])})
            progress(f"cpu engine: {distances[-1]}")
    return {"determinism": determinism, "agreement": distances}


def same_bits(tasks: Sequence[ShardTask], spec: ModelSpec) -> dict[str, Any]:
    """Whether shards have the same bits alone, in stacks of several sizes and in a second run."""
    config = TrainingConfig(spec, EPOCHS)
    some = list(tasks[: max(STACKS)])
    alone = {task.shard: cuda.train_shard(task, config).digest for task in some[:7]}
    again = {task.shard: cuda.train_shard(task, config).digest for task in some[:7]}
    stacked = {}
    for size in STACKS:
        # Neighbours in another order, too.
        stack = some[:size] if size != STACKS[1] else some[:size][::-1]
        found = cuda.train_shards(stack, config)
        own = {task.shard: weights.digest for task, weights in zip(stack, found, strict=True)}
        stacked[str(size)] = all(own[k] == alone[k] for k in own if k in alone)
    return {"repeated": alone == again, "stacked": stacked}


def agreement(tasks: Sequence[ShardTask], spec: ModelSpec) -> dict[str, Any]:
    """Distance of both engines' weights from each other, with dropout, after all epochs.

    In float64 it shows whether both compute the same. In float32 training can amplify rounding
    (a unit whose sign is a matter of rounding), most of all gin's: each engine is held against the
    weights in float64, over several shards.
    """
    from grapheraser.training.cpu.prepared import PreparedShard
    from grapheraser.training.cuda.layout import layout_of
    from grapheraser.training.cuda.prepared import PreparedStack

    config = TrainingConfig(spec, EPOCHS)
    layout = layout_of(spec, tasks[0].graph.num_classes)
    job = PreparedStack(layout, tasks, EPOCHS, torch.device("cuda"), dtype=torch.float64)
    for _ in range(EPOCHS):
        job.epoch()
    exact = job.named(job.run.weights, job.run.theta)
    both, ours, theirs = [], [], []
    stacked = cuda.train_shards(tasks, config)
    for task, truth, weights in zip(tasks, exact, stacked, strict=True):
        other = PreparedShard(task, spec, EPOCHS, dtype=np.float64)
        other.run()
        both.append(_distance(other.named(other.weights.values, other.parameters.values), truth))
        ours.append(_distance(weights.tensors, truth))
        theirs.append(_distance(cpu.train_shard(task, config).tensors, truth))
    return {
        "shards": len(tasks),
        "float64_engines": max(both),
        "float32_cuda": _spread(ours),
        "float32_cpu": _spread(theirs),
    }


def _distance(found: Mapping[str, Any], truth: Mapping[str, Any]) -> float:
    """Largest relative distance of a tensor."""
    return max(
        float(np.linalg.norm(found[name].astype(float) - tensor.astype(float)))
        / max(float(np.linalg.norm(tensor.astype(float))), 1e-12)
        for name, tensor in truth.items()
        if name not in _NO_GRADIENT
    )


def _spread(distances: Sequence[float]) -> dict[str, float]:
    return {
        "median": float(np.median(distances)),
        "worst": max(distances),
        "above_1e-3": sum(distance > 1e-3 for distance in distances),
    }


def markdown(report: Mapping[str, Any]) -> str:
    """Both checks as tables."""
    return f"{_bits_table(report['determinism'])}\n\n{_distance_table(report['agreement'])}"


def _bits_table(rows: Iterable[Mapping[str, Any]]) -> str:
    word = {True: "same", False: "DIFFER"}
    return markdown_table(
        ("bits of a shard", "run twice", "stacked"),
        [
            (
                row["model"],
                word[row["repeated"]],
                ", ".join(f"{n}: {word[ok]}" for n, ok in row["stacked"].items()),
            )
            for row in rows
        ],
    )


def _distance_table(rows: Iterable[Mapping[str, Any]]) -> str:
    def told(side: Mapping[str, float], shards: int) -> str:
        return f"median {side['median']:.0e}, {side['above_1e-3']} of {shards} above 1e-3"

    sides = ("CUDA, float32 from float64", "CPU, float32 from float64")
    return markdown_table(
        ("distance of weights", "engines in float64", *sides),
        [
            (
                row["model"],
                f"{row['float64_engines']:.0e}",
                told(row["float32_cuda"], row["shards"]),
                told(row["float32_cpu"], row["shards"]),
            )
            for row in rows
        ],
    )
