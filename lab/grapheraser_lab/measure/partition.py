"""Kinds ``partition`` (its time, sizes and rounds), ``communities`` and ``assignment``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.partition import EkmPartitioner, partition_graph
from grapheraser.partition.kmeans import smoothed_features
from grapheraser.seeding import generator
from grapheraser_lab.framework.cell import KINDS, Kind
from grapheraser_lab.framework.resolve import partitioner_of
from grapheraser_lab.measure.inputs import communities, graph_of
from grapheraser_lab.timing import timed

_TINY = 60


def measure_partition(config: Mapping[str, Any]) -> dict[str, Any]:
    """The report of a partition; a tiny graph pays for compiling first.

    ``seconds`` is the partition alone, ``embedding_seconds`` what k-means needs before it; both
    are processor time, on one thread.
    """
    graph, method = graph_of(config), partitioner_of(config["method"])
    num_shards = min(config["num_shards"], len(graph.train_nodes))
    seed, gamma = config["seed"], config.get("gamma", 0.0)
    partition_graph(_tiny(), method, num_shards=3, seed=seed, gamma=gamma)
    embedding_seconds = 0.0
    if isinstance(method, EkmPartitioner):
        points, embedding_seconds = timed(method.embedding, graph.training_graph, seed)
        method = replace(method, embedding=lambda graph, seed: points)
    clock, processor = time.perf_counter(), time.process_time()
    part = partition_graph(graph, method, num_shards=num_shards, seed=seed, gamma=gamma)
    busy = (time.process_time() - processor) / (time.perf_counter() - clock)
    report = {
        **part.report(),
        "seconds": part.seconds * min(busy, 1.0),
        "embedding_seconds": embedding_seconds,
    }
    quality = report.pop("quality")
    for name in ("label_entropy", "inside"):
        quality.pop(name, None)
    return {**report, **quality}


def measure_communities(config: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes of the communities of classical label propagation; with ``layout``, a drawing."""
    training = graph_of(config).training_graph
    labels = communities(training, config["seed"])
    found: dict[str, Any] = {"sizes": np.bincount(labels).tolist(), "nodes": training.num_nodes}
    if config.get("layout"):
        from grapheraser.reports.figures.layout import layout

        once = training.sources < training.indices
        ends = np.stack([training.sources[once], training.indices[once]], axis=1)
        found["labels"] = labels.tolist()
        found["places"] = np.round(layout(training, seed=0), 4).tolist()
        found["edges"] = ends.tolist()
    return found


def _tiny() -> Graph:
    rng = np.random.Generator(np.random.PCG64(0))
    x = (rng.random((_TINY, 12)) < 0.4).astype(np.float32)
    edges = rng.integers(0, _TINY, size=(2, 3 * _TINY))
    return Graph.from_arrays(x, edges[:, edges[0] != edges[1]], np.arange(_TINY) % 3, name="tiny")


KINDS.add("partition", Kind(measure_partition, timed=True))
KINDS.add("communities", Kind(measure_communities))


# -- kind ``assignment``: nodes to shards of equal size, greedily and by Kuhn and Munkres ---------


def measure_assignment(config: Mapping[str, Any]) -> dict[str, Any]:
    """Processor seconds of one reassignment of BEKM, and of the same by the Hungarian method.

    As the paper's comparison has it, every shard is repeated as often as it has places, which makes
    the costs a square of n by n.
    """
    training, seed = graph_of(config).training_graph, int(config["seed"])
    n, k = int(config["nodes"]), int(config["num_shards"])
    rng = generator(seed, "experiment", "assignment")
    some = smoothed_features(training, seed)[rng.permutation(training.num_nodes)[:n]]
    apart = np.linalg.norm(some[:, None] - some[rng.permutation(n)[:k]][None], axis=2)
    apart = apart.astype(np.float64)
    # compiles: for arrays of the same layout, else the first call would pay for it once more
    greedily(np.ones((4, 2)), 2), kuhn_munkres(np.ones((2, 2)))
    begun = time.process_time()
    greedy = greedily(apart, n // k)
    between = time.process_time()
    best = kuhn_munkres(np.repeat(apart, n // k, axis=1)) // (n // k)
    ended = time.process_time()
    cost = {
        name: float(apart[np.arange(n), to].sum())
        for name, to in (("greedy", greedy), ("best", best))
    }
    return {"greedy_seconds": between - begun, "munkres_seconds": ended - between, "cost": cost}


@numba.njit(cache=False)
def greedily(apart: NDArray[np.float64], places: int) -> NDArray[np.int64]:
    """All pairs of node and shard by distance, each node to the first shard with a place left."""
    n, k = apart.shape
    shard, left = np.full(n, -1), np.full(k, places)
    for pair in np.argsort(apart.ravel()):
        node, to = pair // k, pair % k
        if shard[node] < 0 and left[to] > 0:
            shard[node] = to
            left[to] -= 1
    return shard


@numba.njit(cache=False)
def kuhn_munkres(cost: NDArray[np.float64]) -> NDArray[np.int64]:
    """The column of each row in the cheapest assignment of a square, in O(n^3), by potentials."""
    n = len(cost)
    u, v = np.zeros(n + 1), np.zeros(n + 1)
    row_of = np.zeros(n + 1, np.int64)  # by column, from 1; row 0 is nobody
    for row in range(1, n + 1):
        row_of[0] = row
        column, way = _augment(cost, u, v, row_of)
        while column:
            before = way[column]
            row_of[column] = row_of[before]
            column = before
    found = np.empty(n, np.int64)
    for j in range(1, n + 1):
        found[row_of[j] - 1] = j - 1
    return found


@numba.njit(cache=False)
def _augment(
    cost: NDArray[np.float64],
    u: NDArray[np.float64],
    v: NDArray[np.float64],
    row_of: NDArray[np.int64],
) -> tuple[int, NDArray[np.int64]]:
    """Grow a tree of tight edges from the row in column 0 to a free column; return the way back."""
    n, column = len(cost), 0
    way, least, used = np.zeros(n + 1, np.int64), np.full(n + 1, np.inf), np.zeros(n + 1, np.bool_)
    while True:
        used[column] = True
        at, delta, following = row_of[column], np.inf, 0
        for j in range(1, n + 1):
            if not used[j]:
                reduced = cost[at - 1, j - 1] - u[at] - v[j]
                if reduced < least[j]:
                    least[j], way[j] = reduced, column
                if least[j] < delta:
                    delta, following = least[j], j
        for j in range(n + 1):
            if used[j]:
                u[row_of[j]] += delta
                v[j] -= delta
            else:
                least[j] -= delta
        column = following
        if row_of[column] == 0:
            return column, way


KINDS.add("assignment", Kind(measure_assignment, timed=True))


# -- kind ``facts``: the size of a data set, with edges counted in both ways --------------------


def measure_facts(config: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of one graph, its test split and its most frequent class."""
    graph = graph_of(config)
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "entries": len(graph.indices),
        "classes": graph.num_classes,
        "features": graph.num_features,
        "train_nodes": len(graph.train_nodes),
        "test_nodes": len(graph.test_nodes),
        "training_edges": graph.training_graph.num_edges,
        "most_frequent": float(np.bincount(graph.y[graph.y >= 0]).max() / graph.num_nodes),
    }


KINDS.add("facts", Kind(measure_facts))
