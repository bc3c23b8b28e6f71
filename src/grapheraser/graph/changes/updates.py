"""Changes of a graph: nodes and edges to add, features and labels to set.

Like a request, a change is a frozen value. It checks its own shapes; `edit` checks a list of
changes against a graph and merges them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import GraphError, ParameterError, named
from grapheraser.graph.arrays import as_array
from grapheraser.graph.build import (
    ClassNames,
    are_ids,
    check_features,
    check_labels,
    classes_of,
    unknown_class,
)
from grapheraser.graph.changes import typed
from grapheraser.graph.changes.requests import Request, as_tuple, fill, pairs_of
from grapheraser.graph.edge_values import EdgeKind, Values, checked_values
from grapheraser.graph.encoding import Encoding, encoded, given_rows
from grapheraser.graph.formats.tables import Table
from grapheraser.graph.ids import (
    NO_NAMES,
    Names,
    as_called,
    as_ids,
    ids_and_names,
    listed,
    names_of,
    one_id,
    with_names,
)
from grapheraser.graph.label_input import kind_of, labels_for
from grapheraser.graph.labels import CLASSES, LabelKind
from grapheraser.graph.roles import UNLABELLED
from grapheraser.graph.types import Types
from grapheraser.kinds import ADD_EDGES, ADD_NODES, CHANGES, KINDS, SET_FEATURES, SET_LABELS, Kind

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

Ids = NDArray[np.int64]
Features = Any  # ArrayLike | sp.sparray | sp.spmatrix, or a table
_NO_ROWS = sp.csr_array(np.zeros((0, 0), dtype=np.float32))
Classes = ArrayLike | Sequence[int | str | None]


class NewEdges(NamedTuple):
    """Edges as they were given."""

    pairs: Ids  # ids ``[m, 2]``, sources and targets
    values: Values  # what each carries, weight first ``[m, width]``
    weighted: bool  # whether there are weights among it
    called: Mapping[int, int]  # names by id, of the ends that were given by name

    @classmethod
    def of(cls, given: Sequence[tuple[int, int]], edge_weight: Any, edge_attr: Any) -> NewEdges:
        """Check what was given of some edges besides their ends."""
        weighted, values = checked_values(edge_weight, edge_attr, len(given))
        pairs = np.array(given, dtype=np.int64).reshape(-1, 2)
        pairs.flags.writeable = values.flags.writeable = False
        return cls(pairs, values, weighted, with_names(chain(*given)))


@dataclass(frozen=True, eq=False, init=False)
class AddNodes:
    """Add nodes: training nodes where they have a label, context nodes where they have none.

    Args:
        ids: of the new nodes, or names where nodes have them; none may be in the graph.
        x: their features ``[len(ids), num_features]``, dense or scipy sparse; or a table, where
            the graph was made of one; None where nodes of their type have none.
        y: the class of each, or its name where classes have names; -1 or None where it is not
            known; None: of none of them. Or a row of targets for each, as `Graph.from_arrays`
            takes them, where the graph has several labels per node or numbers.
        edges: pairs of ids ``[m, 2]`` with a new node in each; the other end may be new too. In a
            directed graph an edge leads from the first to the second.
        edge_weight: one number for each edge, where the graph's edges have weights.
        edge_attr: one row for each edge, where they have features.
        type: of the nodes, in a typed graph; ``x`` has the columns of that type. Their edges are
            `AddEdges` of the same list.
    """

    kind: ClassVar[Kind] = ADD_NODES
    ids: Ids
    x: sp.csr_array
    y: Ids
    edges: NewEdges
    names: Names
    words: tuple[str, ...]
    given: Any
    placed: bool
    raw: Table | NDArray[Any] | None
    type: str | None

    def __init__(
        self,
        ids: Iterable[int | str] | ArrayLike,
        x: Features | None = None,
        y: Classes | None = None,
        edges: Iterable[Iterable[int | str]] | ArrayLike = (),
        *,
        edge_weight: ArrayLike | None = None,
        edge_attr: ArrayLike | None = None,
        type: str | None = None,
    ) -> None:
        nodes, names = ids_and_names(ids)
        _once("AddNodes", nodes, {})  # names have been checked
        if len(nodes) and nodes.min() < 0:
            raise GraphError(f"node ids must be non-negative (found {nodes.min()}).")
        given = np.full(len(nodes), UNLABELLED) if y is None else y
        labels, words = _labels_of("AddNodes", given, nodes)
        fill(self, given=None if y is None else _kept(y))
        joined = NewEdges.of(pairs_of("AddNodes", edges), edge_weight, edge_attr)
        loose = ~np.isin(joined.pairs, nodes).any(axis=1)
        if loose.any():
            u, v = as_called(joined.pairs[loose][0], joined.called)
            raise GraphError(
                f"an edge of AddNodes must have one of its nodes at an end (found [{u}, {v}]).",
                hint="edges between nodes that are there already are AddEdges.",
            )
        names = NO_NAMES if names is None else names
        fill(self, names=names, **_rows_of("AddNodes", x, len(nodes)))
        fill(self, ids=nodes, y=labels, edges=joined, words=words, placed=False, type=type)

    def labelled(self, y: Ids) -> AddNodes:
        """Return the change with other labels."""
        return _with_labels(self, y)

    def rows(self, kind: LabelKind) -> NDArray[np.float64]:
        """Return the targets of the new nodes ``[len(ids), kind.count]``, NaN if unknown."""
        return _targets(self, kind, None)


@dataclass(frozen=True, eq=False, init=False)
class AddEdges:
    """Add edges between nodes that are there, or that the same list of changes adds.

    An edge that is there already gets the mean of what it carries and what is given, with a
    warning.

    Args:
        pairs: of ids ``[m, 2]``; in a directed graph an edge leads from the first to the second.
        weight: one number for each edge, where the graph's edges have weights.
        edge_attr: one row for each edge, where they have features.
        type: the relation, in a typed graph: its source type, name and target type.
    """

    kind: ClassVar[Kind] = ADD_EDGES
    edges: NewEdges
    type: tuple[str, ...] | str | None

    def __init__(
        self,
        pairs: Iterable[Iterable[int | str]] | ArrayLike,
        weight: ArrayLike | None = None,
        edge_attr: ArrayLike | None = None,
        type: Sequence[str] | str | None = None,
    ) -> None:
        said = tuple(type) if isinstance(type, list | tuple) else type
        fill(self, edges=NewEdges.of(pairs_of("AddEdges", pairs), weight, edge_attr), type=said)


@dataclass(frozen=True, eq=False, init=False)
class SetFeatures:
    """Give nodes other features.

    Args:
        nodes: their ids or names.
        x: the new rows ``[len(nodes), num_features]``, dense or scipy sparse; or a table, where
            the graph was made of one.
        type: of the nodes, in a typed graph; ``x`` has the columns of that type.
    """

    kind: ClassVar[Kind] = SET_FEATURES
    ids: Ids
    x: sp.csr_array
    called: Mapping[int, int]
    raw: Table | NDArray[Any] | None
    type: str | None

    def __init__(
        self, nodes: Iterable[int | str] | ArrayLike, x: Features, type: str | None = None
    ) -> None:
        ids, called = _ids_of("SetFeatures", nodes)
        fill(self, ids=ids, called=called, type=type, **_rows_of("SetFeatures", x, len(ids)))


@dataclass(frozen=True, eq=False, init=False)
class SetLabels:
    """Give nodes another label, or their first: a context node becomes a training node.

    Validation and test nodes stay what they are.

    Args:
        nodes: their ids or names.
        y: the class of each, or its name where classes have names; or a row of targets for each,
            of which -1 and NaN stay as they are.
        target: the name or number of the one target that ``y`` holds a value of for each node.
    """

    kind: ClassVar[Kind] = SET_LABELS
    ids: Ids
    y: Ids
    called: Mapping[int, int]
    words: tuple[str, ...]
    given: Any
    target: int | str | None
    placed: bool

    def __init__(
        self,
        nodes: Iterable[int | str] | ArrayLike,
        y: Classes,
        target: int | str | None = None,
    ) -> None:
        ids, called = _ids_of("SetLabels", nodes)
        labels, words = _labels_of("SetLabels", y, ids)
        of_classes = target is None and kind_of(y, None) == CLASSES
        if of_classes and (labels == UNLABELLED).any():
            (node,) = as_called(ids[labels == UNLABELLED][:1], called)
            raise GraphError(
                f"a label to set must be a class (found none for node {node}).",
                hint="forget a label with ge.Labels.",
            )
        given = {"given": _kept(y), "target": target}
        fill(self, ids=ids, y=labels, called=called, words=words, placed=False, **given)

    def rows(self, kind: LabelKind) -> NDArray[np.float64]:
        """Return the targets to set ``[len(ids), kind.count]``, NaN for those that stay."""
        return _targets(self, kind, self.target)


GraphChange: TypeAlias = Request | AddNodes | AddEdges | SetFeatures | SetLabels


def as_changes(changes: GraphChange | Sequence[GraphChange]) -> tuple[GraphChange, ...]:
    """Return one change, or a sequence of them, as a tuple."""
    found = (changes,) if isinstance(changes, GraphChange) else as_tuple(changes)
    for item in found:
        if not isinstance(item, GraphChange):
            classes = ", ".join(kind.class_name for kind in (*CHANGES.values(), *KINDS.values()))
            raise ParameterError(f"a change must be {classes} or a list of them. Got {item!r}.")
    return found


def with_labels(change: GraphChange, kind: LabelKind) -> GraphChange:
    """Return the change with labels that a graph of this kind can have; refuse all others."""
    if kind.is_classes:
        return with_classes(change, kind.names)
    if isinstance(change, AddNodes | SetLabels):
        change.rows(kind)
    return change


def with_classes(change: GraphChange, names: ClassNames) -> GraphChange:
    """Return the change with classes for labels that were given by name; once."""
    if not isinstance(change, AddNodes | SetLabels) or change.placed:
        return change
    if change.given is not None and kind_of(change.given, None) != CLASSES:
        check_labels(change.given, len(change.ids), None)  # says why not
    if isinstance(change, SetLabels) and change.target is not None:
        raise GraphError("a node of this graph has one class: leave 'target' of SetLabels out.")
    if not change.words:
        return _with_labels(change, classes_of(change.y, names)[0]) if are_ids(names) else change
    if not names:
        raise GraphError(
            "the classes of this graph have no names: labels must be integers "
            f"(found {change.words[0]!r})."
        )
    words = tuple(map(str, names))
    unknown = [word for word in change.words if word not in words]
    if unknown:
        raise unknown_class(unknown[0], names, ": new classes need a new fit")
    classes = np.array([*map(words.index, change.words), UNLABELLED])
    return _with_labels(change, classes[change.y])


def with_keyed_ids(change: GraphChange, graph: Graph) -> GraphChange:
    """Return the change with keyed ids in the place of numbers, where a graph has them."""
    if isinstance(change, Request):
        return change
    made: GraphChange = change
    if graph.types is not None:
        made = _of_types(change, graph, graph.types)
        return made
    if getattr(change, "type", None):
        raise ParameterError("the nodes and edges of this graph have no types (found one).")
    if not graph.keyed:
        return change
    found: dict[str, Any] = {}
    if not isinstance(change, AddEdges):
        found["ids"] = graph.ids_of(change.ids)
    if isinstance(change, AddNodes | AddEdges):
        pairs = graph.ids_of(change.edges.pairs.ravel()).reshape(-1, 2)
        found["edges"] = change.edges._replace(pairs=pairs)
    made = _with(change, **found)
    return made


def _of_types(change: Any, graph: Graph, types: Types) -> Any:
    """Return a change of a typed graph with its ids, feature columns and bits of relations."""
    kind, resolve = getattr(change, "type", None), types.resolved
    if isinstance(change, AddEdges):
        pairs, called = change.edges.pairs.tolist(), change.edges.called
        if kind is None or change.edges.values.shape[1] > change.edges.weighted:
            raise ParameterError("AddEdges to a typed graph needs 'type', a relation.")
        ends = [tuple(called.get(end, end) for end in pair) for pair in pairs]
        facts = [(u, kind, v) for u, v in ends]
        triples = np.array(typed.relations_of(types, facts, graph.named), dtype=np.int64)
        triples = triples.reshape(-1, 3)
        if change.edges.weighted != types.weighted[types.relation(kind)]:
            raise GraphError(f"edges of {kind} have weights, or have none; new ones are alike.")
        weights = change.edges.values.sum(axis=1, dtype=np.float64)
        values = types.values(np.arange(len(triples)), len(triples), triples[:, 2], weights)
        return _with(change, edges=NewEdges(triples[:, :2], values, False, {}))
    names, called = getattr(change, "names", NO_NAMES), getattr(change, "called", {})
    given = names if len(names) else [called.get(i, i) for i in change.ids.tolist()]
    nodes = [resolve(node, kind, named=graph.named) for node in given]
    found: dict[str, Any] = {"ids": np.array(nodes, dtype=np.int64)}
    if len(names):
        found["names"] = names_of(str(node) for node in nodes)
    if isinstance(change, AddNodes | SetFeatures):
        found["x"] = types.widened(found["ids"], change.x)
    if isinstance(change, AddNodes) and len(change.edges.pairs):
        raise ParameterError("edges of new nodes in a typed graph are AddEdges of the same list.")
    others = types.of(found["ids"]) != 0
    if isinstance(change, AddNodes):
        others &= change.y != UNLABELLED
    if not isinstance(change, SetFeatures) and others.any():
        raise ParameterError(f"only nodes of type '{types.target}' have labels.")
    return _with(change, **found)


def with_features(change: GraphChange, encoding: Encoding | None) -> GraphChange:
    """Return the change with feature rows by the rule of a graph, gaps as 0."""
    if not isinstance(change, AddNodes | SetFeatures) or not len(change.ids):
        return change
    given: Any = change.x if change.raw is None else change.raw
    rows = encoded(encoding, given)
    return (
        change
        if rows is change.x
        else _with(change, x=sp.csr_array(check_features(rows)), raw=None)
    )


def one_training_node(
    graph: Graph,
    node: int | str,
    features: Features,
    label: Any,
    neighbours: ArrayLike,
    edge_weight: Any = None,
    edge_attr: Any = None,
) -> AddNodes:
    """Make the change that adds one training node to a graph; see `Graph.with_node`.

    Where edges carry nothing, a neighbour that is named twice counts once.
    """
    node = one_id(node, "node", "Graph.with_node")
    is_numbers = graph.label_kind.is_numbers
    if np.ndim(label) == 0 and (np.isnan(label) if is_numbers else label == UNLABELLED):
        raise GraphError(f"training nodes need a label (found {label}).")
    edges = edges_both_ways(graph.edge_kind, node, neighbours, edge_weight, edge_attr)
    return AddNodes([node], features, [label], **edges)


def edges_both_ways(
    kind: EdgeKind,
    node: int,
    neighbours: ArrayLike,
    edge_weight: Any = None,
    edge_attr: Any = None,
) -> dict[str, Any]:
    """Return the edges of `AddNodes` between a node and its neighbours; see `one_training_node`."""
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


def _with_labels(change: Any, y: Ids) -> Any:
    """Return the change with other labels, given as integers."""
    return _with(change, y=y, words=(), placed=True)


def _with(change: Any, **others: Any) -> Any:
    """Return the change with other fields."""
    new = object.__new__(type(change))
    fill(new, **{field.name: getattr(change, field.name) for field in fields(change)})
    fill(new, **others)
    return new


def _ids_of(owner: str, nodes: Any) -> tuple[Ids, Mapping[int, int]]:
    """Return ids, each once, in the order in which they were given, and the names among them."""
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


def _rows_of(owner: str, x: Any, count: int) -> dict[str, Any]:
    """Return feature rows, or ``raw`` what only a graph's rule makes features of."""
    given = given_rows(np.zeros((count, 0)) if x is None else x)
    if isinstance(given, Table):
        if len(given) != count:
            raise _of_other_length(owner, count, [len(given), len(given.columns)])
        return {"x": _NO_ROWS, "raw": given}
    if given.ndim == 1 and count == 1:
        given = given.reshape(1, -1)
    if given.ndim == 2 and given.shape[0] != count:
        raise _of_other_length(owner, count, list(given.shape))
    if count == 0:
        return {"x": _NO_ROWS, "raw": None}
    plain = given.ndim == 2 and given.dtype.kind == "f" and not sp.issparse(given)
    if plain and np.isnan(given).any():
        return {"x": _NO_ROWS, "raw": given}
    return {"x": sp.csr_array(check_features(given)), "raw": None}


