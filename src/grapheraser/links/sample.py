"""The pairs that weights are learned from: some edges, and as many pairs without one.

Both follow from keyed hashes of ids and from the current graph alone, so a fresh fit on what is
left chooses the same pairs.

*Edges* are those with the smallest hashes of their two ends. One that goes lets in the next; every
other stays.

*Pairs without an edge* are drawn by consistent hashing. Some nodes (those with the smallest hashes)
lie on a ring, at a place that another hash of their id gives. Some nodes are sources, and a third
hash sends each to a place on the ring: the first node from there on that is neither the source
itself nor one of its neighbours, nor on its side of a bipartite graph, makes a pair with it. A node
that goes takes its own pairs with it and moves the sources that it was found by to the next node;
an edge that goes, or comes, moves at most the pairs of its two ends. No other pair changes.

In a directed graph a pair is a source and a target. The pairs without an edge are then those of the
ring, and about a quarter of the sampled edges the other way round, where no edge leads back: what
tells the two ways apart could not be learned otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.sample.membership import Candidates
from grapheraser.arrays import Ints
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.paged import (
    COUNT,
    NOWHERE,
    OUTGOING,
    ROOM,
    Table,
    degree_at,
    edge_value,
    first_edge,
    label_at,
    locate,
    neighbour,
    node_at,
)
from grapheraser.kernels.sets import find, put, ranks, room_for_set
from grapheraser.links.adjacency import linked
from grapheraser.seeding import derive, keyed_hash

Pairs = NDArray[np.int64]

# So many times as many candidates as are sampled.
_SPARE = 2
# One of so many sampled edges is a pair the other way round as well.
_TURNED = 4
# Nodes on the ring, and how far a source looks along it.
_RING, _STEPS = 4096, 64


@dataclass(frozen=True, eq=False)
class EdgeCandidates:
    """The edges that are sampled, and those that are let in next."""

    count: int  # how many are sampled
    key: int  # of the hash
    bound: int  # all edges with a hash below it are candidates; 2**64 means all
    edges: Pairs  # ids ``[m, 2]`` by ascending hash; u < v, or sources and targets
    hashes: NDArray[np.uint64]  # of them

    @classmethod
    def of(cls, graph: Graph, count: int, seed: int) -> EdgeCandidates:
        """Look at all edges of a graph."""
        key = derive(seed, "links", "edges")
        bound = min(2**64, 2**64 * _SPARE * count // max(1, graph.num_edges))
        edges = _all_edges(graph.table, np.uint64(key), _top(bound))
        found = cls._sorted(count, key, bound, *edges)
        if found._run_out:  # by chance
            edges = _all_edges(graph.table, np.uint64(key), _top(2**64))
            found = cls._sorted(count, key, 2**64, *edges)
        return found

    @classmethod
    def _sorted(
        cls, count: int, key: int, bound: int, edges: Pairs, hashes: NDArray[np.uint64]
    ) -> EdgeCandidates:
        order = np.lexsort((edges[:, 1], edges[:, 0], hashes))
        return cls(count, key, bound, edges[order], hashes[order])

    @property
    def _run_out(self) -> bool:
        """Tell whether an edge that is no candidate may have to be let in."""
        return len(self.edges) < self.count and self.bound < 2**64

    @property
    def sampled(self) -> Pairs:
        """The sampled edges, by ascending hash."""
        return self.edges[: self.count]

    def turned(self, graph: Graph) -> Pairs:
        """Return sampled edges the other way round, where these are no edges."""
        some = self.hashes[: self.count] % np.uint64(_TURNED) == 0
        pairs = np.ascontiguousarray(self.sampled[some][:, ::-1])
        return pairs[~linked_pairs(graph.table, pairs)]

    def changed(self, graph: Graph, nodes: NDArray[np.int64], seed: int) -> EdgeCandidates:
        """Return the candidates of a graph that differs at these (sorted) nodes alone."""
        kept = (ranks(self.edges.reshape(-1), nodes) < 0).reshape(-1, 2).all(axis=1)
        key, top = np.uint64(self.key), _top(self.bound)
        edges, hashes = _edges_of(graph.table, nodes, key, top)
        if kept.all() and len(edges) == 0:
            return self
        found = self._sorted(
            self.count,
            self.key,
            self.bound,
            np.concatenate([self.edges[kept], edges]),
            np.concatenate([self.hashes[kept], hashes]),
        )
        return EdgeCandidates.of(graph, self.count, seed) if found._run_out else found


@dataclass(frozen=True, eq=False)
class PairSample:
    """The pairs that the weights are learned from, and what follows them cheaply."""

    edges: EdgeCandidates
    sources: Candidates  # nodes that are sent to the ring
    ring: Candidates  # nodes on it
    pairs: Pairs  # int64 ``[m, 2]`` ids, sorted, each once; u < v, or sources and targets
    labels: NDArray[np.float64]  # float64, 1 for the edges among them and 0 for the others

    @classmethod
    def of(cls, graph: Graph, count: int, seed: int, *, sides: bool) -> PairSample:
        """Sample so many edges of a graph, and as many pairs without one, at the most.

        With ``sides``, the classes of the nodes are the sides of a bipartite graph.
        """
        sources = Candidates.of(graph, (1.0, count), derive(seed, "links", "sources"))
        ring = Candidates.of(graph, (1.0, _RING), derive(seed, "links", "ring"))
        edges = EdgeCandidates.of(graph, count, seed)
        return cls._of(graph, edges, sources, ring, seed, sides)

    def changed(
        self, graph: Graph, nodes: NDArray[np.int64], seed: int, *, sides: bool
    ) -> PairSample:
        """That of a graph that differs from the one before at these (sorted) nodes alone."""
        sources = self.sources.changed(graph, nodes, derive(seed, "links", "sources"))
        ring = self.ring.changed(graph, nodes, derive(seed, "links", "ring"))
        edges = self.edges.changed(graph, nodes, seed)
        return PairSample._of(graph, edges, sources, ring, seed, sides)

    @classmethod
    def _of(
        cls,
        graph: Graph,
        edges: EdgeCandidates,
        sources: Candidates,
        ring: Candidates,
        seed: int,
        sides: bool,
    ) -> PairSample:
        around = ring.sampled
        spots = keyed_hash(around, derive(seed, "links", "spots"))
        order = np.lexsort((around, spots))
        starts = keyed_hash(sources.sampled, derive(seed, "links", "starts"))
        first = np.searchsorted(spots[order], starts)
        others = _drawn(graph.table, sources.sampled, first, around[order], sides)
        if graph.directed:
            others = np.concatenate([others, edges.turned(graph)])
        pairs = np.concatenate([others, edges.sampled])
        labels = np.repeat([0.0, 1.0], [len(others), len(edges.sampled)])
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        pairs, labels = pairs[order], labels[order]
        # Two sources may have found each other.
        once = np.ones(len(pairs), dtype=bool)
        once[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
        return cls(edges, sources, ring, pairs[once], labels[once])


def _top(bound: int) -> np.uint64:
    """The largest hash of a candidate."""
    return np.uint64(max(0, bound - 1))


@compiled(inline=True)
def edge_hash(key: np.uint64, u: int, v: int) -> np.uint64:
    """A hash of an edge under a key; u < v, or from u to v."""
    return paired(paired(key, np.uint64(u)), np.uint64(v))


@compiled
def _all_edges(table: Table, key: np.uint64, top: np.uint64) -> tuple[Pairs, NDArray[np.uint64]]:
    """The edges with a hash of at most ``top``, with their hashes; first counted, then written."""
    count = 0
    edges, hashes = np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.uint64)
    for writing in (False, True):
        if writing:
            edges, hashes = np.empty((count, 2), dtype=np.int64), np.empty(count, dtype=np.uint64)
            count = 0
        for page in range(len(table.pages)):
            for place in range(page * ROOM, page * ROOM + table.pages[page, COUNT]):
                node, first = node_at(table, place), first_edge(table, place)
                for e in range(degree_at(table, place)):
                    other = neighbour(first, e)
                    if not _belongs(table, place, e, node, other):
                        continue
                    value = edge_hash(key, node, other)
                    if value > top:
                        continue
                    if writing:
                        edges[count, 0], edges[count, 1] = node, other
                        hashes[count] = value
                    count += 1
    return edges, hashes


@compiled(inline=True)
def _belongs(table: Table, place: int, entry: int, node: int, other: int) -> bool:
    """Tell whether an entry is where its edge is counted: at the smaller id, or at the source."""
    if table.directed:
        return int(edge_value(table, place, entry, 0)) & OUTGOING != 0
    return node < other


@compiled
def _edges_of(
    table: Table, nodes: NDArray[np.int64], key: np.uint64, top: np.uint64
) -> tuple[Pairs, NDArray[np.uint64]]:
    """The edges of some nodes with a hash of at most ``top``, each once."""
    slots, known = room_for_set(len(nodes))
    most = 0
    for i in range(len(nodes)):
        put(slots, known, i, nodes[i])
        place = locate(table, nodes[i])
        if place != NOWHERE:
            most += 2 * degree_at(table, place)
    edges, hashes = np.empty((most, 2), dtype=np.int64), np.empty(most, dtype=np.uint64)
    count = 0
    for node in nodes:
        place = locate(table, node)
        if place == NOWHERE:
            continue
        first = first_edge(table, place)
        for e in range(degree_at(table, place)):
            other = neighbour(first, e)
            if other < node and find(slots, known, other) >= 0:
                continue  # it came with the other end
            for u, v in ((node, other), (other, node)):
                if not (linked(table, locate(table, u), v) if table.directed else u < v):
                    continue
                value = edge_hash(key, u, v)
                if value <= top:
                    edges[count, 0], edges[count, 1], hashes[count] = u, v, value
                    count += 1
    return edges[:count].copy(), hashes[:count].copy()


@compiled
def _drawn(table: Table, sources: Ints, first: Ints, ring: Ints, sides: bool) -> Pairs:
    """The pair of each source that has one: of different classes, where these are sides.

    ``first`` is where each begins to look on the ring, of ids in the order of their spots.
    """
    pairs = np.empty((len(sources), 2), dtype=np.int64)
    count = 0
    for i in range(len(sources)):
        node = sources[i]
        place = locate(table, node)
        for step in range(min(_STEPS, len(ring))):
            other = ring[(first[i] + step) % len(ring)]
            if other == node or linked(table, place, other):
                continue
            if sides and label_at(table, place) == label_at(table, locate(table, other)):
                continue
            if table.directed:
                pairs[count, 0], pairs[count, 1] = node, other
            else:
                pairs[count, 0], pairs[count, 1] = min(node, other), max(node, other)
            count += 1
            break
    return pairs[:count].copy()


@compiled
def linked_pairs(table: Table, pairs: Pairs) -> NDArray[np.bool_]:
    """Tell whether there is an edge between each pair, in a directed graph from the first node."""
    out = np.zeros(len(pairs), dtype=np.bool_)
    for i in range(len(pairs)):
        out[i] = linked(table, locate(table, pairs[i, 0]), pairs[i, 1])
    return out
