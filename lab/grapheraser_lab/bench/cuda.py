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
from typing import Any

import numpy as np
import torch

from grapheraser.datasets import load_dataset
from grapheraser.engines import cpu, cuda
from grapheraser.engines.task import ShardTask, ShardWeights, TrainingConfig
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph, Nodes
from grapheraser.models import GNNS, PRESETS, ModelSpec
from grapheraser.seeding import generator
from grapheraser_lab.bench.comparison import EPOCHS, geometric_mean, pyg_loop, shard_tasks
from grapheraser_lab.figures.tables import filled

_PARTS = ("one_shard", "all_shards", "unlearning")
_PYG_SHARDS = 4
_REQUESTS = 10

Progress = Callable[[str], None]


def run(
    *,
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
    graph = load_dataset("physics")
    tasks = shard_tasks(graph, partition, num_shards, seed)
    report: dict[str, Any] = {
        "benchmark": "cuda",
        "device": torch.cuda.get_device_name(),
        "versions": {"torch": torch.__version__, "cuda": torch.version.cuda},
        "dataset": "physics",
        "partition": partition,
        "shards": num_shards,
        "epochs": EPOCHS,
        "one_shard": [],
        "all_shards": [],
        "unlearning": [],
    }
    for model in models:
        spec = PRESETS[model]
        cuda.warm_up(spec, graph.num_classes)
        measured = one_shard(tasks, spec), all_shards(tasks, spec), unlearning(graph, tasks, spec)
        for name, row in zip(_PARTS, measured, strict=True):
            report[name].append({"model": model, **row})
            progress(f"{name}: {report[name][-1]}")
    report["summary"] = {
        name: geometric_mean(row["speedup"] for row in report[name]) for name in _PARTS
    }
    return report | checks(num_shards=num_shards, seed=seed, progress=progress)


def one_shard(tasks: Sequence[ShardTask], spec: ModelSpec, repeats: int = 7) -> dict[str, Any]:
    """Retraining the shard of median size, task to weights."""
    task = sorted(tasks, key=lambda task: task.graph.num_nodes)[len(tasks) // 2]
    config = TrainingConfig(spec, EPOCHS)
    ours = [_seconds(lambda: cuda.train_shard(task, config)) for _ in range(repeats)]
    pyg = min(pyg_seconds(task.graph, spec) for _ in range(2))
    size = {"nodes": task.graph.num_nodes, "edges": task.graph.num_edges}
    return {**size, **_beside(pyg, ours)}


def _beside(pyg: float, ours: Sequence[float]) -> dict[str, float]:
    engine = float(np.median(ours))
    told = {"pyg_seconds": pyg, "engine_seconds": engine, "engine_worst": max(ours)}
    return {**told, "speedup": pyg / engine}


def all_shards(tasks: Sequence[ShardTask], spec: ModelSpec, repeats: int = 3) -> dict[str, Any]:
    """Training every shard in one stack against the loop over them."""
    config = TrainingConfig(spec, EPOCHS)
    cuda.train_shards(tasks, config)
    ours = [_seconds(lambda: cuda.train_shards(tasks, config)) for _ in range(repeats)]
    places = np.linspace(0, len(tasks) - 1, _PYG_SHARDS).round().astype(int)
    pyg = float(np.mean([pyg_seconds(tasks[place].graph, spec) for place in places])) * len(tasks)
    return {"shards": len(tasks), "pyg_shards_measured": _PYG_SHARDS, **_beside(pyg, ours)}


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
    return {"requests": len(ours), **_beside(pyg_seconds(graph.training_graph, spec), ours)}


def pyg_seconds(graph: Graph, spec: ModelSpec) -> float:
    """Seconds of the PyG loop on the device, after a few epochs that pay for allocations."""
    train = pyg_loop(graph, spec, "cuda")
    train(5)
    return _seconds(lambda: train(EPOCHS))


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
        mean = ("geometric mean", "", "", f"**{report['summary'][name]:.0f}x**")
        cells = "{model} | {pyg_seconds:time} | {engine_seconds:time} | {speedup:.0f}x"
        header = f"{title} | PyG loop | CUDA engine | speed-up"
        parts.append(filled(header, cells, report[name], [mean]))
    parts.append(checks_table(report))
    return "\n\n".join(parts)


# -- does the CUDA engine repeat its bits, and how near is it to the CPU engine? ----------------


STACKS = (2, 7, 31)
_AGREEMENT = 12
# The gradient of a bias right before a batch norm is rounding errors alone.
_NO_GRADIENT = ("conv1.nn.2.bias", "conv2.nn.2.bias")


def checks(
    *,
    num_shards: int = 100,
    seed: int = 0,
    models: Iterable[str] = PRESETS,
    progress: Progress = lambda text: None,
) -> dict[str, Any]:
    """Bits of a shard alone, stacked and repeated; distance from the CPU engine's weights."""
    graph = load_dataset("physics")
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
    return filled(
        "bits of a shard | run twice | stacked",
        "{model} | {repeated:word} | {stacked:each}",
        rows,
        words={
            "word": word.__getitem__,
            "each": lambda stacked: ", ".join(f"{n}: {word[ok]}" for n, ok in stacked.items()),
        },
    )


def _distance_table(rows: Iterable[Mapping[str, Any]]) -> str:
    header = "distance of weights | engines in float64"
    row = "{model} | {float64_engines:.0e}"
    for engine in ("CUDA", "CPU"):
        side = f"float32_{engine.lower()}"
        header += f" | {engine}, float32 from float64"
        row += f" | median {{{side}[median]:.0e}}, {{{side}[above_1e-3]}} of {{shards}} above 1e-3"
    return filled(header, row, rows)
