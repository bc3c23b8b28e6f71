"""The task of predicting the classes of nodes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from grapheraser.engines.graph_checks import check_classes, check_edges, check_typed_module
from grapheraser.eraser.settings import Settings
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.task import NODES, Question, Task
from grapheraser.eraser.warmup import compile_ahead, compiling
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import Graph
from grapheraser.graph.labels import require_classes
from grapheraser.models import RELATIONAL, CustomModel
from grapheraser.nodes.answers import outputs_of
from grapheraser.nodes.guideline import AUTO, recommend_partition
from grapheraser.nodes.settings import resolve, training_config
from grapheraser.nodes.targets import check_targets, engine_for
from grapheraser.partition import Partition
from grapheraser.partition.base import EVERYTHING
from grapheraser.partition.partitioning import partition_for


class NodeTask(Task):
    """Classes of nodes, by shards of a GNN, closed-form members, or both."""

    name = NODES
    owner = "GraphEraser"
    predicts = "the classes of nodes"
    takes_types = True
    predict = Question("nodes", 1, lambda eraser, nodes: eraser.answers(nodes), outputs_of)

    def resolve(
        self, arguments: Mapping[str, Any], fitted_as: Mapping[str, Any] | None = None
    ) -> Settings:
        """See `Task`."""
        return resolve(arguments, fitted_as)

    def graph_of(self, arguments: Mapping[str, Any], settings: Settings, world: Any) -> Graph:
        """See `Task`."""
        graph = super().graph_of(arguments, settings, world)
        _check_trainable(graph)
        graph = graph.with_context(settings.context)
        if graph.types is not None:
            _check_types(arguments, settings, graph)
        else:
            check_edges(settings.training.model, graph)
        if graph.label_kind.is_classes:
            check_classes(settings.training, graph)
        else:
            check_targets(arguments, settings, graph)
        if arguments["engine"] == "auto":
            _say_why_slow(settings)
        return graph

    def settings_for(
        self, arguments: Mapping[str, Any], settings: Settings, graph: Graph
    ) -> Settings:
        """See `Task`: shards learn targets by the reference loop."""
        model = settings.training.model
        if graph.label_kind.is_classes or model.closed_form or graph.types is not None:
            return settings
        return replace(settings, engine=engine_for(arguments, settings, graph))

    def partition_of(
        self, arguments: Mapping[str, Any], settings: Settings, graph: Graph
    ) -> Partition:
        """See `Task`."""
        if settings.training.model.closed_form:
            return super().partition_of(arguments, settings, graph)
        method, chosen_by = arguments["partition"], frozenset[str]()
        if method == AUTO:
            require_classes(graph, "partition='auto'")
            config = training_config(arguments)
            named = {name: arguments[name] for name in ("num_shards", "seed", "engine", "device")}
            advice = recommend_partition(graph, config.model, epochs=config.epochs, **named)
            # The choice of the method depends on the data, even where the method itself does not.
            method, chosen_by = advice.partition, EVERYTHING
        options = {name: arguments[name] for name in ("num_shards", "seed", "gamma", "delta")}
        with compiling():
            partition = partition_for(self.owner, graph, method, **options)
        return replace(partition, inputs=partition.inputs | chosen_by)

    def warm_up(self, settings: Settings, graph: Graph) -> None:
        """See `Task`."""
        if graph.label_kind.is_classes and graph.types is None:
            compile_ahead(settings, graph)

    def notes(self, now: Snapshot, nodes: int) -> tuple[str, ...]:
        """Say where shards have become so small that others would fit better."""
        partition, arguments = now.state.partition, now.arguments
        slack = arguments["gamma"] or arguments["delta"] is not None
        made_for = partition.capacity * partition.num_shards
        if slack or partition.num_shards == 1 or 2 * nodes > made_for:
            return ()
        size, fewer = nodes / partition.num_shards, max(1, round(nodes / partition.capacity))
        return (
            f"shards hold {size:.0f} nodes on average instead of {partition.capacity}: "
            f"reshard({fewer}) would fit what is left afresh",
        )


def _check_types(arguments: Mapping[str, Any], settings: Settings, graph: Graph) -> None:
    """Refuse what learns nothing from types."""
    model, config = settings.training.model, settings.training
    if isinstance(model, CustomModel):
        if not graph.label_kind.is_classes:
            raise GraphError(
                f"shards of typed graphs learn classes (graph '{graph.name}' has "
                f"{graph.label_kind.words}).",
                hint="use model='closed-form'.",
            )
        for what, given in (
            ("partition 'auto' is", arguments["partition"] == AUTO),
            ("'neighbours' of Training are", config.neighbours is not None),
        ):
            if given:
                raise ParameterError(f"{what} for graphs without types.")
        check_typed_module(model, graph)
    elif not model.closed_form or model.members is not None:
        raise GraphError(
            f"model '{model.name}' learns nothing from types.",
            hint=f"use model='closed-form', '{RELATIONAL}' or a module of your own, which PyG's "
            "to_hetero makes of others.",
        )
    assert graph.types is not None
    if model.closed_form and any(graph.types.weighted):
        warnings.warn(
            "the closed form ignores the weights of relations; model='rgcn' reads them.",
            stacklevel=6,
        )
    if arguments["members"] is not None:
        raise GraphError("'members' are those of graphs without types; leave it out.")


def _say_why_slow(settings: Settings) -> None:
    """Warn where the choice of the engine was left to us and fell on the reference loop."""
    beyond = settings.training.beyond_kernels
    if beyond:
        warnings.warn(
            f"engine 'pyg', the reference loop, trains this run: the fast engines can't train "
            f"with {', '.join(beyond)}. Say engine='pyg' to choose it without this warning.",
            stacklevel=6,
        )


def _check_trainable(graph: Graph) -> None:
    if graph.num_nodes == 0:
        raise GraphError(f"graph '{graph.name}' has no nodes.")
    if graph.num_train == 0:
        raise GraphError(
            f"graph '{graph.name}' has no training nodes.",
            hint="training nodes are those with a known label that are not in test or validation.",
        )
    if graph.num_features == 0 and graph.types is None:
        raise GraphError(f"graph '{graph.name}' has no feature columns.")
