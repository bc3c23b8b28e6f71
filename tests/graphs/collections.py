"""Collections for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.graphs import Collection

Parts = list[tuple[NDArray[np.int64], NDArray[np.int64], int]]


def random_parts(count: int, seed: int = 0, most: int = 12) -> Parts:
    """Labels, edges and class of random graphs; those of class 1 have more rings and labels 2."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(count):
        y, n = int(rng.integers(2)), int(rng.integers(1, most))
        labels = rng.integers(0, 3 if y else 2, n)
        tree = [(i, int(rng.integers(i))) for i in range(1, n)]
        more = rng.integers(0, n, (y + int(rng.integers(2)), 2)).tolist()
        pairs = {(min(u, v), max(u, v)) for u, v in [*tree, *more] if u != v}
        parts.append((labels, np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2), y))
    return parts


def collection_of(parts: Parts, **options: Any) -> Collection:
    """Put graphs one after the other."""
    offset = np.append(0, np.cumsum([len(labels) for labels, _, _ in parts]))
    edges = [edges + start for (_, edges, _), start in zip(parts, offset, strict=False)]
    return Collection.from_arrays(
        offset,
        np.concatenate([np.zeros((0, 2), np.int64), *edges]),
        [y for _, _, y in parts],
        node_label=np.concatenate([np.zeros(0, np.int64), *(labels for labels, _, _ in parts)]),
        **{"num_classes": 2, **options},
    )
