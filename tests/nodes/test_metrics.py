"""Scores of classes against scikit-learn's, and calibration by hand."""

from __future__ import annotations

import numpy as np
import pytest

from grapheraser.nodes.metrics import of_classes

metrics = pytest.importorskip("sklearn.metrics")


def test_scores_of_classes_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(5)
    labels = rng.choice(6, size=400, p=[0.4, 0.3, 0.15, 0.1, 0.05, 0.0])
    answers = rng.dirichlet(np.ones(6), size=400)
    answers[np.arange(400), labels] += rng.random(400)
    answers = (answers / answers.sum(axis=1, keepdims=True)).astype(np.float32)
    found, said = of_classes(labels, answers), answers.argmax(axis=1)
    each = metrics.f1_score(labels, said, labels=range(5), average=None, zero_division=0.0)
    assert found["f1"] == pytest.approx(metrics.accuracy_score(labels, said))
    assert found["macro_f1"] == pytest.approx(each.mean())
    assert found["rarest_f1"] == pytest.approx(each[np.bincount(labels)[:5].argmin()])
    held = answers[np.arange(400), labels].astype(np.float64)
    assert found["log_loss"] == pytest.approx(-np.log(held).mean())
    top, gap = answers.max(axis=1), 0.0
    for low in range(15):
        there = (top * 15).astype(int) == low
        if there.any():
            gap += there.mean() * abs((said == labels)[there].mean() - top[there].mean())
    assert found["calibration_error"] == pytest.approx(gap, abs=1e-6)


def test_whoever_is_sure_and_right_is_calibrated() -> None:
    labels = np.array([0, 1, 2, 1])
    found = of_classes(labels, np.eye(3)[labels])
    assert found == {
        "f1": 1.0,
        "macro_f1": 1.0,
        "rarest_f1": 1.0,
        "log_loss": 0.0,
        "calibration_error": 0.0,
    }
