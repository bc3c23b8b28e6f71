"""What training in slices saves and costs: time of a request, storage of checkpoints, F1.

One thread, one process, processor time. The erasers of a row are fitted on the same cut and carry
out the same requests in turns, so that whatever else the machine does falls on all of them alike.
A request is the deletion of one random training node. The shards are routed, without the global
expert, which is none of the slices' business.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from grapheraser.cluster import LocalExecutor
from grapheraser.cluster.executors import no_tick
from grapheraser.datasets import default_shards, load_dataset
from grapheraser.eraser import GraphEraser
from grapheraser.graph import Graph, Nodes
from grapheraser.partition import partition_graph
from grapheraser.seeding import generator
from grapheraser.versions import versions

SLICES = (1, 2, 4, 8)
T = TypeVar("T")
R = TypeVar("R")


def run(
    datasets: Iterable[str] = ("cora", "physics"),
    models: Iterable[str] = ("gcn", "sage"),
    *,
    slices: Sequence[int] = SLICES,
    requests: int = 40,
    seeds: int = 1,
    partition: str = "blpa",
    epochs: int = 100,
    root: str | Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure every data set, model and number of slices.

    Returns: a JSON-able report, one entry of ``rows`` per data set, model and number of slices.
    F1 is the mean over ``seeds`` seeds; times and storage are of the first.
    """
    rows = []
    for name in datasets:
        graph = load_dataset(name, root)
        shards = default_shards(name)
        cuts = [
            partition_graph(graph, partition, num_shards=shards, seed=seed) for seed in range(seeds)
        ]
        for model in models:
            described: dict[int, dict[str, Any]] = {}
            erasers: dict[int, GraphEraser] = {}
            for count in slices:
                progress(f"{name} {model} slices={count}")
                scores = []
                for seed, cut in enumerate(cuts):
                    eraser = GraphEraser(
                        model=model,
                        num_shards=shards,
                        aggregation="routed",
                        global_expert=False,
                        epochs=epochs,
                        seed=seed,
                        slices=count,
                        executor=_Clocked(),
                    ).fit(graph, partition=cut)
                    scores.append(eraser.score(graph.test_nodes))
                    erasers.setdefault(count, eraser)
                described[count] = {
                    "dataset": name,
                    "model": model,
                    "slices": count,
                    "requests": requests,
                    "seeds": seeds,
                    **_storage(erasers[count]),
                    "f1": float(np.mean(scores)),
                    "f1_std": float(np.std(scores)),
                }
            progress(f"{name} {model} requests")
            timed = _timed(erasers, graph, requests)
            rows += [{**described[count], **timed[count]} for count in slices]
    return {
        "benchmark": "slices",
        "partition": partition,
        "epochs": epochs,
        "threads": 1,
        "versions": versions(),
        "rows": rows,
    }


class _Clocked:
    """Trains in this process and remembers the processor time of the last call."""

    name = "local"
    seconds = 0.0

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        *,
        names: Sequence[int],
        tick: Callable[[], None] = no_tick,
    ) -> list[R]:
        """See `Executor`."""
        clock = time.process_time()
        results = LocalExecutor(workers=1).map(function, tasks, names=names, tick=tick)
        self.seconds = time.process_time() - clock
        return results


def _timed(
    erasers: dict[int, GraphEraser], graph: Graph, requests: int
) -> dict[int, dict[str, Any]]:
    """Each request goes to every eraser in turn; the first one pays for loading compiled code."""
    rng = generator(0, "bench", "slices")
    nodes = rng.choice(graph.train_nodes, size=requests + 1, replace=False)
    training: dict[int, list[float]] = {count: [] for count in erasers}
    whole: dict[int, list[float]] = {count: [] for count in erasers}
    for number, node in enumerate(nodes.tolist()):
        for count, eraser in erasers.items():
            clock = time.process_time()
            eraser.unlearn(Nodes([node]))
            seconds = time.process_time() - clock
            if number:
                assert isinstance(eraser.executor, _Clocked)
                training[count].append(eraser.executor.seconds)
                whole[count].append(seconds)
    return {
        count: {
            "training_seconds": float(np.mean(training[count])),
            "training_median": float(np.median(training[count])),
            "request_seconds": float(np.mean(whole[count])),
            "request_median": float(np.median(whole[count])),
        }
        for count in erasers
    }


def _storage(eraser: GraphEraser) -> dict[str, Any]:
    shards = eraser.shards_.values()
    weights = sum(shard.num_bytes for shard in shards)
    kept = sum(checkpoint.num_bytes for shard in shards for checkpoint in shard.checkpoints)
    return {"weights_bytes": weights, "checkpoint_bytes": kept}


def markdown(report: dict[str, Any]) -> str:
    """The report as a table."""
    lines = [
        "| data set | model | slices | training | | request | | weights | checkpoints | F1 |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    plain: dict[tuple[str, str], dict[str, Any]] = {}
    for row in report["rows"]:
        first = plain.setdefault((row["dataset"], row["model"]), row)
        times = [
            f"{row[part] * 1000:.1f} ms | {first[part] / row[part]:.2f}x"
            for part in ("training_seconds", "request_seconds")
        ]
        lines.append(
            f"| {row['dataset']} | {row['model']} | {row['slices']} | {' | '.join(times)} "
            f"| {row['weights_bytes'] / 1e6:.1f} MB | {row['checkpoint_bytes'] / 1e6:.1f} MB "
            f"| {row['f1']:.3f} |"
        )
    return "\n".join(lines)
