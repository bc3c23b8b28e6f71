"""Requests: nodes, edges and feature rows to forget.

A request is a frozen value that names ids only. `coalesce` checks a list of requests against a
graph and merges them into one `Removal` without repetitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.canonical import digest_of
from grapheraser.checks import one_of, whole
from grapheraser.errors import (
    InputError,
    NothingToForgetError,
    ParameterError,
    UnknownEdgeError,
    UnknownNodeError,
    named,
)
from grapheraser.graph.arrays import fresh
from grapheraser.graph.changes import typed
from grapheraser.graph.edge_values import NO_VALUES, Values
from grapheraser.graph.ids import NamedId, as_called, listed, one_id, with_names
from grapheraser.graph.roles import UNLABELLED
from grapheraser.kernels.paged import feature_rows
from grapheraser.kernels.sets import ranks
from grapheraser.kinds import (
    EDGES,
    FEATURES,
    GRAPH_EDGES,
    GRAPH_KINDS,
    GRAPH_NODES,
    KINDS,
    LABELS,
    NODES,
    Kind,
)

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph
    from grapheraser.graph.types import Types

_PAIRS = "an iterable of pairs of ids"


def fill(value: Any, **fields: Any) -> None:
    """Give a frozen value its fields; nobody can write to its arrays from then on."""
    for name, field_ in fresh(**fields).items():
        object.__setattr__(value, name, field_)


class _Shown:
    """A request that shows what it names, by name where it was given so."""

    def __repr__(self) -> str:
        fields = ("ids", "pairs", "facts", "type", "cascade")
        found = [(name, getattr(self, name, ())) for name in fields]
        parts = [f"{name}={_spelled(value)!r}" for name, value in found if value]
        return f"{type(self).__name__}({', '.join(parts)})"


def _spelled(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_spelled, value))
    return value.name if isinstance(value, NamedId) else value


@dataclass(frozen=True, repr=False)
class _OfNodes(_Shown):
    """A request that names nodes by id, or by a mask over all nodes of the graph."""

    kind: ClassVar[Kind]
    ids: tuple[int, ...]
    mask: bytes | None = field(default=None, repr=False)
    type: str | None = field(default=None, repr=False)

    def __init__(self, ids: Iterable[int | str] | ArrayLike, type: str | None = None) -> None:
        found = listed(ids, f"'ids' of {self.kind.class_name}")
        mask = found.tobytes() if isinstance(found, np.ndarray) else None
        ids = () if mask is not None else tuple(sorted(set(found)))
        fill(self, ids=ids, mask=mask, type=type)

    @property
    def named(self) -> tuple[int, ...]:
        """The ids that the request names."""
        return self.ids


@dataclass(frozen=True, repr=False)
class Nodes(_OfNodes):
    """Forget these nodes: their features, labels and all their edges.

    Args:
        ids: one id or name, any iterable, array or tensor of them, or a mask over all nodes of the
            graph.
        type: of the nodes, in a typed graph; None: the target type, or ``type/12`` says it. A mask
            is then over the nodes of that type.
        cascade: types whose nodes go as well where they exist only through nodes that go: they have
            neighbours of some type, and all of these go.
        graph: of a collection; the request is then a `GraphNodes`: nodes of that graph.
    """

    kind = NODES
    cascade: tuple[str, ...] = field(default=(), repr=False)
    followers: tuple[int, ...] = field(default=(), repr=False)

    def __new__(cls, ids: Any = (), *_: Any, graph: int | str | None = None, **__: Any) -> Any:
        """Make a `GraphNodes` where a graph is named."""
        if graph is None:
            return super().__new__(cls)
        return REQUESTS[GRAPH_NODES.name]([(graph, node) for node in Nodes(ids).ids])

    def __init__(
        self,
        ids: Iterable[int | str] | ArrayLike,
        type: str | None = None,
        *,
        cascade: str | Sequence[str] = (),
        graph: int | str | None = None,
    ) -> None:
        del graph
        super().__init__(ids, type)
        found = (cascade,) if isinstance(cascade, str) else tuple(cascade)
        fill(self, cascade=found, followers=())


class Features(_OfNodes):
    """Forget the features of these nodes; the nodes, their labels and edges stay.

    Args:
        ids: one id or name, any iterable, array or tensor of them, or a mask over all nodes of the
            graph.
        type: of the nodes, in a typed graph; see `Nodes`.
    """

    kind = FEATURES


@dataclass(frozen=True, repr=False)
class Labels(_OfNodes):
    """Forget the labels of these nodes; the nodes, their features and edges stay.

    Training nodes without any label become context nodes.

    Args:
        ids: one id or name, any iterable, array or tensor of them, or a mask over all nodes of the
            graph; or pairs of an id and a target, where nodes have several labels or numbers.
        target: forget this target of the nodes alone; its name or number. None: all that they have.
    """

    kind = LABELS
    pairs: tuple[tuple[int, int | str], ...] = ()

    def __init__(
        self,
        ids: Iterable[Any] | ArrayLike,
        target: int | str | None = None,
    ) -> None:
        given = ids.tolist() if getattr(ids, "ndim", 1) == 2 else ids  # type: ignore[union-attr]
        items = list(given) if isinstance(given, list | tuple | set | frozenset) else None
        apart = [item for item in items or () if isinstance(item, list | tuple)]
        super().__init__([i for i in items if i not in apart] if items and apart else ids)
        if target is not None:
            if self.mask is not None or apart:
                raise ParameterError("'target' of Labels needs ids, not a mask or pairs.")
            apart = [(node, target) for node in self.ids]
            fill(self, ids=())
        try:
            pairs = {(one_id(node, "ids", "Labels"), _target(one)) for node, one in apart}
        except (TypeError, ValueError):
            wanted = "ids, or pairs of an id and a target"
            raise ParameterError.of("ids", "Labels", wanted, ids) from None
        fill(self, pairs=tuple(sorted(pairs, key=_order)))

    @property
    def named(self) -> tuple[Any, ...]:
        """The ids, and the pairs of an id and a target, that the request names."""
        return (*self.ids, *self.pairs)

    def numbered(self, graph: Graph) -> Labels:
        """Return the request with the number of each target."""
        number = graph.label_kind.number_of
        return Labels([*self.ids, *((node, number(one)) for node, one in self.pairs)])


def _target(target: Any) -> int | str:
    if isinstance(target, str):
        return target
    return int(whole("target", "Labels", target))


def _order(item: Any) -> tuple[int, str]:
    """Sort ids before their targets."""
    return (item[0], str(item[1])) if isinstance(item, tuple) else (item, "")


@dataclass(frozen=True, repr=False)
class Edges(_Shown):
    """Forget these undirected edges; their end points stay. (3, 17) and (17, 3) are the same.

    Args:
        pairs: any iterable of pairs of ids or names, or an array or tensor ``[m, 2]``; pass an
            ``edge_index`` ``[2, m]`` as ``edge_index.T``. In a typed graph also triples: source,
            name of the relation, target.
        type: the relation, in a typed graph: its source type, name and target type, or its name
            where no other has it. Pairs are then sources and targets of these types, and other
            relations between them stay; without it all relations go.
        graph: of a collection; the request is then a `GraphEdges`: edges of that graph.
    """

    kind: ClassVar[Kind] = EDGES
    pairs: tuple[tuple[int, int], ...]
    facts: tuple[tuple[int, Any, int], ...] = field(default=(), repr=False)
    relations: tuple[tuple[int, int, int], ...] = field(default=(), repr=False)

    def __new__(cls, pairs: Any = (), *_: Any, graph: int | str | None = None, **__: Any) -> Any:
        """Make a `GraphEdges` where a graph is named."""
        if graph is None:
            return super().__new__(cls)
        return REQUESTS[GRAPH_EDGES.name]([(graph, *pair) for pair in Edges(pairs).pairs])

    def __init__(
        self,
        pairs: Iterable[Iterable[int | str]] | ArrayLike,
        type: Sequence[str] | str | None = None,
        *,
        graph: int | str | None = None,
    ) -> None:
        del graph
        plain, facts = _told_apart(pairs)
        found = pairs_of("Edges", plain)
        if type is not None:
            relation = type if isinstance(type, str) else tuple(type)
            facts, found = [(u, relation, v) for u, v in found], []
        canonical = {(min(u, v), max(u, v)) for u, v in found}
        fill(self, pairs=tuple(sorted(canonical)), facts=tuple(facts), relations=())

    @classmethod
    def of_relations(cls, relations: Iterable[tuple[int, int, int]], plain: Any = ()) -> Edges:
        """Return the request that names edges by their ends, the lower id first, and a bit.

        Args:
            relations: see `graph.types` for the bits.
            plain: pairs whose relations all go.
        """
        made = cls(plain)
        fill(made, relations=tuple(sorted(relations)))
        return made

    @property
    def named(self) -> tuple[tuple[int, ...], ...]:
        """The edges that the request names."""
        return (*self.pairs, *self.relations)


def _told_apart(pairs: Any) -> tuple[Any, list[tuple[int, Any, int]]]:
    """Tell pairs from triples with the name of a relation in the middle."""
    if not isinstance(pairs, list | tuple | set | frozenset):
        return pairs, []
    triples = [item for item in pairs if isinstance(item, list | tuple) and len(item) == 3]
    facts = [item for item in triples if isinstance(item[1], str | tuple)]
    if not facts:
        return pairs, []
    ends = pairs_of("Edges", [(u, v) for u, _, v in facts])
    named = [(u, fact[1], v) for fact, (u, v) in zip(facts, ends, strict=True)]
    return [item for item in pairs if item not in facts], named


Request: TypeAlias = Nodes | Edges | Features | Labels
# The class of each kind to forget, by name; tasks add theirs.
REQUESTS: dict[str, Any] = {made.kind.name: made for made in (Nodes, Edges, Features, Labels)}


@dataclass(frozen=True)
class Removal:
    """A checked, merged request: all ids exist, and nothing is named twice."""

    nodes: NDArray[np.int64]  # sorted ids of the nodes to remove
    # Ids ``[m, 2]`` (u < v) of further edges to remove; none touches one of ``nodes``.
    edges: NDArray[np.int64]
    # Sorted ids of further nodes whose features to remove; none is among ``nodes``.
    features: NDArray[np.int64]
    digest: str  # SHA-256 of the request as made, whatever the order of its parts
    # Sorted ids of further nodes whose labels to remove; none is among ``nodes``.
    labels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    skipped: tuple[Any, ...] = ()  # what was named and is not there, where that is no error
    # All that the request names and is there, as plain sorted lists by kind.
    named: dict[str, Any] = field(default_factory=dict)
    # Ids and targets ``[m, 2]`` of further labels to remove, of nodes that keep others.
    targets: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    # Those of ``edges`` that lose some of their relations only, and what they carry then.
    kept: tuple[NDArray[np.int64], Values] = (np.zeros((0, 2), dtype=np.int64), NO_VALUES)
    # Sorted ids of those of ``nodes`` that nobody named; see ``cascade`` of `Nodes`.
    followers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def relabelled(self) -> NDArray[np.int64]:
        """Sorted ids of the nodes that stay, and lose any label."""
        return np.union1d(self.labels, self.targets[:, 0]) if len(self.targets) else self.labels

    def labels_left(self, graph: Graph) -> NDArray[Any]:
        """Return the labels that the `relabelled` nodes of a graph keep."""
        kind, nodes = graph.label_kind, self.relabelled
        if kind.is_classes:
            return np.full(len(nodes), UNLABELLED)
        left = graph.labels(nodes).copy()
        left[ranks(nodes, self.labels) >= 0] = kind.unknown
        rows = left.reshape(len(nodes), kind.count)  # a view
        rows[np.searchsorted(nodes, self.targets[:, 0]), self.targets[:, 1]] = kind.unknown
        return left

    def unlabelled(self, graph: Graph) -> NDArray[np.int64]:
        """Return the sorted ids of the nodes that stay, without any label that is known."""
        if not len(self.targets):
            return self.labels
        return self.relabelled[~graph.label_kind.labelled(self.labels_left(graph))]

    @property
    def num_labels(self) -> int:
        """Number of labels to remove; all those of a node count once."""
        return len(self.labels) + len(self.targets)

    @property
    def num_skipped(self) -> int:
        """Number of items that were skipped."""
        return sum(len(request.named) for request in self.skipped)


NOTHING = Removal(
    np.zeros(0, dtype=np.int64),
    np.zeros((0, 2), dtype=np.int64),
    np.zeros(0, dtype=np.int64),
    digest="",
)
RAISE, SKIP = "raise", "skip"


def as_tuple(given: Any) -> tuple[Any, ...]:
    """Return the items of a sequence; anything else by itself, as an array of no dimension."""
    if isinstance(given, Iterable) and getattr(given, "ndim", 1) > 0:
        return tuple(given)
    return (given,)


def as_requests(request: Request | Sequence[Any]) -> tuple[Request, ...]:
    """Return one request, or a sequence of them, as a tuple."""
    requests = (request,) if isinstance(request, Request) else as_tuple(request)
    for item in requests:
        if not isinstance(item, Request):
            raise ParameterError(
                f"a request must be {', '.join(kind.class_name for kind in GRAPH_KINDS)} or a list "
                f"of them. Got {item!r}."
            )
    return requests


def in_graph(graph: Graph, request: Request | Sequence[Request]) -> tuple[Request, ...]:
    """Return the requests with ids in the place of masks, and of numbers where ids are keyed."""
    return tuple(_in_graph(graph, part) for part in as_requests(request))


def _in_graph(graph: Graph, part: Request) -> Request:
    if graph.types is not None:
        return _of_types(graph, graph.types, part)
    if any(getattr(part, name, None) for name in ("facts", "relations", "type", "cascade")):
        raise ParameterError("the nodes and edges of this graph have no types (found one).")
    if not isinstance(part, Edges) and part.mask is not None:
        return type(part)(graph.ids_of(np.frombuffer(part.mask, dtype=bool)))
    if isinstance(part, Labels) and part.pairs:
        part = part.numbered(graph)
    if not graph.keyed:
        return part
    if isinstance(part, Edges):
        return Edges([graph.inside(pair) for pair in part.pairs])
    ids: list[Any] = [*graph.inside(part.ids)]
    if isinstance(part, Labels):
        ids += [(*graph.inside([node]), target) for node, target in part.pairs]
    return type(part)(ids)


def _of_types(graph: Graph, types: Types, part: Request) -> Request:
    """Return a request of a typed graph with ids in the place of types, numbers and names."""
    if isinstance(part, Edges):
        known = [*part.relations, *typed.relations_of(types, part.facts, graph.named)]
        return Edges.of_relations(known, [graph.inside(pair) for pair in part.pairs])
    if isinstance(part, Labels):
        part = part if part.mask is not None else part.numbered(graph)
        pairs = [(*graph.inside([node]), target) for node, target in part.pairs]
        ids = graph.ids_of(np.frombuffer(part.mask, dtype=bool)) if part.mask else part.ids
        return Labels([*graph.inside([*ids]), *pairs])
    nodes = typed.nodes_of(graph, types, part.ids, part.type, part.mask)
    if not isinstance(part, Nodes):
        return Features(nodes)
    followers = typed.followers(graph, types, nodes, part.cascade)
    made = Nodes([*nodes, *followers])
    fill(made, followers=tuple(followers))
    return made


def canonical_form(requests: Iterable[Request]) -> dict[str, Any]:
    """Return the union of requests as plain sorted lists by kind, ready for JSON."""
    found: dict[str, set[Any]] = {name: set() for name in KINDS}
    for request in requests:
        if getattr(request, "mask", None) is not None or getattr(request, "facts", None):
            raise ParameterError("the digest of a request with a mask or types is that of its ids.")
        found[request.kind.name].update(request.named)
    # Digests of old requests have to be those of today: a kind that came later is left out where
    # nothing of it is named.
    return {
        kind.name: [
            list(ids) if isinstance(ids, tuple) else ids
            for ids in sorted(found[kind.name], key=_order if kind is LABELS else None)
        ]
        for kind in KINDS.values()
        if found[kind.name] or kind.in_every_digest
    }


def request_digest(requests: Iterable[Request]) -> str:
    """Return the SHA-256 of the canonical form, which the requester can compute as well."""
    return digest_of(canonical_form(requests))


def coalesce(
    graph: Graph, request: Request | Sequence[Request], *, missing: str = RAISE
) -> Removal:
    """Check every id and edge against ``graph`` and merge the requests into one removal.

    Args:
        graph: the current graph.
        request: one, or several.
        missing: what to do about data that the graph does not have: ``"raise"`` an error that names
            all of it, or ``"skip"`` it.
    """
    one_of("missing", "unlearn", missing, (RAISE, SKIP))
    requests = in_graph(graph, request)
    form = canonical_form(requests)
    if not any(form.values()):
        raise NothingToForgetError("the request names no node, edge, feature row or label.")
    parts = _Parts.of(form)
    there, called = _there(graph, parts), with_names(_nodes_in(form))
    absent = _Parts(*(part[~found] for part, found in zip(parts, there, strict=True)))
    if missing == RAISE and any(map(len, absent)):
        raise _missing(graph, parts, absent, called)
    found = _Parts(*(part[exists] for part, exists in zip(parts, there, strict=True)))
    if not any(map(len, found)):
        raise NothingToForgetError(
            "the graph has nothing of what the request names.",
            hint="it never had it, or has forgotten it already.",
        )
    digest = digest_of(form)
    form = {kind.name: part.tolist() for kind, part in zip(GRAPH_KINDS, found, strict=False)}
    form[LABELS.name] += found.targets.tolist()
    form[EDGES.name] += found.triples.tolist()
    # Removing a node removes all that it has: drop what else the request says of it.
    nodes, edges, features, labels, targets, triples = found
    if len(edges):
        edges = edges[~_among(edges.ravel(), nodes).reshape(-1, 2).any(axis=1)]
    features, labels = (part[~_among(part, nodes)] for part in (features, labels))
    if len(targets):
        targets = targets[~_among(targets[:, 0], np.union1d(nodes, labels))]
    skipped = tuple(absent.requests(called))
    removal = Removal(nodes, edges, features, digest, labels, skipped, form, targets)
    return removal if graph.types is None else _of_relations(graph, requests, removal, triples)


def _nodes_in(form: Mapping[str, Any]) -> Iterable[int]:
    """Yield the ids of all nodes that a canonical form names."""
    for name, items in form.items():
        ends = 1 if name == LABELS.name else EDGES.ends
        for item in items:
            yield from item[:ends] if isinstance(item, list) else (item,)


def _of_relations(
    graph: Graph, requests: Sequence[Request], removal: Removal, triples: NDArray[np.int64]
) -> Removal:
    """Return the removal in a typed graph: with what stays between nodes, and who goes along."""
    triples = triples[~_among(triples[:, :2].ravel(), removal.nodes).reshape(-1, 2).any(axis=1)]
    edges, kept = typed.without_triples(graph, removal.edges, triples)
    along = [part.followers for part in requests if isinstance(part, Nodes)]
    followers = np.array(sorted(set(chain(*along))), dtype=np.int64)
    return replace(removal, edges=edges, kept=kept, followers=followers)


class _Parts(NamedTuple):
    """Items that requests name, by kind; or a mask over each."""

    nodes: NDArray[Any]
    edges: NDArray[Any]  # ``[m, 2]``
    features: NDArray[Any]
    labels: NDArray[Any]
    targets: NDArray[Any]  # a node and one of its labels ``[m, 2]``
    triples: NDArray[Any]  # both ends and a relation between them ``[m, 3]``

    @classmethod
    def of(cls, form: Mapping[str, Any]) -> _Parts:
        """Take a canonical form apart."""
        labels, edges = form.get(LABELS.name, ()), form[EDGES.name]
        return cls(
            np.array(form[NODES.name], dtype=np.int64),
            _rows([item for item in edges if len(item) == EDGES.ends], EDGES.ends),
            np.array(form[FEATURES.name], dtype=np.int64),
            np.array([item for item in labels if not isinstance(item, list)], dtype=np.int64),
            _rows([item for item in labels if isinstance(item, list)], 2),
            _rows([item for item in edges if len(item) > EDGES.ends], EDGES.ends + 1),
        )

    def requests(self, called: Mapping[int, int]) -> Iterable[Request]:
        """Yield the requests that name these, as they were called."""
        for kind, part in zip(GRAPH_KINDS, self, strict=False):
            if len(part):
                yield REQUESTS[kind.name](as_called(part, called))
        if len(self.targets):
            nodes = as_called(self.targets[:, 0], called)
            yield Labels(list(zip(nodes, self.targets[:, 1].tolist(), strict=True)))
        if len(self.triples):
            yield Edges.of_relations(map(tuple, self.triples.tolist()))


def _rows(items: Sequence[Any], width: int) -> NDArray[np.int64]:
    return np.array(items, dtype=np.int64).reshape(-1, width)


def _there(graph: Graph, parts: _Parts) -> _Parts:
    """Mark what the graph has of all that is named, and what belongs to a node that goes."""
    nodes, edges, features, labels, targets, triples = parts
    there, kind = graph.contains(nodes), graph.label_kind
    gone = nodes[there]
    none: list[NDArray[np.bool_]] = [np.zeros(len(part), dtype=np.bool_) for part in parts[1:5]]
    known, full, labelled, aimed = none
    if len(edges):
        known = np.all(graph.contains(edges.ravel()).reshape(-1, 2), axis=1)
        known[known] = graph.has_edges(edges[known])
    if len(features):
        full = graph.contains(features)
        full[full] = np.diff(feature_rows(graph.table, graph.places(features[full]))[0]) > 0
        full |= _among(features, gone)
    if len(labels):
        labelled = graph.contains(labels)
        labelled[labelled] = kind.labelled(graph.labels(labels[labelled]))
        labelled |= _among(labels, gone)
    if len(targets):
        owners, columns = np.ascontiguousarray(targets.T)
        aimed = graph.contains(owners)
        rows = np.reshape(graph.labels(owners[aimed]), (-1, kind.count))
        aimed[aimed] = ~kind.is_unknown(rows[np.arange(len(rows)), columns[aimed]])
        aimed |= _among(owners, gone)
    return _Parts(there, known, full, labelled, aimed, typed.are_held(graph, triples, gone))


def _among(ids: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the ids that are among the (sorted) nodes."""
    found: NDArray[np.bool_] = ranks(ids, nodes) >= 0
    return found


