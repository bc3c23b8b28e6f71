"""The task of predicting links."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from grapheraser.engines.graph_checks import check_edges
from grapheraser.eraser.settings import Settings
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.task import Question, Task
from grapheraser.eraser.warmup import compiling
from grapheraser.errors import EmptyEnsembleError, GraphError, NothingToForgetError
from grapheraser.graph import UNLABELLED, AddNodes, Edit, Graph, Labels, Removal, SetLabels
from grapheraser.graph.changes.updates import with_classes
from grapheraser.kinds import EDGES, FEATURES, NODES
from grapheraser.links.graph import BY_LABEL, Sides, check_weights, link_graph, sides_of
from grapheraser.links.model import SHARDS
from grapheraser.links.settings import DEFAULT_STEPS, MEMBERS, fact_graph, fact_model, resolve
from grapheraser.models import Model
from grapheraser.partition import Partition
from grapheraser.partition.partitioning import partition_for


class LinkTask(Task):
    """Links between nodes; labels and the split into training and test nodes have no part in it."""

    name = "links"
    owner = "LinkEraser"
    predicts = "links"
    kinds = (NODES.name, EDGES.name, FEATURES.name)
    takes_types = True
    added = MappingProxyType({"steps": DEFAULT_STEPS})
    predict = Question(
        "pairs",
        2,
        lambda eraser, pairs: eraser.predict_proba(pairs),
        lambda graph, values: {"probabilities": values},
    )

    def question(self, graph: Graph) -> Question | None:
        """See `Task`: of a typed graph facts are asked."""
        return self.predict if graph.types is None else _FACTS

    def resolve(
        self, arguments: Mapping[str, Any], fitted_as: Mapping[str, Any] | None = None
    ) -> Settings:
        """See `Task`."""
        return resolve(arguments, fitted_as)

    def graph_of(self, arguments: Mapping[str, Any], settings: Settings, world: Any) -> Graph:
        """See `Task`."""
        sides = arguments["sides"]
        graph = world if isinstance(world, Graph) else _from_pyg(world, sides)
        if graph.types is not None:
            return fact_graph(graph, arguments)
        _check_learnable(graph)
        has_shards = SHARDS in MEMBERS[arguments["members"]]
        graph = link_graph(graph, sides, arguments["width"] if has_shards else 1)
        if has_shards:
            _check_encoders(settings.training.model, graph)
        return graph

    def settings_for(
        self, arguments: Mapping[str, Any], settings: Settings, graph: Graph
    ) -> Settings:
        """Learn facts where edges have relations."""
        if graph.types is None:
            return settings
        return replace(settings, aggregator=fact_model(arguments))

    def partition_of(
        self, arguments: Mapping[str, Any], settings: Settings, graph: Graph
    ) -> Partition:
        """See `Task`."""
        if SHARDS not in MEMBERS[arguments["members"]]:
            return super().partition_of(arguments, settings, graph)
        with compiling():
            options = {name: arguments[name] for name in ("num_shards", "seed")}
            return partition_for(self.owner, graph, arguments["partition"], **options)

    def changes_of(self, now: Snapshot, changes: Sequence[Any]) -> Sequence[Any]:
        """Refuse labels, and give new nodes the labels that tell their sides."""
        if any(isinstance(part, Labels | SetLabels) for part in changes):
            raise NothingToForgetError(
                "a link run keeps no labels.", hint="forget the nodes, or their features or edges."
            )
        types = now.state.graph.types
        if types is not None:
            return [_known(part, types.target) for part in changes]
        names, sides = now.state.graph.class_names, now.arguments["sides"]
        parts = [with_classes(p, names) if isinstance(p, AddNodes) else p for p in changes]
        return [_sided(p, sides) if isinstance(p, AddNodes) else p for p in parts]

    def check_edit(self, now: Snapshot, edit: Edit) -> None:
        """Refuse weights that can't be counted, and edges within a side."""
        graph = now.state.graph
        if graph.types is not None:
            return
        check_weights(edit.entries.values, graph.edge_kind)
        if now.arguments["sides"] is None or not len(edit.pairs):
            return
        known = np.isin(edit.pairs, edit.nodes)
        side = np.empty(edit.pairs.shape, dtype=np.int64)
        side[~known] = graph.labels(edit.pairs[~known])
        side[known] = edit.y[np.searchsorted(edit.nodes, edit.pairs[known])]
        same = side[:, 0] == side[:, 1]
        if same.any():
            u, v = edit.pairs[same][0].tolist()
            raise GraphError(
                f"a new edge must join both sides of the bipartite graph: {u} and {v} are on "
                f"one side ({int(same.sum())} of {len(same)} new edges are of one side)."
            )

    def check_removal(self, graph: Graph, removal: Removal) -> None:
        """Refuse to take the last edge."""
        super().check_removal(graph, removal)
        self.check_edges_left(graph, removal)

    def check_left(self, before: Graph, after: Graph) -> None:
        """Refuse a graph after changes that has no edges."""
        if after.num_edges == 0:
            raise EmptyEnsembleError(
                f"the request takes the last {before.num_edges} edges: there would be nothing to "
                "learn links from.",
                hint="delete the run instead, or leave some edges in it.",
            )


_FACTS = replace(LinkTask.predict, asks="facts", ends=3, by_text=True)


def _known(part: Any, target: str) -> Any:
    """Return new nodes of the target type as training nodes, as all are; the rest as it is."""
    if not isinstance(part, AddNodes) or part.type not in (None, target):
        return part
    return part.labelled(np.zeros(len(part.ids), dtype=np.int64))


def _sided(new: AddNodes, sides: Sides) -> AddNodes:
    """Return new nodes with the labels that tell their sides."""
    given = new.y != UNLABELLED
    if sides == BY_LABEL:
        wrong = new.ids[~np.isin(new.y, (0, 1))]
        if len(wrong):
            raise GraphError(
                f"'y' of AddNodes must tell the side of each new node, 0 or 1 (node {wrong[0]} "
                "has another)."
            )
        return new
    if given.any():
        raise GraphError(
            f"'y' of AddNodes has no part in a run whose sides are not told by labels "
            f"(node {new.ids[given][0]} has one)."
        )
    return new.labelled(sides_of(new.ids, sides))


def _from_pyg(data: Any, sides: Sides) -> Graph:
    """Read a PyG ``Data`` without its labels and masks; labels may tell the sides."""
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
