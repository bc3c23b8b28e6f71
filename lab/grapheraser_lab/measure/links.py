"""Kinds ``links`` and ``links-cost``: how well links are told, and what a request costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grapheraser.datasets import load_dataset
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Edges, Nodes, Request
from grapheraser.links import LinkEraser
from grapheraser.links.task import MEMBERS
from grapheraser.links.warmup import warm_up_links
from grapheraser.seeding import generator
from grapheraser_lab.framework.cell import KINDS, Kind
from grapheraser_lab.measure.link_encoders import LinkSplit, forgotten, link_split
from grapheraser_lab.timing import processor_seconds

_PAIRS = 10_000


def measure(config: Mapping[str, Any]) -> dict[str, Any]:
    """The score on held-out edges, before or after something was forgotten.

    Encoders in PyG are trained on what is left; an eraser is fitted, and then asked to forget.
    """
    seed, name = int(config["seed"]), str(config["model"])
    split = link_split(config["dataset"], seed)
    forget = config.get("forget")
    request = None
    if forget:
        request = forgotten(split.graph, forget["what"], forget["share"], seed)
    rest = split if request is None else split.without(request)
    if name in MEMBERS:
        return _erased(config, split, rest, request)
    from grapheraser_lab.measure.link_encoders import trained_encoder

    options = {key: config[key] for key in ("lr", "dropout", "epochs")}
    return trained_encoder(rest, name, seed=seed, device=config.get("device", "cpu"), **options)


def _erased(
    config: Mapping[str, Any], split: LinkSplit, rest: LinkSplit, request: Nodes | Edges | None
) -> dict[str, Any]:
    members, options = str(config["model"]), dict[str, Any]()
    if members != "closed-form":
        options = {"epochs": config["epochs"], "executor": LocalExecutor(workers=1)}
    warm_up_links()  # no part of the time
    eraser = LinkEraser(members, seed=int(config["seed"]), **options)
    seconds = processor_seconds(eraser.fit, split.graph)
    forgetting = None
    if request is not None:
        forgetting = processor_seconds(eraser.unlearn, request)
    score = eraser.score(rest.test, LinkSplit.labels(rest.test))
    return {**score.to_dict(), "seconds": seconds, "forgetting_seconds": forgetting}


def measure_cost(config: Mapping[str, Any]) -> dict[str, Any]:
    """Seconds of a fit, of requests for one edge and for one node, and of 10,000 predictions.

    Processor time of one thread, in medians: kernels are compiled before, and requests follow one
    another on one run.
    """
    graph = load_dataset(config["dataset"])
    rng = generator(int(config["seed"]), "links", "cost")
    count = int(config["requests"])
    LinkEraser(seed=int(config["seed"])).fit(graph)  # compiles, and fills caches
    eraser = LinkEraser(seed=int(config["seed"]))
    found: dict[str, Any] = {"fit": processor_seconds(eraser.fit, graph)}
    edges = graph.edges[rng.permutation(graph.num_edges)[: count + 1]]
    nodes = rng.permutation(graph.ids)[: count + 1]
    requests: dict[str, list[Request]] = {
        "edge": [Edges([(int(u), int(v))]) for u, v in edges],
        "node": [Nodes([int(node)]) for node in nodes],
    }
    for what, some in requests.items():
        seconds = [processor_seconds(eraser.unlearn, request) for request in some]
        found[what] = float(np.median(seconds[1:]))
    pairs = rng.choice(eraser.graph_.ids, size=(2 * _PAIRS, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]][:_PAIRS]
    found["pairs"] = processor_seconds(eraser.predict_proba, pairs)
    eraser.rank(int(eraser.graph_.ids[0]))  # fills caches
    some_nodes = rng.permutation(eraser.graph_.ids)[:count].tolist()
    ranked = [processor_seconds(eraser.rank, node) for node in some_nodes]
    found["rank"] = float(np.median(ranked))
    return found


KINDS.add("links", Kind(measure, trains=True))
KINDS.add("links-cost", Kind(measure_cost, timed=True))
