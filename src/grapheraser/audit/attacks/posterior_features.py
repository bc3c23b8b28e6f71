"""What an attack makes of a candidate's posteriors.

`FEATURES` are Chen et al.'s five ways of showing two posteriors to an attack model. "Sorted" puts
the classes into the order of the earlier version's posterior, largest first, in both versions: the
attack then learns from confidence, not from which class it was.

`INFORMED` are more of them, for an attacker who also uses the candidate's label and looks at
logarithms. A pool adds logarithms of what its members hold, so the traces of a record add up there;
among probabilities they drown where the pool is nearly sure.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]
# The least probability that is told from 0.
_FLOOR = 1e-6


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


def log_distance(before: Matrix, after: Matrix, labels: Labels) -> Matrix:
    """How far the logarithms of the posterior moved, on a logarithmic scale ``[n, 1]``."""
    moved = euclidean_distance(logarithms(before), logarithms(after))
    return np.log(np.maximum(moved, _FLOOR))


def fall(before: Matrix, after: Matrix, labels: Labels) -> Matrix:
    """How far the log odds of the true class fell ``[n, 1]``."""
    return (log_odds(before, labels) - log_odds(after, labels))[:, None]


def fall_and_distance(before: Matrix, after: Matrix, labels: Labels) -> Matrix:
    """The log odds of the true class before, their fall, and the log distance ``[n, 3]``."""
    parts = fall(before, after, labels), log_distance(before, after, labels)
    return np.hstack([log_odds(before, labels)[:, None], *parts])


INFORMED: dict[str, Callable[[Matrix, Matrix, Labels], Matrix]] = {
    "fall of its class": fall,
    "fall and log distance": fall_and_distance,
    "log distance": log_distance,
}


def logarithms(posteriors: NDArray[np.floating]) -> Matrix:
    """Of every entry; bounded, so that rounded answers stay finite."""
    return np.log(np.maximum(np.asarray(posteriors, dtype=np.float64), _FLOOR))


def log_odds(posteriors: NDArray[np.floating], labels: Labels) -> NDArray[np.float64]:
    """Log odds of the true class ``[n]``, bounded likewise."""
    rest = np.array(posteriors, dtype=np.float64)
    at = np.arange(len(rest)), labels
    true = rest[at]
    rest[at] = 0.0
    return logarithms(true) - logarithms(rest.sum(axis=1))


def calibrated(posteriors: NDArray[np.floating], labels: Labels) -> NDArray[np.float64]:
    """Log odds of the true class beside those of the same class, in deviations of all ``[n]``.

    How sure one run is of everybody says nothing about anybody, and differs from run to run: a
    pool learns anew how much to make of each member and of each class.
    """
    odds = log_odds(posteriors, labels)
    means = np.bincount(labels, weights=odds) / np.maximum(np.bincount(labels), 1)
    centred = odds - means[labels]
    deviation = float(centred.std())
    return centred / deviation if deviation > 0 else centred


def classical(before: Matrix) -> Matrix:
    """What membership inference without unlearning is shown: one sorted posterior ``[n, c]``."""
    return -np.sort(-before, axis=1)


def _sorted(before: Matrix, after: Matrix) -> tuple[Matrix, Matrix]:
    order = np.argsort(-before, axis=1, kind="stable")
    return np.take_along_axis(before, order, axis=1), np.take_along_axis(after, order, axis=1)
