"""Kinds ``requests`` and ``pyg-scratch``: how long forgetting, predicting and learning take."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from grapheraser.engines import ShardTask, TrainingConfig, resolve_engine
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Edges, Graph, Nodes, Request
from grapheraser.nodes import GraphEraser
from grapheraser.seeding import derive, generator
from grapheraser_lab.framework.cell import KINDS, Kind
from grapheraser_lab.framework.resolve import aggregator_of, model_of, partitioner_of
from grapheraser_lab.measure.f1 import KeptEnsemble
from grapheraser_lab.measure.inputs import graph_of, partition_of
from grapheraser_lab.timing import processor_seconds, timed

_REPEATS = 3
# Seconds of a request beside which nothing that is loaded once counts.
_LONG = 1.0
# Epochs of PyG that are measured at the most; what a hundred take follows from them.
_PYG_EPOCHS = 10


def measure(config: Mapping[str, Any]) -> dict[str, Any]:
    """Fit once, then time independent requests, each on a copy of the fitted eraser.

    Everything runs on one thread, and the seconds are processor time: what an idle machine would
    take, whatever else this one is doing. Training from scratch, the case of one shard, trains
    everything afresh whether a node or an edge goes, so only nodes are timed there.
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
    found: dict[str, Any] = {"nodes": _timed(eraser, kinds["nodes"]), "engine": eraser.engine_}
    if config.get("nodes_only"):
        return found
    if partition.num_shards > 1:
        found["edges"] = _timed(eraser, kinds["edges"])
    nodes = graph.test_nodes
    eraser.predict(nodes[:2])
    found["predict_seconds"] = _median(lambda: eraser.predict(nodes))
    found["test_nodes"] = len(nodes)
    found["learn_seconds"] = _median(
        lambda: aggregator.fit(KeptEnsemble.of(eraser.aggregator_.ensemble))
    )
    return found


def measure_pyg(config: Mapping[str, Any]) -> dict[str, Any]:
    """Training from scratch in plain PyG: a few epochs, and what all of them take by that."""
    graph = graph_of(config).training_graph
    model = model_of(config["model"])
    engine = resolve_engine("pyg", TrainingConfig(model), "cpu")
    task = ShardTask(0, graph, derive(config["seed"], "train", 0))

    def seconds(epochs: int) -> float:
        return processor_seconds(engine.train, task, TrainingConfig(model, epochs=epochs))

    few = min(_PYG_EPOCHS, config["epochs"] - 1) or 1
    seconds(1)  # pays for what is loaded once
    start = min(seconds(1) for _ in range(_REPEATS))
    each = (seconds(1 + few) - start) / few
    total = start + max(0.0, each) * (config["epochs"] - 1)
    return {"seconds": total, "epochs_measured": 1 + few}


def _requests(graph: Graph, count: int, seed: int) -> dict[str, list[Request]]:
    """One more than are timed: the first one warms up, where it is short."""
    rng = generator(seed, "experiment", "requests")
    nodes = rng.permutation(graph.train_nodes)[: count + 1]
    edges = graph.training_graph.edges
    edges = edges[rng.permutation(len(edges))[: count + 1]]
    return {
        "nodes": [Nodes([int(node)]) for node in nodes],
        "edges": [Edges([(int(u), int(v))]) for u, v in edges],
    }


def _timed(eraser: GraphEraser, requests: Sequence[Request]) -> dict[str, list[float]]:
    """Time each request, from the call to the receipt, and list the shards it retrained."""
    found: dict[str, list[float]] = {
        name: [] for name in ("seconds", "training", "aggregation", "retrained")
    }
    for number, request in enumerate(requests):
        if len(found["seconds"]) == max(1, len(requests) - 1):
            break
        other = copy.copy(eraser)
        receipt, spent = timed(other.unlearn, request)
        if number == 0 and len(requests) > 1 and spent < _LONG:
            continue
        # The receipt's own times are by the clock on the wall; only their shares are used.
        scale = spent / receipt.timings["total"]
        found["seconds"].append(spent)
        found["training"].append(receipt.timings["training"] * scale)
        found["aggregation"].append(receipt.timings["aggregation"] * scale)
        found["retrained"].append(len(receipt.retrained))
    return found


def _median(action: Callable[[], object]) -> float:
    return float(np.median([processor_seconds(action) for _ in range(_REPEATS)]))


KINDS.add("requests", Kind(measure, timed=True))
KINDS.add("pyg-scratch", Kind(measure_pyg, timed=True))


# -- kind ``insertion``: nodes that come later, one by one, into shards that are there already --


def measure_insertion(config: Mapping[str, Any]) -> dict[str, Any]:
    """F1 without some training nodes, after they were inserted, and of a fit with them.

    ``count`` random training nodes are left out of the fit and then inserted one at a time, each
    with its edges to the nodes that are there.
    """
    whole, seed = graph_of(config), int(config["seed"])
    rng = generator(seed, "experiment", "insertion")
    late = rng.permutation(whole.train_nodes)[: min(config["count"], len(whole.train_nodes) // 2)]
    before = _eraser(config).fit(whole.without(Nodes(late.tolist())))
    found: dict[str, Any] = {"without": before.score(whole.test_nodes), "inserted": len(late)}
    retrained = 0
    for node in late.tolist():
        row = whole.positions([node])[0]
        known = whole.neighbours(node)
        known = known[before.graph_.contains(known)]
        receipt = before.insert(node, whole.x[[row]], int(whole.y[row]), known)
        retrained += len(receipt.retrained)
    found["after"] = before.score(whole.test_nodes)
    found["retrained"] = retrained / len(late)
    found["largest"] = int(before.partition_.sizes.max())
    found["fresh"] = _eraser(config).fit(whole).score(whole.test_nodes)
    found["test_nodes"] = len(whole.test_nodes)
    return found


def _eraser(config: Mapping[str, Any]) -> GraphEraser:
    return GraphEraser(
        model=model_of(config["model"]),
        partition=partitioner_of(config["partition"]),
        num_shards=config["num_shards"],
        aggregation=aggregator_of(config["aggregation"]),
        epochs=config["epochs"],
        seed=int(config["seed"]),
        device=config.get("device", "cpu"),
        executor=LocalExecutor(workers=1),
    )


KINDS.add("insertion", Kind(measure_insertion, trains=True))