def _of_other_length(owner: str, count: int, shape: list[int]) -> GraphError:
    return GraphError(
        f"'x' of {owner} must have one row for each of {count} nodes (found shape {shape})."
    )


def _kept(y: Any) -> Any:
    """Return labels as they were given, in memory of their own."""
    plain = not isinstance(y, np.ndarray) and not hasattr(y, "detach")
    return tuple(y) if plain and isinstance(y, Iterable) and not isinstance(y, str) else np.array(y)


def _targets(
    change: AddNodes | SetLabels, kind: LabelKind, target: int | str | None
) -> NDArray[np.float64]:
    """Return the targets that a change brings to a graph with labels of this kind."""
    count, what = len(change.ids), f"'y' of {change.kind.class_name}"
    if change.given is None:
        return np.full((count, kind.count), np.nan)
    if target is None:
        return kind.rows(labels_for(kind, change.given, count, what))
    rows, column = np.full((count, kind.count), float(kind.unknown)), kind.number_of(target)
    values = as_array(change.given, what)
    if values.size != count:
        raise GraphError(f"{what} must have one value for each of {count} nodes.")
    rows[:, column] = values.reshape(-1)
    return kind.rows(labels_for(kind, rows, count, what))


def _labels_of(owner: str, y: Any, ids: Ids) -> tuple[Ids, tuple[str, ...]]:
    """Return labels, and the words that they stand for where they were given as words."""
    if kind_of(y, None) != CLASSES:  # the graph says whether it has such labels
        return np.full(len(ids), UNLABELLED), ()
    given, words = classes_of([y] if isinstance(y, str) else y, None)
    given = as_array(given, "labels")
    given = given.ravel() if given.ndim == 0 else given
    if given.shape != (len(ids),):
        raise GraphError(
            f"'y' of {owner} must have one label for each of {len(ids)} nodes "
            f"(found shape {list(given.shape)})."
        )
    return check_labels(given, len(ids), 2**31 - 1)[0], tuple(map(str, words))
