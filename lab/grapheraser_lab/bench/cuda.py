"""How long training and unlearning take on one GPU: the CUDA engine beside a PyG loop there.

Both sides run in one process on the same GPU, on the same shards of Physics and for the same
architectures and epochs. PyG's side is the bare loop: its data are on the device and its module is
built before the clock starts. The engine's side is everything from a task on the host to weights
on the host; unlearning starts even earlier, at the request. Fitting all shards is measured whole
for the engine, for PyG on a few of the shards and scaled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grapheraser.datasets import load_dataset
from grapheraser.engines import cpu, cuda
from grapheraser.engines.task import ShardTask, ShardWeights, TrainingConfig
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph, Nodes
from grapheraser.models import GNNS, PRESETS, ModelSpec
from grapheraser.reports.wording import duration
from grapheraser.seeding import generator
from grapheraser_lab.bench.comparison import EPOCHS, geometric_mean, pyg_loop, shard_tasks
from grapheraser_lab.figures.tables import markdown_table

BARS = {"one_shard": 15.0, "all_shards": 100.0, "unlearning": 20.0}
_PYG_SHARDS = 4
_REQUESTS = 10
# Copying memory on an H200 moves about this many bytes in a second, counting both directions.
_BANDWIDTH = 4.3e12

Progress = Callable[[str], None]


def run(
    *,
    root: str | Path | None = None,
    num_shards: int = 100,
    partition: str = "blpa",
    seed: int = 0,
    models: Iterable[str] = GNNS,
    progress: Progress = lambda text: None,
) -> dict[str, Any]:
    """Measure everything; returns a JSON-able report."""
    if not torch.cuda.is_available():
        raise ParameterError(
            "benchmark 'cuda' needs a GPU that PyTorch can use (found none).",
            hint="'engines' and 'cost' measure the engine for the processor.",
        )
    graph = load_dataset("physics", root)
    tasks = shard_tasks(graph, partition, num_shards, seed)
    report: dict[str, Any] = {
        "benchmark": "cuda",
        "device": torch.cuda.get_device_name(),
        "versions": {"torch": torch.__version__, "cuda": torch.version.cuda},
        "dataset": "physics",
        "partition": partition,
        "shards": num_shards,
        "epochs": EPOCHS,
        "bars": BARS,
        "one_shard": [],
        "all_shards": [],
        "unlearning": [],
    }
    for model in models:
        spec = PRESETS[model]
        started = time.perf_counter()
        cuda.warm_up(spec, graph.num_classes)
        warm = time.perf_counter() - started
        progress(f"{model}: kernels ready after {duration(warm)}")
        report["one_shard"].append({"model": model, "warm_up": warm, **one_shard(tasks, spec)})
        progress(f"one shard: {report['one_shard'][-1]}")
        report["all_shards"].append({"model": model, **all_shards(tasks, spec)})
        progress(f"all shards: {report['all_shards'][-1]}")
        report["unlearning"].append({"model": model, **unlearning(graph, tasks, spec)})
        progress(f"unlearning: {report['unlearning'][-1]}")
    report["summary"] = {
        name: geometric_mean(row["speedup"] for row in report[name]) for name in BARS
    }
    return report | checks(root=root, num_shards=num_shards, seed=seed, progress=progress)


def one_shard(tasks: Sequence[ShardTask], spec: ModelSpec, repeats: int = 7) -> dict[str, Any]:
    """Retraining the shard of median size, task to weights, and where the time goes."""
    from grapheraser.engines.cuda.layout import layout_of
    from grapheraser.engines.cuda.train import PreparedStack

    task = sorted(tasks, key=lambda task: task.graph.num_nodes)[len(tasks) // 2]
    config = TrainingConfig(spec, EPOCHS)
    ours = [_seconds(lambda: cuda.train_shard(task, config)) for _ in range(repeats)]
    layout, parts = layout_of(spec, task.graph.num_classes), []
    for _ in range(repeats):
        begun = time.perf_counter()
        job = PreparedStack(layout, [task], EPOCHS, torch.device("cuda"))
        torch.cuda.synchronize()
        ready = time.perf_counter()
        job.train()
        trained = time.perf_counter()
        job.weights()
        parts.append([ready - begun, trained - ready, time.perf_counter() - trained])
    prepare, train, read = np.median(parts, axis=0)
    kernels = kernel_microseconds(job.epoch)
    pyg = min(pyg_seconds(task.graph, spec) for _ in range(2))
    return {
        "nodes": task.graph.num_nodes,
        "edges": task.graph.num_edges,
        "columns": len(task.columns(spec)),
        "pyg_seconds": pyg,
        "engine_seconds": float(np.median(ours)),
        "engine_best": min(ours),
        "prepare_seconds": float(prepare),
        "train_seconds": float(train),
        "read_seconds": float(read),
        "floor_seconds": _floor([task], spec),
        "kernel_microseconds": kernels,
        "speedup": pyg / float(np.median(ours)),
    }


def all_shards(tasks: Sequence[ShardTask], spec: ModelSpec, repeats: int = 3) -> dict[str, Any]:
    """Training every shard in one stack against the loop over them."""
    from grapheraser.engines.cuda.layout import layout_of
    from grapheraser.engines.cuda.train import PreparedStack

    config = TrainingConfig(spec, EPOCHS)
    cuda.train_shards(tasks, config)
    ours = [_seconds(lambda: cuda.train_shards(tasks, config)) for _ in range(repeats)]
    job = PreparedStack(
        layout_of(spec, tasks[0].graph.num_classes), tasks, EPOCHS, torch.device("cuda")
    )
    torch.cuda.synchronize()
    train = _seconds(job.train)
    read = _seconds(job.weights)
    places = np.linspace(0, len(tasks) - 1, _PYG_SHARDS).round().astype(int)
    some = [pyg_seconds(tasks[place].graph, spec) for place in places]
    kernels = kernel_microseconds(job.epoch)
    pyg = float(np.mean(some)) * len(tasks)
    return {
        "shards": len(tasks),
        "pyg_shards_measured": len(some),
        "pyg_seconds": pyg,
        "engine_seconds": float(np.median(ours)),
        "train_seconds": train,
        "read_seconds": read,
        "floor_seconds": _floor(tasks, spec),
        "kernel_microseconds": kernels,
        "speedup": pyg / float(np.median(ours)),
    }


def unlearning(graph: Graph, tasks: Sequence[ShardTask], spec: ModelSpec) -> dict[str, Any]:
    """Single-node requests, from the request to the retrained weights, against from scratch."""
    config = TrainingConfig(spec, EPOCHS)
    chosen = generator(0, "requests").choice(graph.train_nodes, _REQUESTS, replace=False)
    owner = {node: task for task in tasks for node in task.graph.ids.tolist()}

    def forget(node: int) -> ShardWeights:
        task, rest = owner[node], graph.without(Nodes([node]))
        left = task.graph.ids[task.graph.ids != node]
        return cuda.train_shard(ShardTask(task.shard, rest.subgraph(left), task.seed), config)

    forget(int(chosen[0]))
    ours = [_seconds(partial(forget, int(node))) for node in chosen]
    scratch = pyg_seconds(graph.training_graph, spec)
    return {
        "requests": len(ours),
        "pyg_seconds": scratch,
        "engine_seconds": float(np.median(ours)),
        "engine_worst": max(ours),
        "speedup": scratch / float(np.median(ours)),
    }


def pyg_seconds(graph: Graph, spec: ModelSpec) -> float:
    """Seconds of the PyG loop on the device, after a few epochs that pay for allocations."""
    train = pyg_loop(graph, spec, "cuda")
    train(5)
    return _seconds(lambda: train(EPOCHS))


def kernel_microseconds(epoch: Callable[[], None], repeats: int = 20) -> dict[str, float]:
    """Time on the device of each kernel of an epoch, launched one by one."""
    from torch.profiler import ProfilerActivity, profile

    epoch()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(repeats):
            epoch()
        torch.cuda.synchronize()
    return {
        event.key: round(event.self_device_time_total / repeats, 2)
        for event in found.key_averages()
        if event.self_device_time_total > 0
    }


def _floor(tasks: Sequence[ShardTask], spec: ModelSpec) -> float:
    """Seconds to move once per epoch the first layer's weights and moments (read and written)."""
    width = {"sage": 2 * spec.hidden, "gat": spec.heads * spec.hidden}.get(spec.kind, spec.hidden)
    columns = sum(len(task.columns(spec)) for task in tasks)
    entries = sum(int(task.graph.x.nnz) for task in tasks)
    moved = 4 * (6 * columns * width + 4 * entries)
    return EPOCHS * moved / _BANDWIDTH


