"""`blpa-lp`: the linear programme against brute force over all integer choices."""

from __future__ import annotations

from itertools import product

import numpy as np

from grapheraser.partition.label_propagation import best_flows, chosen_moves
from grapheraser.seeding import generator


def test_flows_are_the_best_of_all_integer_choices() -> None:
    for seed in range(100):
        rng = np.random.Generator(np.random.PCG64(seed))
        k = int(rng.integers(2, 5))
        capacity = int(rng.integers(2, 5))
        sizes = rng.integers(1, capacity + 1, size=k)
        groups = int(rng.integers(1, 6))
        sources = rng.integers(0, k, size=groups)
        targets = (sources + rng.integers(1, k, size=groups)) % k
        gain, counts = rng.integers(1, 5, size=groups), rng.integers(1, 3, size=groups)
        flows = best_flows(sources, targets, gain, counts, sizes, capacity)
        best = 0
        for choice in product(*(range(c + 1) for c in counts)):
            after = sizes + np.bincount(targets, choice, k) - np.bincount(sources, choice, k)
            if (after <= capacity).all() and (after >= 1).all():
                best = max(best, int((gain * np.array(choice)).sum()))
        after = sizes + np.bincount(targets, flows, k) - np.bincount(sources, flows, k)
        assert (after <= capacity).all()
        assert (after >= 1).all()
        assert (flows >= 0).all()
        assert (flows <= counts).all()
        assert (gain * flows).sum() == best, seed


def test_of_each_pair_the_nodes_that_gain_most_move() -> None:
    for seed in range(60):
        rng = np.random.Generator(np.random.PCG64(seed))
        n, k = 30, 3
        labels = rng.integers(0, k, size=n).astype(np.int32)
        labels[:k] = np.arange(k)
        wishes = ((labels + rng.integers(1, k, size=n)) % k).astype(np.int32)
        gains = rng.integers(-1, 4, size=n).astype(np.int32)
        order = generator(seed).permutation(n)
        capacity = int(np.bincount(labels).max())
        movers = chosen_moves(labels, wishes, gains, order, k, capacity)
        assert len(set(movers.tolist())) == len(movers)
        rank = np.argsort(order)
        for a, b in product(range(k), range(k)):
            line = [u for u in range(n) if (labels[u], wishes[u]) == (a, b) and gains[u] > 0]
            line.sort(key=lambda u: (-gains[u], rank[u]))
            moving = [u for u in line if u in movers]
            assert moving == line[: len(moving)]
        assert (gains[movers] > 0).all()
