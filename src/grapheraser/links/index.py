"""An index of all nodes by their features, smoothed over two steps.

A node's row is made of whole numbers, so that the product of two has the same bits in any order of
summing. Rows follow from the graph. They lie in blocks of nodes with neighbouring ids; after a
change the blocks are made again that hold a row which the change has touched, and all others are
shared with the index before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.members.smoothing import Sketch
from grapheraser.aggregation.members.walks import Reach, Walk, stale_nodes
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import ANY, places_of
from grapheraser.kernels.paged import nodes_at
from grapheraser.kernels.sets import ranks
from grapheraser.links.pair_features import key_of
from grapheraser.links.rows import (
    FIRST,
    MAX_FAR,
    SECOND,
    describe,
    project,
    room_for_rows,
    room_for_walk,
)
from grapheraser.seeding import derive

# Features are projected to so many columns, where there are more.
COLUMNS = 256
# Nodes in a block at first.
_BLOCK = 256
# The length of a row: products of two fit into 32 bits, and so do all sums on the way to one.
_LENGTH = 2.0**14


@dataclass(frozen=True, eq=False)
class Block:
    """A block of nodes with neighbouring ids."""

    nodes: NDArray[np.int64]  # sorted ids
    rows: NDArray[np.int16]  # int16 ``[len(nodes), width]``, at length `_LENGTH`, or 0


@dataclass(frozen=True, eq=False)
class Index:
    """Smoothed features of all nodes."""

    # The smallest id that each block may hold, ascending; the first holds all below.
    starts: NDArray[np.int64]
    blocks: tuple[Block, ...]  # by id

    @classmethod
    def of(cls, graph: Graph, seed: int) -> Index:
        """Look at all nodes of a graph."""
        places = places_of(graph.table, ANY)
        nodes, rows = nodes_at(graph.table, places), _rows(graph, places, seed)
        cuts = range(0, len(nodes), _BLOCK)
        blocks = (Block(nodes[at : at + _BLOCK], rows[at : at + _BLOCK].copy()) for at in cuts)
        return cls(nodes[::_BLOCK].copy(), tuple(blocks))

    def changed(self, change: Change, graph: Graph, seed: int) -> Index:
        """`of` the graph after a change, up to where blocks begin."""
        walk = Walk(Reach(ANY, SECOND), Reach(ANY, FIRST), key_of(seed), features=True)
        stale = stale_nodes(change, graph, walk).nodes
        moved = np.union1d(stale, change.gone)
        fresh = _rows(graph, graph.places(stale), seed)
        home = np.maximum(np.searchsorted(self.starts, moved, side="right") - 1, 0)
        blocks = list(self.blocks)
        for at in np.unique(home).tolist():
            here = moved[home == at]
            left = ranks(blocks[at].nodes, here) < 0
            new = ranks(here, stale)
            new = new[new >= 0]
            nodes = np.concatenate([blocks[at].nodes[left], stale[new]])
            rows = np.concatenate([blocks[at].rows[left], fresh[new]])
            order = np.argsort(nodes)
            blocks[at] = Block(nodes[order], rows[order])
        return Index(self.starts, tuple(blocks))

    def alike(self, graph: Graph, node: int, count: int, *, sides: bool) -> NDArray[np.int64]:
        """The nodes with the smallest angles to one, which may be linked to it already.

        So many, besides as many as the node has neighbours; with ``sides``, on the other side.
        """
        home = self.blocks[max(int(np.searchsorted(self.starts, node, side="right")) - 1, 0)]
        own = home.rows[int(np.searchsorted(home.nodes, node))]
        nodes = np.concatenate([block.nodes for block in self.blocks])
        products = np.concatenate([_products(block.rows, own) for block in self.blocks])
        allowed = (products > 0) & (nodes != node)
        if sides:
            allowed &= graph.labels(nodes) != graph.labels([node])[0]
        found, most = np.flatnonzero(allowed), count + len(graph.neighbours(node))
        if len(found) > most:
            bound = np.partition(products[found], len(found) - most)[len(found) - most]
            found = found[products[found] >= bound]
        order = np.lexsort((nodes[found], -products[found]))
        return nodes[found[order[:most]]]


def _rows(graph: Graph, places: NDArray[np.int64], seed: int) -> NDArray[np.int16]:
    sketch = Sketch.of(graph.num_features, COLUMNS, derive(seed, "links"))
    own, shape = sketch.own, (graph.num_features, sketch.width)
    rows: NDArray[np.int16] = _smoothed(
        graph.table, places, key_of(seed), own.targets, own.signs, *shape
    )
    return rows


@compiled
def _smoothed(table, places, key, targets, signs, num_features, width):  # type: ignore[no-untyped-def]
    out = np.empty((len(places), width), dtype=np.int16)
    room, rows = room_for_walk(num_features), room_for_rows(num_features)
    near, far = np.empty(SECOND, dtype=np.int64), np.empty(MAX_FAR, dtype=np.int64)
    for i in range(len(places)):
        describe(rows, table, places[i], -1, key, room, near, far)
        project(rows, targets, signs, _LENGTH, out[i])
    return out


@compiled
def _products(rows: NDArray[np.int16], own: NDArray[np.int16]) -> NDArray[np.int32]:
    out = np.empty(len(rows), dtype=np.int32)
    for i in range(len(rows)):
        total = np.int32(0)
        for c in range(len(own)):
            total += np.int32(rows[i, c]) * np.int32(own[c])
        out[i] = total
    return out
