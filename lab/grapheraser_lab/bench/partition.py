"""How fast and how good the partitioners are, with METIS (k-way) as the unit.

`run` partitions the paper's five graphs at the paper's k with every method; `scale` compares BLPA
with METIS on generated graphs of growing size, each in a process of its own for its peak memory.
Run both on one core: ``OMP_NUM_THREADS=1 taskset -c 0 grapheraser bench partition``. Times are
processor time, so that a busy machine doesn't spoil the ratios.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from grapheraser.datasets import default_shards, load_dataset
from grapheraser.graph import TRAIN, Graph
from grapheraser.partition import (
    PARTITIONERS,
    BekmHungarianPartitioner,
    BekmPartitioner,
    EkmPartitioner,
    MetisPartitioner,
    Partitioner,
    smoothed_features,
)
from grapheraser.partition.quality import measure_labels
from grapheraser.reports.wording import duration, plural
from grapheraser.seeding import generator
from grapheraser_lab.figures.tables import filled, markdown_table
from grapheraser_lab.framework import published as paper
from grapheraser_lab.timing import timed

UNIT = "metis (k-way)"
SCALE_SIZES = (10_000, 100_000, 1_000_000)
SCALE_SHARDS = 100
SCALE_DEGREE = 20


def run(
    datasets: Iterable[str] = paper.DATASETS,
    *,
    repeats: int = 3,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Time every registered method on the data sets; the best of ``repeats``.

    Returns: a JSON-able report; ``rows`` has one entry for each data set and method.
    """
    _warm_up()
    rows = []
    for name in datasets:
        progress(name)
        training = load_dataset(name).training_graph
        num_shards = default_shards(name)
        points, embedding_seconds = timed(smoothed_features, training, seed)
        methods = _methods(points)
        unit = _measured(training, methods.pop(UNIT), num_shards, seed, repeats)
        found = {UNIT: unit}
        for method, partitioner in methods.items():
            progress(f"{name} {method}")
            found[method] = _measured(training, partitioner, num_shards, seed, repeats)
        rows += [
            {
                "dataset": name,
                "method": method,
                "num_shards": num_shards,
                "nodes": training.num_nodes,
                **row,
                "relative": row["seconds"] / unit["seconds"],
                "embedding_seconds": embedding_seconds if "ekm" in method else None,
            }
            for method, row in found.items()
        ]
    here = {"unit": UNIT, "seed": seed, "repeats": repeats}
    return {"benchmark": "partition", **here, "rows": rows}


