"""Small worlds of users and items, and a recommender that is worked out the plain way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Pairs = set[tuple[int, int]]


def random_matrix(users: int, items: int, seed: int = 0, per_user: int = 6) -> sp.csr_array:
    """Users of a few tastes, whose items overlap."""
    draw = np.random.default_rng(seed)
    dense = np.zeros((users, items))
    for user in range(users):
        taste = user % 3 * items // 3
        near = (taste + draw.integers(0, items // 2, per_user)) % items
        dense[user, near] = 1
        dense[user, draw.integers(0, max(1, items // 6), 2)] = 1
    return sp.csr_array(dense)


def plain_scores(
    matrix: Any,
    user: int,
    weights: Sequence[float],
    *,
    item_power: float = 0.4,
    blocks: Sequence[tuple[float, int]] = ((0.6, 2), (0.8, 1)),
    damping: float = 0.3,
    scale: float = 1.0,
) -> NDArray[np.float64]:
    """Scores of all items for one user, -inf where no neighbour leads, by dense formulas."""
    strength = np.asarray(matrix.todense(), dtype=float) / scale
    there = strength > 0
    users, items = there.sum(axis=1), there.sum(axis=0)
    power = np.maximum(items, 1.0) ** -item_power
    common = (strength * power) @ strength[user]
    common[user] = 0
    total = np.zeros(len(items))
    for (b, q), weight in zip(blocks, weights, strict=False):
        x = (common * np.maximum(users, 1.0) ** -b) ** q
        share = x @ strength / x.sum() if x.sum() else np.zeros(len(items))
        total += weight * (np.log(share + 1e-6) - damping * np.log(np.maximum(items, 1)))
    total += weights[-1] * np.log(np.maximum(items, 1))
    total[(there[common > 0].sum(axis=0)) == 0] = -math.inf
    return total


def listed(interactions: Mapping[tuple[Any, Any], float]) -> dict[str, list[Any]]:
    """A table of interactions, by ascending user and item."""
    pairs = sorted(interactions)
    return {
        "user": [user for user, _ in pairs],
        "item": [item for _, item in pairs],
        "weight": [interactions[pair] for pair in pairs],
    }
