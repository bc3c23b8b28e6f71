"""Edges to learn from, to choose by and to test with, and as many pairs without an edge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from grapheraser.datasets import load_dataset
from grapheraser.graph import Edges, Graph, Nodes
from grapheraser.seeding import generator

TEST, VALIDATION = 0.1, 0.05

Pairs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """A graph without some of its edges, and pairs to judge by.

    Attributes:
        graph: with the edges to learn from.
        validation: ids ``[m, 2]``, half of them edges.
        test: likewise.
    """

    graph: Graph
    validation: Pairs
    test: Pairs

    @staticmethod
    def labels(pairs: Pairs) -> NDArray[np.int64]:
        """1 for the first half, the edges, and 0 for the others."""
        return (np.arange(len(pairs)) < len(pairs) // 2).astype(np.int64)

    def without(self, request: Nodes | Edges) -> LinkSplit:
        """Where something was forgotten: pairs with a node that is gone are left out."""
        graph = self.graph.without(request)
        return LinkSplit(graph, _kept(graph, self.validation), _kept(graph, self.test))


@lru_cache(maxsize=2)
def link_split(name: str, seed: int) -> LinkSplit:
    """A tenth of the edges to test with, a twentieth to choose by, drawn by the seed."""
    graph = load_dataset(name)
    rng = generator(seed, "links", "split")
    edges = graph.edges[rng.permutation(graph.num_edges)]
    test, validation = int(TEST * len(edges)), int(VALIDATION * len(edges))
    held_out = edges[: test + validation]
    others = _others(graph, len(held_out), rng)
    return LinkSplit(
        graph.without(Edges(held_out)),
        np.concatenate([held_out[test:], others[test:]]),
        np.concatenate([held_out[:test], others[:test]]),
    )


def forgotten(graph: Graph, what: str, share: float, seed: int) -> Nodes | Edges:
    """A share of the nodes, or of the edges; a larger share contains smaller ones."""
    rng = generator(seed, "links", "forget", what)
    if what == "nodes":
        return Nodes(rng.permutation(graph.ids)[: max(1, round(share * graph.num_nodes))])
    edges = graph.edges
    return Edges(edges[rng.permutation(len(edges))[: max(1, round(share * len(edges)))]])


def _others(graph: Graph, count: int, rng: np.random.Generator) -> Pairs:
    """Different pairs of nodes without an edge, u < v."""
    n = graph.num_nodes
    edges = graph.sources.astype(np.int64) * n + graph.indices
    found = np.zeros(0, dtype=np.int64)
    while len(found) < count:
        drawn = np.sort(rng.integers(n, size=(2 * count, 2)), axis=1)
        keys = drawn[:, 0] * n + drawn[:, 1]
        keys = keys[(drawn[:, 0] != drawn[:, 1]) & ~np.isin(keys, edges)]
        keys = np.concatenate([found, keys])
        found = keys[np.sort(np.unique(keys, return_index=True)[1])]
    chosen = found[:count]
    return np.stack([graph.ids[chosen // n], graph.ids[chosen % n]], axis=1)


def _kept(graph: Graph, pairs: Pairs) -> Pairs:
    """The pairs whose nodes are there, as many edges as others."""
    found = graph.contains(pairs.ravel())
    there = found[::2] & found[1::2]
    half = len(pairs) // 2
    edges, others = pairs[:half][there[:half]], pairs[half:][there[half:]]
    count = min(len(edges), len(others))
    return np.concatenate([edges[:count], others[:count]])
