"""The task of predicting the labels of whole graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines.graph_checks import check_classes
from grapheraser.eraser.settings import Settings
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.task import Question, Task, tallied
from grapheraser.errors import EmptyEnsembleError, GraphError, ParameterError, UnknownNodeError
from grapheraser.graph import AddNodes, Graph, Labels, Nodes, SetFeatures, SetLabels
from grapheraser.graph.changes.parts import (
    AddGraphs,
    GraphEdges,
    GraphNodes,
    Graphs,
    Rewritten,
    SetGraphs,
)
from grapheraser.graphs.collection import Collection
from grapheraser.graphs.encoding import rows_of
from grapheraser.graphs.learner import GraphPool
from grapheraser.graphs.settings import CLOSED_FORM, OF_SHARDS, OWNER, partitioner_of, resolve
from grapheraser.kinds import (
    ADD,
    FEATURES,
    FORGET,
    GRAPH_EDGES,
    GRAPH_NODES,
    GRAPHS,
    LABELS,
    NODES,
    SET,
    Item,
)
from grapheraser.nodes.answers import outputs_of
from grapheraser.partition import Partition
from grapheraser.partition.partitioning import partition_for
from grapheraser.receipts.part import About


class CollectionTask(Task):
    """Labels of whole graphs: each is a node, whose feature row it is written in."""

    name = "graphs"
    owner = OWNER
    added = MappingProxyType({"model": CLOSED_FORM, **OF_SHARDS})
    predicts = "the labels of graphs"
    kinds = (GRAPHS.name, GRAPH_NODES.name, GRAPH_EDGES.name, LABELS.name)
    predict = Question("graphs", 1, lambda eraser, ids: eraser.answers(ids), outputs_of)

    def resolve(
        self, arguments: Mapping[str, Any], fitted_as: Mapping[str, Any] | None = None
    ) -> Settings:
        """See `Task`."""
        return resolve(arguments, fitted_as)

    def graph_of(self, arguments: Mapping[str, Any], settings: Settings, world: Any) -> Graph:
        """See `Task`."""
        del arguments
        if isinstance(world, Graph):
            raise ParameterError(
                "'collection' of CollectionEraser.fit must be a Collection, not a Graph.",
                hint="ge.GraphEraser learns the nodes of one graph.",
            )
        graph = (world if isinstance(world, Collection) else Collection.from_pyg(world)).graph
        if graph.num_train == 0:
            raise GraphError(f"collection '{graph.name}' has no graphs to learn from.")
        if graph.label_kind.is_classes:
            check_classes(settings.training, graph)
        elif not isinstance(settings.aggregator, GraphPool):
            raise GraphError(
                f"this aggregation combines classes (the graphs have {graph.label_kind.words}).",
                hint="use aggregation='routed', or model='closed-form'.",
            )
        return graph

    def partition_of(
        self, arguments: Mapping[str, Any], settings: Settings, graph: Graph
    ) -> Partition:
        """See `Task`."""
        if settings.training.model.closed_form:
            return super().partition_of(arguments, settings, graph)
        named = {name: arguments[name] for name in ("num_shards", "seed")}
        return partition_for(self.owner, graph, partitioner_of(arguments["partition"]), **named)

    # -- requests and changes -----------------------------------------------------------------

    def changes_of(self, now: Snapshot, changes: Sequence[Any]) -> Sequence[Any]:
        """Translate graphs and their parts into nodes and feature rows."""
        collection, parts = Collection(now.state.graph), []
        made: list[Any] = []
        for part in changes:
            if isinstance(part, Graphs):
                made.append(part.in_graph)
            elif isinstance(part, GraphNodes | GraphEdges):
                parts.append(part)
            elif isinstance(part, AddGraphs):
                made.append(AddNodes(list(part.ids), collection.rows_of(part.graphs), part.y))
            elif isinstance(part, SetGraphs):
                made.append(SetFeatures(list(part.ids), collection.rows_of(part.graphs)))
            elif isinstance(part, Labels | SetLabels):
                made.append(part)
            else:
                raise ParameterError(
                    "a collection takes Graphs, Nodes(..., graph=...), Edges(..., graph=...), "
                    f"Labels, AddGraphs, SetGraphs and SetLabels. Got {part!r}."
                )
        gone = {node for part in made if isinstance(part, Nodes) for node in part.ids}
        return [*made, *([_rewritten(collection, parts, gone)] if parts else [])]

    def check_removal(self, graph: Graph, removal: Any) -> None:
        """Refuse to take the last training graph."""
        if graph.num_train == graph.trained_among(removal):
            raise _none_left(graph)

    def check_left(self, before: Graph, after: Graph) -> None:
        """Refuse a collection without training graphs."""
        if after.num_train == 0:
            raise _none_left(before)

    # -- and back -----------------------------------------------------------------------------

    def spelled(self, about: About) -> About:
        """Say what a part of a receipt is about as graphs."""
        for verb, noun in ((FORGET, NODES.noun), (ADD, NODES.noun), (SET, FEATURES.noun)):
            if about.get(verb) == noun:
                return {**about, verb: GRAPHS.noun}
        return about

    def counted(self, counts: dict[str, int], abouts: Sequence[About]) -> dict[str, int]:
        """Count graphs and their parts in the place of nodes and feature rows."""
        return tallied(self.kinds, counts, abouts)

    def requests_of(self, requests: Sequence[Any]) -> list[Any]:
        """Return requests of the graph as requests of graphs."""
        return [Graphs(part.ids) if isinstance(part, Nodes) else part for part in requests]

    def items_in(self, now: Snapshot, requests: Sequence[Any]) -> set[Item]:
        """See `Task`."""
        found = super().items_in(now, requests)
        return {Item(GRAPHS, item.ids) if item.kind is NODES else item for item in found}

    def everything(self, graph: Graph) -> dict[str, Any]:
        """See `Task`."""
        collection, nodes, edges = Collection(graph), [], []
        for name in graph.ids.tolist():
            small = collection[name]
            nodes += [(name, node) for node in small.nodes.tolist()]
            edges += [(name, *pair) for pair in small.edges.tolist()]
        labels = graph.ids[graph.label_kind.labelled(graph.y)]
        parts = {GRAPH_NODES.name: nodes, GRAPH_EDGES.name: edges}
        return {GRAPHS.name: graph.ids, **parts, LABELS.name: labels}


def _rewritten(
    collection: Collection, parts: Sequence[GraphNodes | GraphEdges], gone: set[int]
) -> Rewritten:
    """Return the rows of graphs without what requests name of them, but for graphs that go."""
    named: dict[int, dict[type[Any], list[tuple[int, ...]]]] = {}
    for part in parts:
        for graph, *inside in part.parts:
            if graph not in gone:
                asked = named.setdefault(graph, {GraphNodes: [], GraphEdges: []})
                asked[type(part)].append(tuple(inside))
    unknown = [g for g in named if not collection.graph.contains(np.array([int(g)])).all()]
    if unknown:
        raise UnknownNodeError.of(unknown, len(named))
    told: dict[str, list[list[int]]] = {GRAPH_NODES.name: [], GRAPH_EDGES.name: []}
    kept: list[int] = []
    rows: list[NDArray[np.int64]] = []
    absent: list[Any] = []
    for graph, asked in sorted(named.items()):
        small = collection[graph]
        nodes, pairs = _ids(asked[GraphNodes], 1)[:, 0], _ids(asked[GraphEdges], 2)
        there = {GraphNodes: np.isin(nodes, small.nodes), GraphEdges: small.has_edges(pairs)}
        for made, known in there.items():
            each = list(zip(asked[made], known.tolist(), strict=True))
            told[made.kind.name] += [[int(graph), *inside] for inside, found in each if found]
            absent += [made([(graph, *inside)]) for inside, found in each if not found]
        if any(known.any() for known in there.values()):
            rows.append(small.without(nodes, pairs).numbers)
            kept.append(graph)
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    x = rows_of(flat, np.array([len(row) for row in rows], dtype=np.int64))
    return Rewritten(kept, x, {name: part for name, part in told.items() if part}, tuple(absent))


def _ids(inside: Sequence[tuple[int, ...]], ends: int) -> NDArray[np.int64]:
    return np.array(inside, dtype=np.int64).reshape(-1, ends)


def _none_left(graph: Graph) -> EmptyEnsembleError:
    return EmptyEnsembleError(
        f"the request takes the last {graph.num_train} training graphs or their labels: there "
        "would be nothing to predict by.",
        hint="delete the run instead, or leave some training graphs in it.",
    )
