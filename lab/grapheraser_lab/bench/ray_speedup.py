"""Training the shards of one graph with one Ray worker and with two, in one run.

It needs two free cores. Each side has a Ray of its own with that many CPUs, and warm workers before
the clock starts. Wall time, since that is what workers are for; it means little unless the machine
is quiet. Two plain processes that only compute tell what the machine can give. The bits must be
those of this process.
"""

from __future__ import annotations

import logging
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import grapheraser as ge
from grapheraser.datasets import generate_graph
from grapheraser.engines import ShardTask, ShardWeights, TrainingConfig, resolve_engine
from grapheraser.models import PRESETS
from grapheraser_lab.bench.comparison import shard_tasks

MODEL, DEGREE = "sage", 20


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of some work, and what it returned."""
    started = time.perf_counter()
    done = work()
    return time.perf_counter() - started, done


def train(task: ShardTask, config: TrainingConfig) -> ShardWeights:
    """Train a shard on a worker."""
    return resolve_engine("cpu", config, "cpu").train(task, config)


def on_ray(
    tasks: list[ShardTask], config: TrainingConfig, workers: int
) -> tuple[float, list[ShardWeights]]:
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


def spin(steps: int) -> None:
    """Compute without memory, files or messages."""
    total = 0
    for step in range(steps):
        total += step * step


def plain_speedup(steps: int = 30_000_000) -> float:
    """How much more two processes compute than one, where there is nothing to wait for."""
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(spin, [1000, 1000]))
        one, _ = timed(lambda: list(pool.map(spin, [steps])))
        two, _ = timed(lambda: list(pool.map(spin, [steps, steps])))
    return 2 * one / two


def run(
    *,
    nodes: int = 75_000,
    shards: int = 24,
    epochs: int = 100,
    repeats: int = 3,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Return both times and what the machine can give, medians of the rounds."""
    graph = generate_graph(nodes, degree=DEGREE)
    tasks = shard_tasks(graph, "random", shards, 0)
    config = TrainingConfig(PRESETS[MODEL], epochs)
    train(tasks[0], TrainingConfig(config.model, 1))
    alone, expected = timed(lambda: [train(task, config) for task in tasks])
    digests = [weights.digest for weights in expected]
    rounds = []
    for _ in range(repeats):
        plain = plain_speedup()
        (one, first), (two, second) = (on_ray(tasks, config, workers) for workers in (1, 2))
        assert all([w.digest for w in found] == digests for found in (first, second))
        rounds.append({"one": one, "two": two, "speedup": one / two, "plain": plain})
        progress(f"{rounds[-1]}")
    median = {name: statistics.median(found[name] for found in rounds) for name in rounds[0]}
    return {
        "benchmark": "ray",
        "workload": f"{MODEL}, {graph.num_train} nodes, degree {DEGREE}, {shards} shards, "
        f"{epochs} epochs, engine cpu",
        "seconds in this process, one thread": alone,
        "seconds with one Ray worker": median["one"],
        "seconds with two Ray workers": median["two"],
        "speed-up": median["speedup"],
        "speed-up of two plain processes": median["plain"],
        "rounds": rounds,
        "cores": len(os.sched_getaffinity(0)),
    }
