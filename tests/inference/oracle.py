"""Bounded neighbourhoods in plain Python: slow, obvious, and independent of what they test."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph

_WORD = 2**64


def _mixed(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % _WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % _WORD
    return z ^ (z >> 31)


def keyed(key: int, value: int) -> int:
    """A 64-bit hash of a value under a key."""
    return _mixed((key + value * 0x9E3779B97F4A7C15) % _WORD)


def counted(graph: Graph, position: int, most: int, key: int) -> list[int]:
    """Positions of the neighbours that count: those with the smallest hashes, in order."""
    others = graph.indices[graph.indptr[position] : graph.indptr[position + 1]].tolist()
    own = keyed(key, int(graph.ids[position]))
    return sorted(sorted(others, key=lambda p: keyed(own, int(graph.ids[p])))[:most])


def bounded_edges(graph: Graph, most: int, key: int) -> NDArray[np.int64]:
    """Edges ``[2, m]`` as PyG wants them, from each neighbour that counts to its node."""
    pairs = [
        (source, target)
        for target in range(graph.num_nodes)
        for source in counted(graph, target, most, key)
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T
