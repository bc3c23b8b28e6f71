"""Graphs for the tests of links: with hubs, and bipartite ones."""

from __future__ import annotations

import numpy as np

import grapheraser as ge


def hub_graph(seed: int = 0, *, n: int = 420) -> ge.Graph:
    """Four nodes linked to most others, which have a few edges between them."""
    rng = np.random.default_rng(seed)
    hubs = np.repeat(np.arange(4), n)
    ends = np.tile(np.arange(n), 4)
    kept = rng.random(4 * n) < 0.85
    few = rng.integers(4, n, size=(2, 2 * n))
    pairs = np.concatenate([np.stack([hubs, ends])[:, kept], few], axis=1)
    pairs = pairs[:, pairs[0] != pairs[1]]
    x = (rng.random((n, 20)) < 0.2) * rng.integers(1, 3, size=(n, 20))
    y = np.full(n, -1)
    return ge.Graph.from_arrays(x, pairs, y, num_classes=1, name="hubs")


def bipartite_graph(seed: int = 0, *, users: int = 30, items: int = 12) -> tuple[ge.Graph, int]:
    """Users of class 0 and items of class 1; returns the smallest id of an item as well."""
    rng = np.random.default_rng(seed)
    n, second = users + items, 1000
    ids = np.concatenate([np.arange(users), second + np.arange(items)])
    taste = rng.integers(3, size=n)
    pairs = [
        (u, v)
        for u in range(users)
        for v in range(users, n)
        if rng.random() < (0.6 if taste[u] == taste[v] else 0.08)
    ]
    x = np.eye(3)[taste] + (rng.random((n, 3)) < 0.2)
    y = (np.arange(n) >= users).astype(int)
    edges = ids[np.array(pairs).T]
    return ge.Graph.from_arrays(x, edges, y, ids=ids, each_edge_once=True, name="shop"), second
