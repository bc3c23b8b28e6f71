"""Requests: nodes, edges and feature rows to forget.

A request is a frozen value that names ids only. `coalesce` checks a list of requests against a
graph and merges them into one `Removal` without repetitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.canonical import digest_of
from grapheraser.checks import one_of
from grapheraser.errors import (
    NothingToForgetError,
    ParameterError,
    UnknownEdgeError,
    UnknownNodeError,
    named,
)
from grapheraser.graph.ids import as_called, listed, one_id, with_names
from grapheraser.graph.roles import UNLABELLED
from grapheraser.kernels.paged import feature_rows
from grapheraser.kernels.sets import ranks

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

_PAIRS = "an iterable of pairs of ids"


@dataclass(frozen=True)
class Nodes:
    """Forget these nodes: their features, labels and all their edges.

    One id or name, any iterable, array or tensor of them, or a mask over all nodes of the graph.
    """

    ids: tuple[int, ...]
    mask: bytes | None = field(default=None, repr=False)

    def __init__(self, ids: Iterable[int | str] | ArrayLike) -> None:
        _set_ids(self, ids)


@dataclass(frozen=True)
class Features:
    """Forget the features of these nodes; the nodes, their labels and edges stay.

    One id or name, any iterable, array or tensor of them, or a mask over all nodes of the graph.
    """

    ids: tuple[int, ...]
    mask: bytes | None = field(default=None, repr=False)

    def __init__(self, ids: Iterable[int | str] | ArrayLike) -> None:
        _set_ids(self, ids)


@dataclass(frozen=True)
class Edges:
    """Forget these undirected edges; their end points stay. (3, 17) and (17, 3) are the same.

    Any iterable of pairs of ids or names, or an array or tensor ``[m, 2]``; pass an ``edge_index``
    ``[2, m]`` as ``edge_index.T``.
    """

    pairs: tuple[tuple[int, int], ...]

    def __init__(self, pairs: Iterable[Iterable[int | str]] | ArrayLike) -> None:
        canonical = {(min(u, v), max(u, v)) for u, v in pairs_of("Edges", pairs)}
        object.__setattr__(self, "pairs", tuple(sorted(canonical)))


@dataclass(frozen=True)
class Labels:
    """Forget the labels of these nodes; the nodes, their features and edges stay.

    Training nodes become context nodes. One id or name, any iterable, array or tensor of them, or
    a mask over all nodes of the graph.
    """

    ids: tuple[int, ...]
    mask: bytes | None = field(default=None, repr=False)

    def __init__(self, ids: Iterable[int | str] | ArrayLike) -> None:
        _set_ids(self, ids)


Request: TypeAlias = Nodes | Edges | Features | Labels
_KINDS: tuple[type[Any], ...] = (Nodes, Edges, Features, Labels)
_NAMES = ("nodes", "edges", "features", "labels")


@dataclass(frozen=True)
class Removal:
    """A checked, merged request: all ids exist, and nothing is named twice.

    Attributes:
        nodes: sorted ids of the nodes to remove.
        edges: ids ``[m, 2]`` (u < v) of further edges to remove; none touches one of ``nodes``.
        features: sorted ids of further nodes whose features to remove; none is among ``nodes``.
        digest: SHA-256 of the request as made, whatever the order of its parts.
        labels: sorted ids of further nodes whose labels to remove; none is among ``nodes``.
        skipped: what was named and is not there, where that is no error.
        named: all that the request names and is there, as plain sorted lists by kind.
    """

    nodes: NDArray[np.int64]
    edges: NDArray[np.int64]
    features: NDArray[np.int64]
    digest: str
    labels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    skipped: tuple[Request, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)

    @property
    def num_skipped(self) -> int:
        """How much was skipped."""
        return sum(len(r.pairs if isinstance(r, Edges) else r.ids) for r in self.skipped)


NOTHING = Removal(
    np.zeros(0, dtype=np.int64),
    np.zeros((0, 2), dtype=np.int64),
    np.zeros(0, dtype=np.int64),
    digest="",
)
RAISE, SKIP = "raise", "skip"


def as_tuple(given: Any) -> tuple[Any, ...]:
    """The items of a sequence; anything else by itself, an array of no dimension among it."""
    if isinstance(given, Iterable) and getattr(given, "ndim", 1) > 0:
        return tuple(given)
    return (given,)


def as_requests(request: Request | Sequence[Request]) -> tuple[Request, ...]:
    """Return one request, or a sequence of them, as a tuple."""
    requests = (request,) if isinstance(request, Request) else as_tuple(request)
    for item in requests:
        if not isinstance(item, Request):
            raise ParameterError(
                f"a request must be Nodes, Edges, Features, Labels or a list of them. Got {item!r}."
            )
    return requests


def in_graph(graph: Graph, request: Request | Sequence[Request]) -> tuple[Request, ...]:
    """The same requests, with ids in the place of masks."""
    return tuple(
        type(part)(graph.ids_of(np.frombuffer(part.mask, dtype=bool)))
        if not isinstance(part, Edges) and part.mask is not None
        else part
        for part in as_requests(request)
    )


def canonical_form(requests: Iterable[Request]) -> dict[str, Any]:
    """The union of the requests as plain sorted lists, ready for JSON."""
    nodes: set[int] = set()
    edges: set[tuple[int, int]] = set()
    features: set[int] = set()
    labels: set[int] = set()
    for request in requests:
        if not isinstance(request, Edges) and request.mask is not None:
            raise ParameterError("the digest of a request with a mask is that of its ids.")
        match request:
            case Nodes(ids):
                nodes.update(ids)
            case Edges(pairs):
                edges.update(pairs)
            case Features(ids):
                features.update(ids)
            case Labels(ids):
                labels.update(ids)
    form: dict[str, Any] = {"labels": sorted(labels)} if labels else {}
    return form | {
        "edges": [list(pair) for pair in sorted(edges)],
        "features": sorted(features),
        "nodes": sorted(nodes),
    }


def request_digest(requests: Iterable[Request]) -> str:
    """SHA-256 of the canonical form, which the requester can compute as well."""
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
    parts = _Parts(
        np.array(form["nodes"], dtype=np.int64),
        np.array(form["edges"], dtype=np.int64).reshape(-1, 2),
        np.array(form["features"], dtype=np.int64),
        np.array(form.get("labels", ()), dtype=np.int64),
    )
    there = _there(graph, parts)
    called = with_names(
        [*form["nodes"], *form["features"], *form.get("labels", ()), *chain(*form["edges"])]
    )
    if missing == RAISE:
        _refuse_missing(graph, parts, there, called)
    skipped: tuple[Request, ...] = tuple(
        kind(as_called(part[~found], called))
        for kind, part, found in zip(_KINDS, parts, there, strict=True)
        if not found.all()
    )
    found = tuple(part[exists] for part, exists in zip(parts, there, strict=True))
    nodes, edges, features, labels = found
    if not any(map(len, (nodes, edges, features, labels))):
        raise NothingToForgetError(
            "the graph has nothing of what the request names.",
            hint="it never had it, or has forgotten it already.",
        )
    digest = digest_of(form)
    form = {kind: part.tolist() for kind, part in zip(_NAMES, found, strict=True)}
    # Removing a node removes all that it has: drop what else the request says of it.
    if len(edges):
        edges = edges[~_among(edges.ravel(), nodes).reshape(-1, 2).any(axis=1)]
    features, labels = (part[~_among(part, nodes)] for part in (features, labels))
    return Removal(nodes, edges, features, digest, labels, skipped, form)


class _Parts(NamedTuple):
    """Ids by what they name, or whether the graph has what each names."""

    nodes: NDArray[Any]
    edges: NDArray[Any]
    features: NDArray[Any]
    labels: NDArray[Any]


def _there(graph: Graph, parts: _Parts) -> _Parts:
    """Whether the graph has each node, edge, feature row and label; or its node goes anyway."""
    nodes, edges, features, labels = parts
    there = graph.contains(nodes)
    gone = nodes[there]
    none: list[NDArray[np.bool_]] = [np.zeros(len(part), dtype=np.bool_) for part in parts[1:]]
    known, full, labelled = none
    if len(edges):
        known = np.all(graph.contains(edges.ravel()).reshape(-1, 2), axis=1)
        known[known] = graph.has_edges(edges[known])
    if len(features):
        full = graph.contains(features)
        full[full] = np.diff(feature_rows(graph.table, graph.places(features[full]))[0]) > 0
        full |= _among(features, gone)
    if len(labels):
        labelled = graph.contains(labels)
        labelled[labelled] = graph.labels(labels[labelled]) != UNLABELLED
        labelled |= _among(labels, gone)
    return _Parts(there, known, full, labelled)


def _among(ids: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each id is one of the (sorted) nodes."""
    found: NDArray[np.bool_] = ranks(ids, nodes) >= 0
    return found


