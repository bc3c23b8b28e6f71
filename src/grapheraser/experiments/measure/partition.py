"""Kinds ``partition`` (its time, sizes and rounds) and ``communities``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from grapheraser.experiments.framework.cell import KINDS, Kind
from grapheraser.experiments.framework.resolve import partitioner_of
from grapheraser.experiments.measure.classical_communities import communities
from grapheraser.experiments.measure.inputs import graph_of
from grapheraser.graph import Graph
from grapheraser.partition import EkmPartitioner, partition_graph

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
        started = time.process_time()
        points = method.embedding(graph.training_graph, seed)
        embedding_seconds = time.process_time() - started
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
