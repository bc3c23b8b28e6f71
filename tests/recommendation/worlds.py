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
    item_power: float = 0.3,
    blocks: Sequence[tuple[float, int]] = ((0.2, 3),),
    damping: float = 0.2,
    ridge: float = 25.0,
    scale: float = 1.0,
) -> NDArray[np.float64]:
    """Scores of all items for one user, -inf where no neighbour leads, by dense formulas."""
    strength = np.asarray(matrix.todense(), dtype=float) / scale
    there = strength > 0
    users, items = there.sum(axis=1), there.sum(axis=0)
    power = np.maximum(items, 1.0) ** -item_power
    common = (strength * power) @ strength[user]
    own, common[user] = common[user], 0
    near = common > 0
    total = np.zeros(len(items))
    for (b, steps), weight in zip(blocks, weights, strict=False):
        rows = strength[near] * (users[near] ** -b)[:, None]
        matrix_ = rows @ rows.T + ridge * own * users[user] ** (-2 * b) * np.eye(near.sum())
        x = krylov(matrix_, common[near] * users[near] ** -b, steps)
        y, mass = x @ rows, np.abs(x) @ users[near] ** -b
        share = np.maximum(y, 0) / mass if mass else np.zeros(len(items))
        total += weight * (np.log(share + 1e-3) - damping * np.log(np.maximum(items, 1)))
    total += weights[-1] * np.log(np.maximum(items, 1))
    total[there[near].sum(axis=0) == 0] = -math.inf
    return total


def krylov(matrix: NDArray[Any], right: NDArray[Any], steps: int) -> NDArray[Any]:
    """Return what as many steps of conjugate gradients lead to: the best of a Krylov space."""
    space = [right / np.linalg.norm(right)] if len(right) else []
    for _ in range(steps - 1):
        new = matrix @ space[-1] if space else right
        for _ in range(2):
            for old in space:
                new = new - (old @ new) * old
        if np.linalg.norm(new) > 1e-9 * np.linalg.norm(matrix):
            space.append(new / np.linalg.norm(new))
    if not space:
        return np.zeros(len(right))
    basis = np.array(space).T
    found: NDArray[Any] = basis @ np.linalg.solve(basis.T @ matrix @ basis, basis.T @ right)
    return found


def listed(interactions: Mapping[tuple[Any, Any], float]) -> dict[str, list[Any]]:
    """A table of interactions, by ascending user and item."""
    pairs = sorted(interactions)
    return {
        "user": [user for user, _ in pairs],
        "item": [item for _, item in pairs],
        "weight": [interactions[pair] for pair in pairs],
    }
