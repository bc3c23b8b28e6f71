"""Training the shards of one graph with one Ray worker and with two, in one run.

It needs two free cores. Each side has a Ray of its own with that many CPUs, and warm workers before
the clock starts. Wall time, since that is what workers are for; it means little unless the machine
is quiet. Two plain processes that only compute tell what the machine can give. Processor time tells
how evenly Ray spreads the work, whatever else runs: all of it with one worker, against that of the
busier of two. The bits must be those of this process.
"""

from __future__ import annotations

import logging
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import grapheraser as ge
from grapheraser.engines import ShardTask, ShardWeights, TrainingConfig, resolve_engine
from grapheraser.environment import versions
from grapheraser.models import PRESETS
from grapheraser.partition import partition_graph
from grapheraser.partition.halo import task_graph

MODEL, DEGREE, FEATURES, CLASSES = "sage", 20, 64, 10


def generated(num_nodes: int, seed: int = 0) -> ge.Graph:
    """Random edges, and features around the mean of a node's class."""
    rng = np.random.Generator(np.random.PCG64(seed))
    y = rng.integers(0, CLASSES, num_nodes)
    x = rng.normal(size=(CLASSES, FEATURES))[y] + rng.normal(size=(num_nodes, FEATURES))
    ends = rng.integers(0, num_nodes, size=(2, num_nodes * DEGREE // 2))
    ends = np.unique(np.sort(ends[:, ends[0] != ends[1]], axis=0), axis=1)
    return ge.Graph.from_arrays(x.astype(np.float32), ends, y, each_edge_once=True)


def shards_of(num_nodes: int, num_shards: int) -> list[ShardTask]:
    """Return the tasks of a generated graph."""
    graph = generated(num_nodes)
    cut = partition_graph(graph, "random", num_shards=num_shards, seed=0)
    return [ShardTask(s, task_graph(graph, cut, s), seed=s) for s in range(num_shards)]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of some work, and what it returned."""
    started = time.perf_counter()
    done = work()
    return time.perf_counter() - started, done


class Done(NamedTuple):
    """A shard trained on a worker."""

    weights: ShardWeights
    process: int
    seconds: float


def train(task: ShardTask, config: TrainingConfig) -> Done:
    """Train a shard on a worker."""
    started = time.process_time()
    weights = resolve_engine("cpu", config, "cpu").train(task, config)
    return Done(weights, os.getpid(), time.process_time() - started)


def on_ray(
    tasks: list[ShardTask], config: TrainingConfig, workers: int
) -> tuple[float, list[Done]]:
    """Train on so many workers; the seconds, and the shards."""
    import ray

    os.environ.setdefault("RAY_worker_niceness", "0")  # as the processes that they are compared to
    ray.init(
        "local",
        num_cpus=workers,
        object_store_memory=500_000_000,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    try:
        executor, names = ge.RayExecutor(), range(len(tasks))
        warm = partial(train, config=TrainingConfig(config.model, 1))
        for _ in range(2):
            executor.map(warm, tasks, names=names)
        work = partial(train, config=config)
        return timed(lambda: executor.map(work, tasks, names=names))
    finally:
        ray.shutdown()


def busiest(done: list[Done]) -> float:
    """Processor time of the worker that had most to do."""
    spent: dict[int, float] = {}
    for each in done:
        spent[each.process] = spent.get(each.process, 0.0) + each.seconds
    return max(spent.values())


def spin(steps: int) -> float:
    """Computing without memory, files or messages; returns the seconds that it took."""
    started, total = time.perf_counter(), 0
    for step in range(steps):
        total += step * step
    return time.perf_counter() - started


def plain_speedup(steps: int = 30_000_000) -> float:
    """How much more two processes compute than one, where there is nothing to wait for."""
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(spin, [1000, 1000]))
        one, _ = timed(lambda: list(pool.map(spin, [steps])))
        two, _ = timed(lambda: list(pool.map(spin, [steps, steps])))
    return 2 * one / two


def digests(done: list[Done]) -> list[str]:
    """Return the digests of the weights."""
    return [each.weights.digest for each in done]


def run(
    *,
    nodes: int = 60_000,
    shards: int = 24,
    epochs: int = 100,
    repeats: int = 3,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Return both times and what the machine can give, medians of the rounds."""
    tasks = shards_of(nodes, shards)
    config = TrainingConfig(PRESETS[MODEL], epochs)
    train(tasks[0], TrainingConfig(config.model, 1))
    alone, expected = timed(lambda: [train(task, config) for task in tasks])
    rounds = []
    for _ in range(repeats):
        plain = plain_speedup()
        (one, first), (two, second) = (on_ray(tasks, config, workers) for workers in (1, 2))
        assert digests(first) == digests(second) == digests(expected)
        found = {"one": one, "two": two, "speedup": one / two, "plain": plain}
        found |= {"balance": busiest(first) / busiest(second), "load": os.getloadavg()[0]}
        rounds.append(found)
        progress(f"{found}")
    median = {name: statistics.median(found[name] for found in rounds) for name in rounds[0]}
    return {
        "benchmark": "ray",
        "workload": f"{MODEL}, {nodes} nodes, degree {DEGREE}, {FEATURES} features, "
        f"{shards} shards, {epochs} epochs, engine cpu",
        "seconds in this process, one thread": alone,
        "seconds with one Ray worker": median["one"],
        "seconds with two Ray workers": median["two"],
        "speed-up": median["speedup"],
        "speed-up of two plain processes": median["plain"],
        "speed-up by processor time": median["balance"],
        "load": median["load"],
        "rounds": rounds,
        "cores": len(os.sched_getaffinity(0)),
        "versions": versions(),
    }
