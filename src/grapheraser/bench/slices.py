"""What training in slices saves and costs: time of a request, storage of checkpoints, F1.

One thread, one process. The erasers of a row are fitted on the same cut and carry out the same
requests in turns, so that whatever else the machine does falls on all of them alike. A request is
the deletion of one random training node. Aggregation is ``mean``, which learns nothing: what is
timed is planning, graph, training and the digests of the receipt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.cluster import LocalExecutor
from grapheraser.datasets import default_shards, load_dataset
from grapheraser.eraser import GraphEraser
from grapheraser.graph import Graph, Nodes
from grapheraser.partition import partition_graph
from grapheraser.seeding import generator
from grapheraser.versions import versions

SLICES = (1, 2, 4, 8)


def run(
    datasets: Iterable[str] = ("cora", "physics"),
    models: Iterable[str] = ("gcn", "sage"),
    *,
    slices: Sequence[int] = SLICES,
    requests: int = 60,
    seeds: int = 3,
    partition: str = "blpa",
    epochs: int = 100,
    root: str | Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure every data set, model and number of slices.

    Returns: a JSON-able report, one entry of ``rows`` per data set, model and number of slices.
    F1 is the mean over ``seeds`` seeds, on ``routed`` shards too; times are of the first seed.
    """
    rows = []
    for name in datasets:
        graph = load_dataset(name, root)
        shards = default_shards(name)
        cuts = [
            partition_graph(graph, partition, num_shards=shards, seed=seed) for seed in range(seeds)
        ]
        for model in models:
            cells: dict[int, list[GraphEraser]] = {}
            for count in slices:
                progress(f"{name} {model} slices={count}")
                cells[count] = [
                    GraphEraser(
                        model=model,
                        num_shards=shards,
                        epochs=epochs,
                        seed=seed,
                        slices=count,
                        executor=LocalExecutor(workers=1),
                    ).fit(graph, partition=cut)
                    for seed, cut in enumerate(cuts)
                ]
            described = {
                count: {
                    "dataset": name,
                    "model": model,
                    "slices": count,
                    **_storage(erasers[0]),
                    **_scores(erasers, graph),
                }
                for count, erasers in cells.items()
            }
            timed = _timed({count: cell[0] for count, cell in cells.items()}, graph, requests)
            rows += [{**described[count], **timed[count]} for count in slices]
    return {
        "benchmark": "slices",
        "partition": partition,
        "epochs": epochs,
        "requests": requests,
        "seeds": seeds,
        "threads": 1,
        "versions": versions(),
        "rows": rows,
    }


def _timed(
    erasers: dict[int, GraphEraser], graph: Graph, requests: int
) -> dict[int, dict[str, Any]]:
    """Each request goes to every eraser in turn; the first one pays for loading compiled code."""
    rng = generator(0, "bench", "slices")
    nodes = rng.choice(graph.train_nodes, size=requests + 1, replace=False)
    spent: dict[int, list[dict[str, float]]] = {count: [] for count in erasers}
    for number, node in enumerate(nodes.tolist()):
        for count, eraser in erasers.items():
            clock = time.process_time()
            receipt = eraser.unlearn(Nodes([node]))
            seconds = time.process_time() - clock
            if number:
                spent[count].append({"cpu": seconds, **receipt.timings})
    return {
        count: {
            "request_cpu_seconds": float(np.mean([part["cpu"] for part in parts])),
            "request_seconds": float(np.mean([part["total"] for part in parts])),
            "training_seconds": float(np.mean([part["training"] for part in parts])),
            "training_median": float(np.median([part["training"] for part in parts])),
            "digests_seconds": float(np.mean([part["digests"] for part in parts])),
        }
        for count, parts in spent.items()
    }


def _storage(eraser: GraphEraser) -> dict[str, Any]:
    shards = eraser.shards_.values()
    weights = sum(shard.num_bytes for shard in shards)
    kept = sum(checkpoint.num_bytes for shard in shards for checkpoint in shard.checkpoints)
    return {"weights_bytes": weights, "checkpoint_bytes": kept}


def _scores(erasers: Sequence[GraphEraser], graph: Graph) -> dict[str, Any]:
    scores = [eraser.score(graph.test_nodes) for eraser in erasers]
    return {"f1": float(np.mean(scores)), "f1_std": float(np.std(scores))}


def markdown(report: dict[str, Any]) -> str:
    """The report as a table."""
    lines = [
        "| data set | model | slices | training | request | | weights | checkpoints | F1 |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    plain: dict[tuple[str, str], float] = {}
    for row in report["rows"]:
        cell = (row["dataset"], row["model"])
        plain.setdefault(cell, row["request_cpu_seconds"])
        lines.append(
            f"| {row['dataset']} | {row['model']} | {row['slices']} "
            f"| {row['training_seconds'] * 1000:.1f} ms "
            f"| {row['request_cpu_seconds'] * 1000:.1f} ms "
            f"| {plain[cell] / row['request_cpu_seconds']:.2f}x "
            f"| {row['weights_bytes'] / 1e6:.1f} MB | {row['checkpoint_bytes'] / 1e6:.1f} MB "
            f"| {row['f1']:.3f} ± {row['f1_std']:.3f} |"
        )
    return "\n".join(lines)
