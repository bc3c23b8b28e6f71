"""LBAggr as the released code has it: the objective's slope, and what a log mean is."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.experiments.framework.released import (
    LogMean,
    ReleasedAggregator,
    gradient,
    learned_scores,
    objective,
)
from grapheraser.experiments.framework.resolve import aggregator_of
from grapheraser.experiments.framework.stepped import SteppedAggregator


@pytest.fixture
def logs() -> np.ndarray:
    rng = np.random.default_rng(0)
    raw = rng.random((3, 40, 4)) + 0.05
    return np.log(raw / raw.sum(axis=2, keepdims=True))


def test_the_slope_is_that_of_the_objective(logs: np.ndarray) -> None:
    truth = np.eye(4)[np.arange(40) % 4]
    scores, step = np.array([0.2, 0.5, 0.3]), 1e-6
    numerical = [
        (objective(logs, truth, scores + step * e) - objective(logs, truth, scores - step * e))
        / (2 * step)
        for e in np.eye(3)
    ]
    assert gradient(logs, truth, scores) == pytest.approx(numerical, abs=1e-6)


def test_scores_are_shares_and_prefer_the_shard_that_knows(logs: np.ndarray) -> None:
    labels = np.arange(40) % 4
    sure = np.full((40, 4), np.log(0.01))
    sure[np.arange(40), labels] = np.log(0.97)
    scores = learned_scores(
        np.concatenate([logs[:2], sure[None]]), labels, np.random.default_rng(1)
    )
    assert scores.sum() == pytest.approx(1)
    assert scores.min() >= 0
    assert scores.argmax() == 2


def test_scores_that_all_end_at_zero_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = np.log(np.full((4, 40, 2), 0.5))
    scores = learned_scores(nothing, np.arange(40) % 2, np.random.default_rng(0))
    assert scores == pytest.approx([0.25] * 4)


def test_both_aggregate_logarithms_and_read_back_what_they_learned(tiny: str) -> None:
    graph = ge.load_dataset(tiny)
    eraser = ge.GraphEraser(num_shards=4, epochs=2, aggregation="mean").fit(graph)
    ensemble = eraser.aggregator_.ensemble
    positions = graph.positions(graph.test_nodes)
    logs = np.log(ensemble.posteriors(positions).astype(np.float64))
    for aggregator in (LogMean(), ReleasedAggregator()):
        fitted = aggregator.fit(ensemble)
        answers = fitted.predict_proba(ensemble, positions).argmax(axis=1)
        by_hand = np.einsum("s,snc->nc", fitted.importance, logs).argmax(axis=1)
        assert np.array_equal(answers, by_hand)
        again = aggregator.restore(fitted.tensors)
        assert np.array_equal(again.importance, fitted.importance)
        assert fitted.explain(ensemble, int(positions[0])).label == answers[0]
    assert LogMean().fit(ensemble).importance == pytest.approx([0.25] * 4)


def test_steps_by_default_are_the_papers_and_a_rate_moves_nothing_much(tiny: str) -> None:
    graph = ge.load_dataset(tiny)
    eraser = ge.GraphEraser(num_shards=4, epochs=2, aggregation="mean").fit(graph)
    ensemble = eraser.aggregator_.ensemble
    preset = aggregator_of("learned(solver=paper)").fit(ensemble).tensors["importance"]
    assert np.array_equal(SteppedAggregator().fit(ensemble).importance, preset)
    other = aggregator_of("stepped(rate=10.0)").fit(ensemble).tensors["importance"]
    assert not np.array_equal(other, preset)
