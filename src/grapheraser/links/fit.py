"""Fitting a link run: check the graph, partition it, train encoders, learn the weights."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from grapheraser.eraser.state import fit_state
from grapheraser.eraser.warmup import compiling, warm_up
from grapheraser.errors import GraphError
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.links.graph import BY_LABEL, Sides, link_graph
from grapheraser.links.model import SHARDS
from grapheraser.links.settings import MEMBERS, describe, resolve
from grapheraser.links.snapshot import LinkSnapshot
from grapheraser.models import Model
from grapheraser.partition import Partition, partition_graph
from grapheraser.training.edge_arguments import check_edges
from grapheraser.training.magnitude import check_all_features


def fit(arguments: Mapping[str, Any], graph: Graph | Any) -> LinkSnapshot:
    """The first snapshot of a link run, with no receipts yet.

    Args:
        arguments: of `LinkEraser`, by name.
        graph: a `Graph`, or a PyG ``Data``.
    """
    settings = resolve(arguments)
    graph = graph if isinstance(graph, Graph) else _from_pyg(graph, arguments["sides"])
    _check_learnable(graph)
    has_shards = SHARDS in MEMBERS[arguments["members"]]
    graph = link_graph(graph, arguments["sides"], arguments["width"] if has_shards else 1)
    if has_shards:
        _check_encoders(settings.training.model, graph)
    check_all_features(graph)
    warm_up(settings, graph.num_features)
    partition = make_partition(arguments, graph, has_shards=has_shards)
    configuration = describe(arguments, settings)
    state = fit_state(settings, graph, partition)
    return LinkSnapshot.first(arguments, settings, state, configuration)


def make_partition(arguments: Mapping[str, Any], graph: Graph, *, has_shards: bool) -> Partition:
    """The partition of all nodes; one part where there are no shards."""
    num_shards = arguments["num_shards"] if has_shards else 1
    with compiling():
        return partition_graph(
            graph, arguments["partition"], num_shards=num_shards, seed=arguments["seed"]
        )


def _from_pyg(data: Any, sides: Sides) -> Graph:
    """A PyG ``Data`` without its labels and masks, if it has any; labels may tell the sides."""
    if sides == BY_LABEL or getattr(data, "x", None) is None:
        return Graph.from_pyg(data)
    bare = copy.copy(data)
    bare.y = np.full(len(data.x), UNLABELLED)
    bare.train_mask = bare.val_mask = bare.test_mask = None
    return Graph.from_pyg(bare, num_classes=1)


def _check_encoders(model: Model, graph: Graph) -> None:
    """Refuse a graph whose edges encoders can't use."""
    if graph.directed:
        raise GraphError(
            f"encoders tell whether two nodes are linked, not which way (graph '{graph.name}' is "
            "directed).",
            hint="use members='closed-form', or graph.undirected().",
        )
    check_edges(model, graph)


def _check_learnable(graph: Graph) -> None:
    if graph.num_nodes == 0:
        raise GraphError(f"graph '{graph.name}' has no nodes.")
    if graph.num_edges == 0:
        raise GraphError(f"graph '{graph.name}' has no edges to learn links from.")
    if graph.num_features == 0:
        raise GraphError(f"graph '{graph.name}' has no feature columns.")
