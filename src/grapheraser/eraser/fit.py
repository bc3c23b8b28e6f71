"""Fitting: check the graph, partition it, train every shard, fit the aggregation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from grapheraser.eraser.guideline import AUTO, recommend_partition
from grapheraser.eraser.settings import Settings, describe, resolve, training_config
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.state import fit_state
from grapheraser.eraser.warmup import compiling, warm_up_for
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import Graph
from grapheraser.partition import Partition, partition_graph
from grapheraser.partition.base import EVERYTHING
from grapheraser.partition.placing import accept_partition
from grapheraser.training.class_weights import check_classes
from grapheraser.training.edge_arguments import check_edges
from grapheraser.training.magnitude import check_all_features


def fit(
    arguments: Mapping[str, Any], graph: Graph | Any, partition: Partition | None = None
) -> Snapshot:
    """The first snapshot of a run, with no receipts yet.

    Args:
        arguments: of `GraphEraser`, by name.
        graph: a `Graph`, or a PyG ``Data``.
        partition: to use instead of computing one, restricted to the nodes of ``graph`` in shards.
    """
    settings = resolve(arguments)
    graph = graph if isinstance(graph, Graph) else Graph.from_pyg(graph)
    _check_trainable(graph)
    graph = graph.with_context(settings.context)
    check_edges(settings.training.model, graph)
    check_classes(settings.training, graph.num_classes)
    check_all_features(graph)
    if arguments["engine"] == "auto":
        _say_why_slow(settings)
    warm_up_for(settings, graph)
    if partition is None:
        partition = make_partition(arguments, graph)
    else:
        partition = accept_partition(partition, graph, settings.partitioner)
        if settings.training.model.closed_form and partition.num_shards > 1:
            name = settings.training.model.name
            raise ParameterError(f"'partition' of fit: model '{name}' has no shards.")
    configuration = describe(arguments, settings)
    state = fit_state(settings, graph, partition)
    return Snapshot.first(arguments, settings, state, configuration)


def make_partition(arguments: Mapping[str, Any], graph: Graph) -> Partition:
    """The partition of a graph that arguments of `GraphEraser` stand for."""
    config = training_config(arguments)
    if config.model.closed_form:
        return partition_graph(graph, "hash", num_shards=1, seed=arguments["seed"])
    method, chosen_by = arguments["partition"], frozenset[str]()
    if method == AUTO:
        named = {name: arguments[name] for name in ("num_shards", "seed", "engine", "device")}
        advice = recommend_partition(graph, config.model, epochs=config.epochs, **named)
        # The choice of the method depends on the data, even where the method itself does not.
        method, chosen_by = advice.partition, EVERYTHING
    options = {name: arguments[name] for name in ("num_shards", "seed", "gamma", "delta")}
    with compiling():
        partition = partition_graph(graph, method, **options)
    return replace(partition, inputs=partition.inputs | chosen_by)


def _say_why_slow(settings: Settings) -> None:
    """Warn where the choice of the engine was left to us and fell on the reference loop."""
    beyond = settings.training.beyond_kernels
    if beyond:
        warnings.warn(
            f"engine 'pyg', the reference loop, trains this run: the fast engines can't train "
            f"with {', '.join(beyond)}. Say engine='pyg' to choose it without this warning.",
            stacklevel=4,
        )


def _check_trainable(graph: Graph) -> None:
    if graph.num_nodes == 0:
        raise GraphError(f"graph '{graph.name}' has no nodes.")
    if graph.num_train == 0:
        raise GraphError(f"graph '{graph.name}' has no training nodes.")
    if graph.num_features == 0:
        raise GraphError(f"graph '{graph.name}' has no feature columns.")