def _missing(graph: Graph, parts: _Parts, absent: _Parts, called: Mapping[int, int]) -> InputError:
    """Return the error that names all that the graph does not have, as it was called."""
    *plain, targets, triples = parts
    ids = np.unique(np.concatenate([p.ravel() for p in (*plain, targets[:, :1], triples[:, :2])]))
    unknown = ids[~graph.contains(ids)]
    if len(unknown):
        return UnknownNodeError.of(as_called(unknown, called), len(ids))
    for edges, every in ((absent.edges, parts.edges), (absent.triples[:, :2], triples)):
        if len(edges):
            return UnknownEdgeError.of(as_called(edges, called), len(every))
    if len(absent.features):
        lack, lost, every = "no features", absent.features, parts.features
    elif len(absent.labels):
        lack, lost, every = "no label", absent.labels, parts.labels
    else:
        target = graph.label_kind.target_names[absent.targets[0, 1]]
        lack, lost, every = f"no label '{target}'", absent.targets[:, 0], targets
    nodes = lost if every is not targets else lost[:1]  # others may lack another label
    said = "rows are empty" if len(absent.features) else "labels are not known"
    return NothingToForgetError(
        f"node {named(as_called(nodes, called))} has {lack} to forget "
        f"({len(lost)} of {len(every)} requested {said})."
    )


def pairs_of(owner: str, pairs: Any) -> list[tuple[int, int]]:
    """Return pairs of ids as they were given, those of names with their name."""
    shape = getattr(pairs, "shape", (0, 2))
    if 0 not in shape and tuple(shape[1:]) != (2,):
        raise ParameterError(
            f"'pairs' of {owner} must have the shape [m, 2]. Got {list(shape)}.",
            hint="one edge is a row; pass an edge_index [2, m] as edge_index.T.",
        )
    try:
        return [_as_pair(owner, pair) for pair in _plain(pairs)]
    except TypeError:
        raise ParameterError.of("pairs", owner, _PAIRS, pairs) from None


def _as_pair(owner: str, pair: Any) -> tuple[int, int]:
    try:
        u, v = _plain(pair)
    except (TypeError, ValueError):
        raise ParameterError.of("pairs", owner, _PAIRS, pair) from None
    if isinstance(pair, str):
        raise ParameterError.of("pairs", owner, _PAIRS, pair)
    return one_id(u, "pairs", owner), one_id(v, "pairs", owner)


def _plain(values: Any) -> Any:
    """Turn arrays and tensors into Python's own numbers and lists."""
    return values.tolist() if hasattr(values, "tolist") else values
