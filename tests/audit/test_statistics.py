"""Figures of merit against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, roc_auc_score, roc_curve

from grapheraser.audit.budget import Budget
from grapheraser.audit.statistics import adjusted_rand_index, auc, rates


@given(st.integers(0, 10_000), st.integers(2, 400), st.integers(1, 300))
def test_auc_and_tpr_are_scikit_learns(seed: int, n: int, distinct: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(distinct, size=n).astype(np.float64)
    member = rng.random(n) < 0.5
    member[:2] = (True, False)
    assert auc(scores, member) == pytest.approx(roc_auc_score(member, scores))
    fpr, tpr, _ = roc_curve(member, scores, drop_intermediate=False)
    for allowed, found in rates(scores, member, resamples=0).tpr.items():
        assert found.value == pytest.approx(tpr[fpr <= allowed].max())


def test_one_group_alone_is_no_evidence() -> None:
    assert auc(np.arange(3.0), np.ones(3, dtype=bool)) == 0.5
    assert auc(np.zeros(0), np.zeros(0, dtype=bool)) == 0.5


@given(st.integers(0, 10_000), st.integers(2, 40))
def test_rand_index_is_scikit_learns(seed: int, n: int) -> None:
    a, b = np.random.default_rng(seed).integers(4, size=(2, n))
    assert adjusted_rand_index(a, b) == pytest.approx(adjusted_rand_score(a, b))


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    """Normal scores one apart have an AUC of 0.76; some of the 40 intervals may miss it."""
    hits = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        member = np.arange(200) < 100
        found = rates(rng.normal(size=200) + member, member, seed=seed, resamples=120)
        hits += found.auc.holds(0.7602)
    assert hits >= 34


def test_clusters_widen_an_interval_of_repeated_candidates() -> None:
    rng = np.random.default_rng(0)
    scores, member = rng.normal(size=40), np.arange(40) < 20
    repeated, truth = np.tile(scores + member, 9), np.tile(member, 9)
    alone = rates(repeated, truth).auc
    together = rates(repeated, truth, clusters=np.tile(np.arange(40), 9)).auc
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_a_budget_stops_before_the_round_that_does_not_fit() -> None:
    now = 0.0

    def clock() -> float:
        return now

    done = []
    for number in Budget(10.0, clock).rounds(100, least=2):
        done.append(number)
        now += 3.0
    assert done == [0, 1, 2]
    now, done = 0.0, []
    for number in Budget(1.0, clock).rounds(100, least=2):
        done.append(number)
        now += 3.0
    assert done == [0, 1]
