"""Kind ``insertion``: nodes that come later, one by one, into shards that are there already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grapheraser.eraser import GraphEraser
from grapheraser.execution import LocalExecutor
from grapheraser.experiments.framework.cell import KINDS, Kind
from grapheraser.experiments.framework.resolve import aggregator_of, model_of, partitioner_of
from grapheraser.experiments.measure.inputs import graph_of
from grapheraser.graph import Nodes
from grapheraser.seeding import generator


def measure(config: Mapping[str, Any]) -> dict[str, Any]:
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


KINDS.add("insertion", Kind(measure, trains=True))
