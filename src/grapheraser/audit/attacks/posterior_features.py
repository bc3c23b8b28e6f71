"""What an attack model is shown of a candidate's two posteriors: Chen et al.'s five ways.

"Sorted" puts the classes into the order of the earlier version's posterior, largest first, in both
versions: the attack then learns from confidence, not from which class it was.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def direct_difference(before: Matrix, after: Matrix) -> Matrix:
    """Before minus after, class by class ``[n, c]``."""
    return before - after


def sorted_difference(before: Matrix, after: Matrix) -> Matrix:
    """Before minus after, classes by falling confidence before ``[n, c]``."""
    return direct_difference(*_sorted(before, after))


def direct_concatenation(before: Matrix, after: Matrix) -> Matrix:
    """Both posteriors side by side ``[n, 2 c]``."""
    return np.hstack([before, after])


def sorted_concatenation(before: Matrix, after: Matrix) -> Matrix:
    """Both posteriors side by side, classes by falling confidence before ``[n, 2 c]``."""
    return direct_concatenation(*_sorted(before, after))


def euclidean_distance(before: Matrix, after: Matrix) -> Matrix:
    """One number: how far the posterior moved ``[n, 1]``."""
    return np.linalg.norm(before - after, axis=1, keepdims=True)


FEATURES: dict[str, Callable[[Matrix, Matrix], Matrix]] = {
    "direct difference": direct_difference,
    "sorted difference": sorted_difference,
    "direct concatenation": direct_concatenation,
    "sorted concatenation": sorted_concatenation,
    "Euclidean distance": euclidean_distance,
}


def classical(before: Matrix) -> Matrix:
    """What membership inference without unlearning is shown: one sorted posterior ``[n, c]``."""
    return -np.sort(-before, axis=1)


def _sorted(before: Matrix, after: Matrix) -> tuple[Matrix, Matrix]:
    order = np.argsort(-before, axis=1, kind="stable")
    return np.take_along_axis(before, order, axis=1), np.take_along_axis(after, order, axis=1)