def _seconds(action: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    started = time.perf_counter()
    action()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def markdown(report: dict[str, Any]) -> str:
    """The report as tables."""
    titles = {
        "one_shard": "retraining one shard",
        "all_shards": f"fitting all {report['shards']} shards (PyG: a few shards, scaled)",
        "unlearning": "node unlearning, against PyG from scratch",
    }
    parts = [f"Physics on one {report['device']}, {report['epochs']} epochs."]
    for name, title in titles.items():
        rows = [
            (
                row["model"],
                duration(row["pyg_seconds"]),
                duration(row["engine_seconds"]),
                f"{row['speedup']:.0f}x",
            )
            for row in report[name]
        ]
        rows.append(("geometric mean", "", "", f"**{report['summary'][name]:.0f}x**"))
        parts.append(markdown_table((title, "PyG loop", "CUDA engine", "speed-up"), rows))
    parts.append(checks_table(report))
    return "\n\n".join(parts)


# -- does the CUDA engine repeat its bits, and how near is it to the CPU engine? ----------------


STACKS = (2, 7, 31)
_AGREEMENT = 12
# The gradient of a bias right before a batch norm is rounding errors alone.
_NO_GRADIENT = ("conv1.nn.2.bias", "conv2.nn.2.bias")


def checks(
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
    """Tell if shards have the same bits alone, in stacks of several sizes and in a second run."""
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
    from grapheraser.engines.cpu.train import PreparedShard
    from grapheraser.engines.cuda.layout import layout_of
    from grapheraser.engines.cuda.train import PreparedStack

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


def checks_table(report: Mapping[str, Any]) -> str:
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
