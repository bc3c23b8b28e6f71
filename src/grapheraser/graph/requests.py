"""Requests: nodes, edges and feature rows to forget.

A request is a frozen value that names ids only. `coalesce` checks a list of requests against a
graph and merges them into one `Removal` without repetitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.canonical import digest_of
from grapheraser.errors import NothingToForgetError, ParameterError, UnknownEdgeError
from grapheraser.graph.ids import listed, one_id
from grapheraser.graph.roles import UNLABELLED
from grapheraser.kernels.paged import feature_rows

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
        shape = getattr(pairs, "shape", (0, 2))
        if 0 not in shape and tuple(shape[1:]) != (2,):
            raise ParameterError(
                f"'pairs' of Edges must have the shape [m, 2]. Got {list(shape)}.",
                hint="one edge is a row; pass an edge_index [2, m] as edge_index.T.",
            )
        try:
            canonical = {_as_pair(pair) for pair in _plain(pairs)}
        except TypeError:
            raise ParameterError.of("pairs", "Edges", _PAIRS, pairs) from None
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


@dataclass(frozen=True)
class Removal:
    """A checked, merged request: all ids exist, and nothing is named twice.

    Attributes:
        nodes: sorted ids of the nodes to remove.
        edges: ids ``[m, 2]`` (u < v) of further edges to remove; none touches one of ``nodes``.
        features: sorted ids of further nodes whose features to remove; none is among ``nodes``.
        digest: SHA-256 of the request as made, whatever the order of its parts.
        labels: sorted ids of further nodes whose labels to remove; none is among ``nodes``.
    """

    nodes: NDArray[np.int64]
    edges: NDArray[np.int64]
    features: NDArray[np.int64]
    digest: str
    labels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def as_requests(request: Request | Sequence[Request]) -> tuple[Request, ...]:
    """Return one request, or a sequence of them, as a tuple."""
    given = (request,) if isinstance(request, Request) else request
    requests = tuple(given) if isinstance(given, Iterable) else (given,)
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


def coalesce(graph: Graph, request: Request | Sequence[Request]) -> Removal:
    """Check every id and edge against ``graph`` and merge the requests into one removal."""
    requests = in_graph(graph, request)
    form = canonical_form(requests)
    if not any(form.values()):
        raise NothingToForgetError("the request names no node, edge, feature row or label.")
    nodes = np.array(form["nodes"], dtype=np.int64)
    edges = np.array(form["edges"], dtype=np.int64).reshape(-1, 2)
    features = np.array(form["features"], dtype=np.int64)
    labels = np.array(form.get("labels", ()), dtype=np.int64)

    for kind in ("nodes", "features", "labels"):
        graph.places(form.get(kind, ()))
    graph.places([node for pair in form["edges"] for node in pair])
    missing = ~graph.has_edges(edges)
    if missing.any():
        u, v = edges[missing][0]
        raise UnknownEdgeError(
            f"there is no edge {u}-{v} in the graph ({int(missing.sum())} of {len(edges)} "
            "requested edges do not exist).",
            hint="it never existed, or it has been forgotten already.",
        )
    # Removing a node removes all that it has: drop what else the request says of it.
    edges = edges[~np.isin(edges, nodes).any(axis=1)]
    features = features[~np.isin(features, nodes)]
    empty = np.diff(feature_rows(graph.table, graph.places(features))[0]) == 0
    if empty.any():
        raise NothingToForgetError(
            f"node {features[empty][0]} has no features to forget "
            f"({int(empty.sum())} of {len(features)} requested rows are empty)."
        )
    labels = labels[~np.isin(labels, nodes)]
    unknown = graph.labels(labels) == UNLABELLED
    if unknown.any():
        raise NothingToForgetError(
            f"node {labels[unknown][0]} has no label to forget "
            f"({int(unknown.sum())} of {len(labels)} requested labels are not known)."
        )
    return Removal(nodes, edges, features, request_digest(requests), labels)


def _set_ids(request: Nodes | Features | Labels, ids: Iterable[int | str] | ArrayLike) -> None:
    """Set the ids of a request, or its mask."""
    found = listed(ids, f"'ids' of {type(request).__name__}")
    mask = found if isinstance(found, np.ndarray) else None
    ids = () if isinstance(found, np.ndarray) else tuple(sorted(set(found)))
    object.__setattr__(request, "ids", ids)
    object.__setattr__(request, "mask", None if mask is None else mask.tobytes())


def _as_pair(pair: Any) -> tuple[int, int]:
    try:
        u, v = _plain(pair)
    except (TypeError, ValueError):
        raise ParameterError.of("pairs", "Edges", _PAIRS, pair) from None
    if isinstance(pair, str):
        raise ParameterError.of("pairs", "Edges", _PAIRS, pair)
    first, second = (one_id(end, "pairs", "Edges") for end in (u, v))
    return min(first, second), max(first, second)


def _plain(values: Any) -> Any:
    """Turn arrays and tensors into Python's own numbers and lists."""
    return values.tolist() if hasattr(values, "tolist") else values