def scale(
    sizes: Iterable[int] = SCALE_SIZES,
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """BLPA and METIS on generated graphs (average degree 20, k = 100), a process for each."""
    rows = []
    for num_nodes in sizes:
        pair = {}
        for method in (UNIT, "blpa"):
            progress(f"{num_nodes:,} nodes, {method}")
            command = [sys.executable, "-m", __spec__.name, method, str(num_nodes), str(seed)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            pair[method] = json.loads(done.stdout)
        relative = pair["blpa"]["seconds"] / pair[UNIT]["seconds"]
        rows += [{"method": m, **row} for m, row in pair.items()]
        rows[-1]["relative"] = relative
    return {"benchmark": "partition-scale", "unit": UNIT, "seed": seed, "rows": rows}


def generated_graph(num_nodes: int, degree: int = SCALE_DEGREE, seed: int = 0) -> Graph:
    """Communities of about 1,000 nodes: four of five edges inside, the fifth to anywhere."""
    rng = generator(seed, "bench", num_nodes)
    half = num_nodes * degree // 2
    u = rng.integers(0, num_nodes, half, dtype=np.int32)
    block = min(1000, num_nodes)
    near = (u // block * block + rng.integers(0, block, half, dtype=np.int32)).clip(
        0, num_nodes - 1
    )
    v = np.where(rng.random(half) < 0.8, near, rng.integers(0, num_nodes, half, dtype=np.int32))
    u, v = u[u != v], v[u != v]
    both = (np.concatenate([u, v]), np.concatenate([v, u]))
    adjacency = sp.csr_array(
        (np.ones(2 * len(u), dtype=np.int8), both), shape=(num_nodes, num_nodes)
    )
    adjacency.sum_duplicates()
    return Graph(
        ids=np.arange(num_nodes),
        indptr=adjacency.indptr.astype(np.int64),
        indices=adjacency.indices.astype(np.int32),
        x=sp.csr_array(np.zeros((num_nodes, 1), dtype=np.float32)),
        y=np.zeros(num_nodes, dtype=np.int64),
        role=np.full(num_nodes, TRAIN, dtype=np.int8),
        num_classes=1,
        name=f"generated-{num_nodes}",
    )


def markdown(report: dict[str, Any]) -> str:
    """The report as a table."""
    if report["benchmark"] == "partition-scale":
        return _scale_table(report["rows"])
    names = list(dict.fromkeys(r["dataset"] for r in report["rows"]))
    by_key = {(r["dataset"], r["method"]): r for r in report["rows"]}
    rows = []
    for method in dict.fromkeys(r["method"] for r in report["rows"]):
        cells = [by_key[name, method] for name in names]
        texts = [
            f"{duration(c['seconds'])}, {c['relative']:.2f}x, {100 * c['edges_kept']:.0f} %"
            for c in cells
        ]
        rows.append((method, *texts))
    return markdown_table(("method", *(f"{n}, k = {default_shards(n)}" for n in names)), rows)


def _scale_table(rows: list[dict[str, Any]]) -> str:
    header = "nodes | edges | method | time | relative | peak memory | edges kept"
    row = (
        "{nodes:,} | {edges:,} | {method} | {seconds:time} | {relative:.2f} | {peak_bytes:gb} | "
        "{edges_kept:.3f}"
    )
    known = [{"relative": 1.0, **found} for found in rows]
    return filled(header, row, known, words={"gb": lambda size: f"{size / 1e9:.2f} GB"})


def convergence_markdown(report: dict[str, Any]) -> str:
    """Rounds, and the share of nodes that still moved in the last one, of the iterative methods."""
    found = [r for r in report["rows"] if r["moved"]]
    names = list(dict.fromkeys(r["dataset"] for r in found))
    rows = []
    for method in dict.fromkeys(r["method"] for r in found):
        texts = []
        for r in (r for r in found if r["method"] == method):
            moving = f"{100 * r['moved'][-1] / r['nodes']:.1f} % moving"
            end = "converged" if r["converged"] else moving
            texts.append(f"{plural(len(r['moved']), 'round')}, {end}")
        rows.append((method, *texts))
    return markdown_table(("method", *names), rows)


def _methods(points: Any) -> dict[str, Partitioner]:
    """The unit first, then every registered method; the embedding is given, not computed."""
    methods: dict[str, Partitioner] = {UNIT: MetisPartitioner(variant="kway", repair=False)}
    methods |= {name: PARTITIONERS.get(name)() for name in PARTITIONERS}
    for clustering in (EkmPartitioner, BekmPartitioner, BekmHungarianPartitioner):
        methods[clustering.name] = clustering(embedding=lambda graph, seed: points)
    try:
        import kaminpar  # noqa: F401
    except ImportError:
        del methods["kaminpar"]
    return methods


def _measured(
    training: Graph, partitioner: Partitioner, num_shards: int, seed: int, repeats: int
) -> dict[str, Any]:
    capacity = math.ceil(training.num_nodes / num_shards)
    times = []
    for _ in range(repeats):
        cut = partial(partitioner, training, num_shards, capacity=capacity, seed=seed)
        assignment, seconds = timed(cut)
        times.append(seconds)
    quality = measure_labels(training, assignment.labels, num_shards)
    return {
        "seconds": min(times),
        "times": times,
        "edges": training.num_edges,
        "edges_kept": quality.edges_kept,
        "moved": list(assignment.moved),
        "converged": assignment.converged,
    }


def _warm_up() -> None:
    """Compile everything on a tiny graph, so that no compilation is timed."""
    tiny = generated_graph(60, degree=6)
    for partitioner in _methods(smoothed_features(tiny, 0)).values():
        # 7 and 6 shards: with room to spare, and without.
        for num_shards in (7, 6):
            partitioner(tiny, num_shards, capacity=math.ceil(60 / num_shards), seed=0)


def _scale_child(method: str, num_nodes: int, seed: int) -> dict[str, Any]:
    """One method on one generated graph, in this process."""
    partitioner = (
        MetisPartitioner(variant="kway", repair=False)
        if method == UNIT
        else PARTITIONERS.get(method)()
    )
    # Not divisible by k: with no room to spare, BLPA would run its other kernel.
    graph = generated_graph(num_nodes + 7, seed=seed)
    tiny = generated_graph(60, degree=6)
    partitioner(tiny, 7, capacity=9, seed=0)
    row = _measured(graph, partitioner, SCALE_SHARDS, seed, repeats=1)
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak = usage if sys.platform == "darwin" else usage * 1024
    return {"nodes": graph.num_nodes, **row, "peak_bytes": peak}


if __name__ == "__main__":
    print(json.dumps(_scale_child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