def _refuse_missing(graph: Graph, parts: _Parts, there: _Parts, called: Mapping[int, int]) -> None:
    """Raise an error that names all that the graph does not have, as it was called."""
    if all(found.all() for found in there):
        return
    ids = np.unique(np.concatenate([part.ravel() for part in parts]))
    unknown = ids[~graph.contains(ids)]
    if len(unknown):
        raise UnknownNodeError.of(as_called(unknown, called), len(ids))
    edges = parts.edges[~there.edges]
    if len(edges):
        raise UnknownEdgeError.of(as_called(edges, called), len(parts.edges))
    rows = parts.features[~there.features]
    if len(rows):
        raise NothingToForgetError(
            f"node {named(as_called(rows, called))} has no features to forget "
            f"({len(rows)} of {len(parts.features)} requested rows are empty)."
        )
    labels = parts.labels[~there.labels]
    raise NothingToForgetError(
        f"node {named(as_called(labels, called))} has no label to forget "
        f"({len(labels)} of {len(parts.labels)} requested labels are not known)."
    )


def _set_ids(request: Nodes | Features | Labels, ids: Iterable[int | str] | ArrayLike) -> None:
    """Set the ids of a request, or its mask."""
    found = listed(ids, f"'ids' of {type(request).__name__}")
    mask = found if isinstance(found, np.ndarray) else None
    ids = () if isinstance(found, np.ndarray) else tuple(sorted(set(found)))
    object.__setattr__(request, "ids", ids)
    object.__setattr__(request, "mask", None if mask is None else mask.tobytes())


def pairs_of(owner: str, pairs: Any) -> list[tuple[int, int]]:
    """Pairs of ids as they were given, those of names with their name."""
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
