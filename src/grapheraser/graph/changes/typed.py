"""Requests of typed graphs in terms of ids, and nodes that go with others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import ParameterError
from grapheraser.graph.edge_values import Values
from grapheraser.graph.types import Types
from grapheraser.kernels.paged import neighbour_rows
from grapheraser.kernels.sets import ranks

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

Ids = NDArray[np.int64]
_NOBODY: Ids = np.zeros(0, dtype=np.int64)


def nodes_of(
    graph: Graph, types: Types, nodes: Sequence[int], kind: str | None, mask: bytes | None
) -> list[int]:
    """Return the ids of the nodes that a request names, by number or name, or by a mask."""
    if mask is None:
        return [types.resolved(node, kind, named=graph.named) for node in nodes]
    chosen = np.frombuffer(mask, dtype=bool)
    every = graph.ids
    if kind is not None:
        every = every[types.of(every) == types.index(kind)]
    if len(chosen) != len(every):
        raise ParameterError(
            f"a mask over the nodes of type '{kind or 'any'}' must have {len(every)} entries. "
            f"Got {len(chosen)}."
        )
    found: list[int] = every[chosen].tolist()
    return found


def relations_of(
    types: Types, facts: Iterable[tuple[int, Any, int]], named: bool
) -> list[tuple[int, int, int]]:
    """Return facts as the ids of their ends, the lower first, and the bit of the relation."""
    found = []
    for head, given, tail in facts:
        relation = types.relation(given)
        source, _, target = types.relations[relation]
        u, v = types.resolved(head, source, named=named), types.resolved(tail, target, named=named)
        bit = int(types.bits[int(u > v), relation])
        found.append((min(u, v), max(u, v), bit))
    return found


def are_held(graph: Graph, triples: Ids, gone: Ids) -> NDArray[np.bool_]:
    """Mark the relations that a graph has, or one of whose ends is gone (sorted ids).

    ``triples`` are the ids of both ends, the lower first, and the bit of a relation ``[m, 3]``.
    """
    held = np.zeros(len(triples), dtype=bool)
    if graph.types is None or not len(triples):
        return held
    held[:] = graph.contains(triples[:, :2].ravel()).reshape(-1, 2).all(axis=1)
    held[held] = graph.has_edges(triples[held][:, :2])
    low, high, bits = (np.ascontiguousarray(column) for column in triples[held].T)
    held[held] = graph.types.has(graph.values_between(low, high), bits)
    return held | (ranks(triples[:, :2].ravel(), gone) >= 0).reshape(-1, 2).any(axis=1)


def without_triples(graph: Graph, edges: Ids, triples: Ids) -> tuple[Ids, tuple[Ids, Values]]:
    """Return the edges that change where some relations go, and those that keep others.

    All relations of ``edges`` go (pairs of ids), and those of ``triples``, as in `are_held`.
    """
    types = graph.types
    assert types is not None
    gone = set(map(tuple, edges.tolist()))
    lose: dict[tuple[int, int], list[int]] = {}
    for low, high, bit in triples.tolist():
        if (low, high) not in gone:
            lose.setdefault((low, high), []).append(bit)
    pairs = np.array([*lose], dtype=np.int64).reshape(-1, 2)
    carried = graph.values_between(*np.ascontiguousarray(pairs.T))
    left = np.array(
        [types.without(*each) for each in zip(carried, lose.values(), strict=True)],
        dtype=np.float32,
    ).reshape(len(pairs), types.width)
    stays = left[:, : types.columns].any(axis=1)
    changed = np.array(sorted(gone | lose.keys()), dtype=np.int64).reshape(-1, 2)
    return changed, (pairs[stays], left[stays])


def followers(
    graph: Graph, types: Types, nodes: Sequence[int], cascade: Sequence[str]
) -> list[int]:
    """Return the sorted ids of the nodes of some types that exist only through nodes that go.

    Such a node has neighbours of some type all of which go; it takes others along likewise.
    """
    chosen = np.array([types.index(name) for name in cascade], dtype=np.int64)
    known = np.unique(np.array(list(map(int, nodes)), dtype=np.int64))
    known = known[graph.contains(known)]
    named, fresh = known, known if len(chosen) else _NOBODY
    while len(fresh):
        near = graph.around(fresh)
        near = near[np.isin(types.of(near), chosen) & (ranks(near, known) < 0)]
        indptr, around = neighbour_rows(graph.table, graph.places(near))
        rows = np.repeat(np.arange(len(near)), np.diff(indptr))
        counts = np.zeros((2, len(near), len(types.names)), dtype=np.int64)
        goes = ranks(around, known) >= 0
        np.add.at(counts[0], (rows, types.of(around)), 1)
        np.add.at(counts[1], (rows[goes], types.of(around[goes])), 1)
        fresh = near[((counts[1] > 0) & (counts[0] == counts[1])).any(axis=1)]
        known = np.union1d(known, fresh)
    return np.setdiff1d(known, named).tolist()
