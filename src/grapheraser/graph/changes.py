"""Changes of a graph: nodes and edges to add, features and labels to set.

Like a request, a change is a frozen value. It checks its own shapes; `edit` checks a list of
changes against a graph and merges them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import GraphError, ParameterError, named
from grapheraser.graph.arrays import as_array, fresh
from grapheraser.graph.build import check_features, check_labels, classes_of
from grapheraser.graph.edge_values import EdgeKind
from grapheraser.graph.ids import as_called, as_ids, listed, one_id, with_names
from grapheraser.graph.names import NO_NAMES, Names, ids_and_names
from grapheraser.graph.new_edges import NewEdges
from grapheraser.graph.requests import Request, as_tuple, pairs_of
from grapheraser.graph.roles import UNLABELLED

Ids = NDArray[np.int64]
Features = ArrayLike | sp.sparray | sp.spmatrix
Classes = ArrayLike | Sequence[int | str | None]


@dataclass(frozen=True, eq=False, init=False)
class AddNodes:
    """Add nodes: training nodes where they have a label, context nodes where they have none.

    Args:
        ids: of the new nodes, or names where nodes have them; none may be in the graph.
        x: their features ``[len(ids), num_features]``, dense or scipy sparse.
        y: the class of each, or its name where classes have names; -1 or None where it is not
            known; None: of none of them.
        edges: pairs of ids ``[m, 2]`` with a new node in each; the other end may be new too. In a
            directed graph an edge leads from the first to the second.
        edge_weight: one number for each edge, where the graph's edges have weights.
        edge_attr: one row for each edge, where they have features.
    """

    ids: Ids
    x: sp.csr_array
    y: Ids
    edges: NewEdges
    names: Names
    words: tuple[str, ...]

    def __init__(
        self,
        ids: Iterable[int | str] | ArrayLike,
        x: Features,
        y: Classes | None = None,
        edges: Iterable[Iterable[int | str]] | ArrayLike = (),
        *,
        edge_weight: ArrayLike | None = None,
        edge_attr: ArrayLike | None = None,
    ) -> None:
        nodes, names = ids_and_names(ids)
        _once("AddNodes", nodes, {})  # names have been checked
        if len(nodes) and nodes.min() < 0:
            raise GraphError(f"node ids must be non-negative (found {nodes.min()}).")
        rows = _rows_of("AddNodes", x, len(nodes))
        given = np.full(len(nodes), UNLABELLED) if y is None else y
        labels, words = _labels_of("AddNodes", given, nodes)
        joined = NewEdges.of(pairs_of("AddNodes", edges), edge_weight, edge_attr)
        loose = ~np.isin(joined.pairs, nodes).any(axis=1)
        if loose.any():
            u, v = as_called(joined.pairs[loose][0], joined.called)
            raise GraphError(
                f"an edge of AddNodes must have one of its nodes at an end (found [{u}, {v}]).",
                hint="edges between nodes that are there already are AddEdges.",
            )
        _set(self, ids=nodes, x=rows, y=labels, edges=joined, words=words)
        _set(self, names=NO_NAMES if names is None else names)

    def labelled(self, y: Ids) -> AddNodes:
        """The same nodes with other labels."""
        return _with_labels(self, y)


@dataclass(frozen=True, eq=False, init=False)
class AddEdges:
    """Add edges between nodes that are there, or that the same list of changes adds.

    An edge that is there already gets the mean of what it carries and what is given, with a
    warning.

    Args:
        pairs: of ids ``[m, 2]``; in a directed graph an edge leads from the first to the second.
        weight: one number for each edge, where the graph's edges have weights.
        edge_attr: one row for each edge, where they have features.
    """

    edges: NewEdges

    def __init__(
        self,
        pairs: Iterable[Iterable[int | str]] | ArrayLike,
        weight: ArrayLike | None = None,
        edge_attr: ArrayLike | None = None,
    ) -> None:
        _set(self, edges=NewEdges.of(pairs_of("AddEdges", pairs), weight, edge_attr))


@dataclass(frozen=True, eq=False, init=False)
class SetFeatures:
    """Give nodes other features.

    Args:
        nodes: their ids or names.
        x: the new rows ``[len(nodes), num_features]``, dense or scipy sparse.
    """

    ids: Ids
    x: sp.csr_array
    called: Mapping[int, int]

    def __init__(self, nodes: Iterable[int | str] | ArrayLike, x: Features) -> None:
        ids, called = _ids_of("SetFeatures", nodes)
        _set(self, ids=ids, x=_rows_of("SetFeatures", x, len(ids)), called=called)


@dataclass(frozen=True, eq=False, init=False)
class SetLabels:
    """Give nodes another label, or their first: a context node becomes a training node.

    Validation and test nodes stay what they are.

    Args:
        nodes: their ids or names.
        y: the class of each, or its name where classes have names.
    """

    ids: Ids
    y: Ids
    called: Mapping[int, int]
    words: tuple[str, ...]

    def __init__(self, nodes: Iterable[int | str] | ArrayLike, y: Classes) -> None:
        ids, called = _ids_of("SetLabels", nodes)
        labels, words = _labels_of("SetLabels", y, ids)
        if (labels == UNLABELLED).any():
            (node,) = as_called(ids[labels == UNLABELLED][:1], called)
            raise GraphError(
                f"a label to set must be a class (found none for node {node}).",
                hint="forget a label with ge.Labels.",
            )
        _set(self, ids=ids, y=labels, called=called, words=words)


GraphChange: TypeAlias = Request | AddNodes | AddEdges | SetFeatures | SetLabels


def as_changes(changes: GraphChange | Sequence[GraphChange]) -> tuple[GraphChange, ...]:
    """Return one change, or a sequence of them, as a tuple."""
    found = (changes,) if isinstance(changes, GraphChange) else as_tuple(changes)
    for item in found:
        if not isinstance(item, GraphChange):
            raise ParameterError(
                "a change must be AddNodes, AddEdges, SetFeatures, SetLabels, Nodes, Edges, "
                f"Features, Labels or a list of them. Got {item!r}."
            )
    return found


def with_classes(change: GraphChange, names: Sequence[str]) -> GraphChange:
    """A change whose labels are classes of a graph, which has these names of classes."""
    if not isinstance(change, AddNodes | SetLabels) or not change.words:
        return change
    if not names:
        raise GraphError(
            "the classes of this graph have no names: labels must be integers "
            f"(found {change.words[0]!r})."
        )
    unknown = [word for word in change.words if word not in names]
    if unknown:
        raise GraphError(
            f"labels must be among the classes {', '.join(names)} (found {unknown[0]!r}): new "
            "classes need a new fit."
        )
    classes = np.array([*map(names.index, change.words), UNLABELLED])
    return _with_labels(change, classes[change.y])


def one_training_node(
    kind: EdgeKind,
    node: int | str,
    features: Features,
    label: int | str,
    neighbours: ArrayLike,
    edge_weight: Any = None,
    edge_attr: Any = None,
) -> AddNodes:
    """The change that adds one training node next to its neighbours.

    Neighbours have no direction: in a directed graph edges lead both ways.

    Args:
        kind: of the graph's edges.
        node: its id.
        features: its feature row.
        label: its class, or the name of it.
        neighbours: ids; where edges carry nothing, one that is named twice counts once.
        edge_weight: one number for each neighbour, where edges have weights.
        edge_attr: one row for each neighbour, where edges have features.
    """
    node = one_id(node, "node", "Graph.with_node")
    if label == UNLABELLED:
        raise GraphError("training nodes need a label (found -1).")
    edges = edges_both_ways(kind, node, neighbours, edge_weight, edge_attr)
    return AddNodes([node], features, [label], **edges)


def edges_both_ways(
    kind: EdgeKind,
    node: int,
    neighbours: ArrayLike,
    edge_weight: Any = None,
    edge_attr: Any = None,
) -> dict[str, Any]:
    """The edges of `AddNodes` between a node and its neighbours; see `one_training_node`."""
    others = as_ids(neighbours)
    others = others if kind.weighted or kind.columns else np.unique(others)
    pairs = np.stack([np.full(len(others), node), others], axis=1)
    carried = {"edge_weight": edge_weight, "edge_attr": edge_attr}
    given = {
        name: as_array(values, name)
        for name, values in carried.items()
        if values is not None and (len(others) or np.size(values))
    }
    if kind.directed:
        pairs = np.concatenate([pairs, pairs[:, ::-1]])
        given = {name: np.concatenate([values, values]) for name, values in given.items()}
    return {"edges": pairs, **given}


def _set(change: Any, **fields: Any) -> None:
    for name, value in fresh(**fields).items():
        object.__setattr__(change, name, value)


def _with_labels(change: Any, y: Ids) -> Any:
    """The same change with other labels, given as integers."""
    new = object.__new__(type(change))
    _set(new, **{field.name: getattr(change, field.name) for field in fields(change)})
    _set(new, y=y, words=())
    return new


def _ids_of(owner: str, nodes: Any) -> tuple[Ids, Mapping[int, int]]:
    """Ids, each once, in the order in which they were given, and the names among them."""
    found = listed(nodes, "node ids")
    ids, called = as_ids(found), with_names(found)
    return _once(owner, ids, called), called


def _once(owner: str, ids: Ids, called: Mapping[int, int]) -> Ids:
    once, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        twice = as_called(once[counts > 1], called)
        raise ParameterError(
            f"'ids' of {owner} must name each node once. Got {named(twice)} twice."
        )
    return ids


def _rows_of(owner: str, x: Any, count: int) -> sp.csr_array:
    given: Any = x if sp.issparse(x) else as_array(x, "features")
    if given.ndim == 1 and count == 1:
        given = given.reshape(1, -1)
    if given.ndim == 2 and given.shape[0] != count:
        raise GraphError(
            f"'x' of {owner} must have one row for each of {count} nodes "
            f"(found shape {list(given.shape)})."
        )
    if count == 0:
        return sp.csr_array(np.zeros((0, 0), dtype=np.float32))
    return sp.csr_array(check_features(given))


def _labels_of(owner: str, y: Any, ids: Ids) -> tuple[Ids, tuple[str, ...]]:
    """Labels, and the words that they stand for where they were given as words."""
    given, words = classes_of([y] if isinstance(y, str) else y, None)
    given = as_array(given, "labels")
    given = given.ravel() if given.ndim == 0 else given
    if given.shape != (len(ids),):
        raise GraphError(
            f"'y' of {owner} must have one label for each of {len(ids)} nodes "
            f"(found shape {list(given.shape)})."
        )
    return check_labels(given, len(ids), 2**31 - 1)[0], words
