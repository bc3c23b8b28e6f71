"""Settings of the approximate methods, chosen on validation nodes for each data set.

A tenth of the training nodes are held out, the test nodes are out of sight, and 5 % of what is left
are forgotten. GIF aims at retraining and gets the settings that come nearest to it; GNNDelete aims
at useful answers and gets those of the best F1. Both are judged on the held-out nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import product
from typing import Any

from benchmarks.peers.gif import GifSettings
from benchmarks.peers.gnndelete import DeleteSettings
from benchmarks.peers.measure import fitted, graph_of, judged
from benchmarks.peers.methods import GIF, GNNDELETE
from grapheraser.experiments.framework.cell import KINDS, Kind
from grapheraser.graph import TEST, Graph, Nodes
from grapheraser.graph.arrays import fresh
from grapheraser.seeding import generator

HELD_OUT, FORGOTTEN = 0.1, 0.05
GRIDS: dict[str, list[dict[str, Any]]] = {
    GIF: [
        asdict(GifSettings(scale=scale, damp=damp))
        for scale, damp in product((300.0, 1e3, 3e3, 1e4, 3e4, 1e5), (0.0, 0.01))
    ],
    GNNDELETE: [
        asdict(DeleteSettings(lr=lr, steps=steps))
        for lr, steps in product((0.001, 0.01), (100, 300))
    ],
}


def tuned(config: Mapping[str, Any]) -> dict[str, Any]:
    """The best settings of the grid, and what each came to."""
    graph, seed, method = graph_of(config), int(config["seed"]), config["method"]
    held_out = validation_graph(graph, seed)
    gone = generator(seed, "peers", "tuning").permutation(held_out.train_nodes)
    request = Nodes(gone[: round(FORGOTTEN * len(gone))])
    tried = []
    for settings in config["grid"]:
        after = fitted({**config, "tuned": settings}, held_out).forget(request)
        tried.append({"settings": settings, **judged(after, after.retrained())})
    best = min(tried, key=lambda one: _worth(method, one))
    return {"best": best["settings"], "tried": tried}


def validation_graph(graph: Graph, seed: int) -> Graph:
    """The training graph with some of its nodes held out as test nodes."""
    training = graph.training_graph
    role = training.role.copy()
    drawn = generator(seed, "peers", "validation").random(len(role)) < HELD_OUT
    role[drawn] = TEST
    return replace(training, **fresh(role=role))


def _worth(method: str, one: Mapping[str, Any]) -> float:
    """Less is better; a series that diverged is worth nothing."""
    if one["apart"] is None:
        return float("inf")
    return float(one["apart"] if method == GIF else -one["f1"])


KINDS.add("peers-tuning", Kind(tuned))
