"""Kind ``requests``: how long forgetting, predicting and learning the scores take."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from grapheraser.aggregation.remembering import KeptEnsemble
from grapheraser.eraser import GraphEraser
from grapheraser.execution import LocalExecutor
from grapheraser.experiments.framework.cell import KINDS, Kind
from grapheraser.experiments.framework.resolve import aggregator_of, model_of
from grapheraser.experiments.measure.inputs import graph_of, partition_of
from grapheraser.graph import Edges, Graph, Nodes, Request
from grapheraser.seeding import generator

_LEAST = 3
_LEAST_LONG = 2


def measure(config: Mapping[str, Any]) -> dict[str, Any]:
    """Fit once, then time independent requests, each on a copy of the fitted eraser.

    ``requests`` of each kind are timed, or as many as fit into ``budget`` seconds. Everything runs
    on one thread, and the seconds are processor time: what an idle machine would take, whatever
    else this one is doing.
    """
    graph, model = graph_of(config), model_of(config["model"])
    aggregator = aggregator_of(config["aggregation"])
    partition = partition_of(config)
    eraser = GraphEraser(
        model=model,
        num_shards=partition.num_shards,
        aggregation=aggregator,
        epochs=config["epochs"],
        seed=config["seed"],
        executor=LocalExecutor(workers=1),
    ).fit(graph, partition=partition)
    kinds = _requests(graph, config["requests"], config["seed"])
    found: dict[str, Any] = {"nodes": _timed(eraser, kinds["nodes"], config["budget"])}
    if config.get("nodes_only"):
        return found
    found["edges"] = _timed(eraser, kinds["edges"], config["budget"])
    nodes = graph.test_nodes
    eraser.predict(nodes[:2])
    found["predict_seconds"] = _median(lambda: eraser.predict(nodes), config["budget"])
    found["test_nodes"] = len(nodes)
    found["learn_seconds"] = _median(
        lambda: aggregator.fit(KeptEnsemble.of(eraser.aggregator_.ensemble)), config["budget"]
    )
    return found


def _requests(graph: Graph, count: int, seed: int) -> dict[str, list[Request]]:
    rng = generator(seed, "experiment", "requests")
    nodes = rng.permutation(graph.train_nodes)[: count + 1]
    edges = graph.training_graph.edges
    edges = edges[rng.permutation(len(edges))[: count + 1]]
    return {
        "nodes": [Nodes([int(node)]) for node in nodes],
        "edges": [Edges([(int(u), int(v))]) for u, v in edges],
    }


def _timed(eraser: GraphEraser, requests: Sequence[Request], budget: float) -> dict[str, Any]:
    """Seconds of each request, from the call to the receipt; the first one warms up.

    Where one takes longer than the whole budget there is nothing to warm up, and two are enough.
    """
    seconds, training, learning, retrained = [], [], [], 0
    started = time.process_time()
    for number, request in enumerate(requests):
        other = copy.copy(eraser)
        begin = time.process_time()
        receipt = other.unlearn(request)
        end = time.process_time()
        long = end - begin > budget
        if number or long:
            # The receipt's own times are by the clock on the wall; only their shares are used.
            timings = receipt.timings
            scale = (end - begin) / timings["total"]
            seconds.append(end - begin)
            training.append(timings["training"] * scale)
            learning.append(timings["aggregation"] * scale)
            retrained += len(receipt.retrained)
        if len(seconds) >= (_LEAST_LONG if long else _LEAST) and end - started > budget:
            break
    return {
        "requests": len(seconds),
        "mean": float(np.mean(seconds)),
        "std": float(np.std(seconds)),
        "median": float(np.median(seconds)),
        "training": float(np.mean(training)),
        "aggregation": float(np.mean(learning)),
        "retrained": retrained / len(seconds),
    }


def _median(action: Callable[[], object], budget: float, repeats: int = 3) -> float:
    """Of a few repeats, or of as many as the budget lasts for."""
    seconds: list[float] = []
    for _ in range(repeats):
        started = time.process_time()
        action()
        seconds.append(time.process_time() - started)
        if sum(seconds) > budget:
            break
    return float(np.median(seconds))


KINDS.add("requests", Kind(measure, timed=True))
