"""Likelihood ratios find members, and nothing of the forgotten."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.audit.attacks.lira import (
    ShadowRuns,
    left_out_scores,
    likelihood_ratio,
    lira,
    log_odds,
)
from grapheraser.audit.attacks.shadow import KEPT, PLANTED, RECUT, fitted, parameters
from grapheraser.audit.statistics import auc


def made_up(gap: float, *, runs: int = 40, n: int = 300, seed: int = 0) -> ShadowRuns:
    """Answers that are ``gap`` higher where the candidate was trained on."""
    rng = np.random.default_rng(seed)
    member = rng.random((runs, n)) < 0.5
    centre = rng.normal(scale=5, size=n)
    return ShadowRuns(np.arange(n), member, centre + gap * member + rng.normal(size=(runs, n)))


def test_likelihood_ratio_sees_through_what_candidates_have_of_their_own() -> None:
    """Candidates lie far apart, so that no threshold for all of them could do it."""
    runs = made_up(2.0)
    scores, member, _ = left_out_scores(runs)
    assert auc(runs.statistic.ravel(), member) < 0.65
    # Two normal distributions two apart: 0.921.
    assert auc(scores, member) == pytest.approx(0.921, abs=0.02)


def test_likelihood_ratio_is_chance_where_training_does_not_show() -> None:
    scores, member, _ = left_out_scores(made_up(0.0))
    assert auc(scores, member) == pytest.approx(0.5, abs=0.02)


def test_the_run_under_attack_is_none_of_the_attackers() -> None:
    """With it among them, its own noise would look like evidence."""
    runs = made_up(0.0, runs=12)
    with_it = np.array([likelihood_ratio(runs, row) for row in runs.statistic])
    assert auc(with_it.ravel(), runs.member.ravel()) > 0.55
    scores, member, _ = left_out_scores(runs)
    assert auc(scores, member) == pytest.approx(0.5, abs=0.03)


def test_a_candidate_that_is_in_every_run_has_a_finite_ratio() -> None:
    runs = made_up(1.0, runs=8)
    runs.member[:, 0] = True
    assert np.isfinite(likelihood_ratio(runs, runs.statistic[0])).all()


def test_log_odds_stay_finite_for_rounded_answers() -> None:
    odds = log_odds(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), np.array([0, 0, 1]))
    assert np.isfinite(odds).all()
    assert odds[0] > 10
    assert odds[1] < -10
    assert odds[2] == 0


@pytest.fixture(scope="module")
def noisy(demo: ge.Graph) -> ge.Graph:
    """Random labels: what a model knows of a node is the node itself."""
    keep = np.sort(np.random.default_rng(0).choice(demo.ids, 500, replace=False))
    small = demo.subgraph(keep).with_split(test_share=0.5, seed=1)
    return ge.Graph.from_arrays(
        small.x,
        small.edges.T,
        np.random.default_rng(1).integers(4, size=small.num_nodes),
        ids=small.ids,
        test=small.test_nodes,
        num_classes=4,
        each_edge_once=True,
        name="random labels",
    )


@pytest.fixture(scope="module")
def overfitted(noisy: ge.Graph) -> ge.GraphEraser:
    """Shards alone: a pool learns from random labels to listen to nobody."""
    eraser = ge.GraphEraser(
        model="mlp", partition="hash", num_shards=2, epochs=120, global_expert=False
    )
    return fitted(parameters(eraser), noisy)


def test_lira_finds_members_and_no_trace_of_the_forgotten(
    noisy: ge.Graph, overfitted: ge.GraphEraser
) -> None:
    scenarios = (KEPT, RECUT, PLANTED)
    result = lira(overfitted, noisy, runs=16, forget=25, scenarios=scenarios)
    assert result.standing.auc.low > 0.7
    assert result.before.auc.low > 0.7
    assert result.after[PLANTED] == result.before
    assert result.after[KEPT] == result.after[RECUT]
    assert result.after[KEPT].auc.holds(0.5)
    assert result.after[KEPT].auc.high < result.before.auc.low
