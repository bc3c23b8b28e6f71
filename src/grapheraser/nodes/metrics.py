"""Scores of answers: of classes, several labels and numbers.

Targets that are not known are left out of all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import GraphError
from grapheraser.graph import UNLABELLED
from grapheraser.graph.labels import LabelKind


def measured(
    kind: LabelKind, labels: NDArray[Any], answers: NDArray[Any], threshold: float = 0.5
) -> dict[str, float]:
    """Return all scores of answers about nodes; the first is the one that `score` gives.

    Args:
        kind: of the labels.
        labels: as the graph has them.
        answers: of `posteriors_at`, one row each.
        threshold: how likely one of several labels has to be to be said.
    """
    if len(labels) == 0:
        raise GraphError("there are no nodes to score.")
    bare = int((~kind.labelled(labels)).sum())
    if bare:
        raise GraphError(f"{bare} of the nodes have no label.")
    if kind.is_classes:
        return of_classes(labels, answers)
    if kind.is_numbers:
        return _of_numbers(kind, kind.rows(labels), answers)
    return _of_several(labels, answers, answers >= threshold)


# Bins of expected calibration error, and the share of classes that count as rare.
_BINS, _RARE = 15, 0.25
# No probability that was said of the true class counts as less.
_LEAST = 1e-12


def of_classes(labels: NDArray[Any], answers: NDArray[Any]) -> dict[str, float]:
    """Return micro and macro F1, F1 of the rarest classes, log loss and calibration error.

    Macro F1 is the mean over the classes that the nodes have. The rarest are a quarter of those,
    at least one. The calibration error is the mean gap between what was said of the likeliest class
    and how often it was right, over 15 bins.
    """
    said, right = answers.argmax(axis=1), answers.argmax(axis=1) == labels
    counts, guessed, hits = (
        np.bincount(some, minlength=answers.shape[1]) for some in (labels, said, labels[right])
    )
    classes = np.flatnonzero(counts)
    each = (2 * hits / np.maximum(counts + guessed, 1))[classes]
    rare = np.argsort(counts[classes], kind="stable")[: max(1, int(_RARE * len(classes)))]
    top = answers.max(axis=1).astype(np.float64)
    bins = np.minimum((top * _BINS).astype(np.int64), _BINS - 1)
    gaps = np.bincount(bins, weights=right - top, minlength=_BINS)
    held = np.maximum(answers[np.arange(len(labels)), labels].astype(np.float64), _LEAST)
    return {
        "f1": float(right.mean()),
        "macro_f1": float(each.mean()),
        "rarest_f1": float(each[rare].mean()),
        "log_loss": float(-np.log(held).mean()),
        "calibration_error": float(np.abs(gaps).sum() / len(labels)),
    }


def _of_several(
    labels: NDArray[np.int8], answers: NDArray[np.float32], yes: NDArray[np.bool_]
) -> dict[str, float]:
    """Return micro F1 over all labels, the mean AUC of those with both values, and accuracy."""
    known = labels != UNLABELLED
    hits = int((yes & (labels == 1)).sum())
    wrong = int((known & (yes != (labels == 1))).sum())
    found = {"f1": 2 * hits / (2 * hits + wrong) if hits + wrong else 1.0}
    areas = [
        area
        for k in range(labels.shape[1])
        if (area := _area(answers[known[:, k], k], labels[known[:, k], k])) is not None
    ]
    if areas:
        found["auc"] = float(np.mean(areas))
    return found | {"accuracy": float((yes == (labels == 1))[known].mean())}


def _area(scores: NDArray[np.floating], labels: NDArray[np.int8]) -> float | None:
    """Return the area under the ROC curve; None where one value is missing."""
    positive = int(labels.sum())
    negative = len(labels) - positive
    if not positive or not negative:
        return None
    _, at, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[at]  # equal scores share the mean of theirs
    total = float(ranks[labels == 1].sum()) - positive * (positive + 1) / 2
    return total / (positive * negative)


def _of_numbers(
    kind: LabelKind, labels: NDArray[np.float64], answers: NDArray[np.float64]
) -> dict[str, float]:
    """Return R2, RMSE and MAE, each the mean over targets.

    Squares are taken of numbers over the target's range, so that none is too large or too small.
    """
    exponents = np.array(kind.exponents, dtype=np.int32)
    scores = []
    for k in range(kind.count):
        there = ~np.isnan(labels[:, k])
        if not there.any():
            continue
        true, said = (np.ldexp(part[there, k], -exponents[k]) for part in (labels, answers))
        off, spread = said - true, true - true.mean()
        missed, total = float((off * off).sum()), float((spread * spread).sum())
        perfect = 1.0 if missed == 0.0 else 0.0  # as scikit-learn, where all numbers are one
        r2 = 1.0 - missed / total if total > 0.0 else perfect
        errors = np.array([np.sqrt(missed / len(off)), np.abs(off).mean()])
        with np.errstate(over="ignore"):  # beyond the largest float64 is infinity
            scores.append((r2, *np.ldexp(errors, exponents[k]).tolist()))
    columns = np.array(scores).mean(axis=0)
    return dict(zip(("r2", "rmse", "mae"), columns.tolist(), strict=True))
