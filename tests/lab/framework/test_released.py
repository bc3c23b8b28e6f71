"""LBAggr as the released code has it: the objective's slope, and what a log mean is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser_lab.framework.released import (
    LogMean,
    ReleasedAggregator,
    gradient,
    learned_scores,
    objective,
)
from grapheraser_lab.framework.resolve import WholeAggregator, aggregator_of, softmax_scores


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


def test_readings_of_lbaggr_learn_from_whole_neighbourhoods(tiny: str) -> None:
    graph = ge.load_dataset(tiny)
    eraser = ge.GraphEraser(num_shards=4, epochs=2, aggregation="mean").fit(graph)
    ensemble = eraser.aggregator_.ensemble
    fitted: dict[str, Any] = {
        text: aggregator_of(text).fit(ensemble)
        for text in ("lbaggr", "lbaggr(reading=softmax)", "lbaggr(reading=steps, rate=10.0)")
    }
    for one in fitted.values():
        positions = graph.positions(one.sampled.nodes)
        assert np.array_equal(one.sampled.values, ensemble.posteriors(positions))
        assert one.importance.sum() == pytest.approx(1)
        assert one.importance.min() >= 0
    assert len({tuple(one.importance) for one in fitted.values()}) == 3
    unchanged: Any = None
    again = WholeAggregator().refit(fitted["lbaggr"], ensemble, unchanged)
    assert again.importance == pytest.approx(fitted["lbaggr"].importance)


def test_the_softmax_reading_is_at_its_minimum() -> None:
    rng = np.random.default_rng(0)
    posteriors = rng.dirichlet(np.ones(3), size=(4, 50))
    labels = posteriors[1].argmax(axis=1)  # the second shard is always right

    def loss(scores: NDArray[np.float64]) -> float:
        logits = np.einsum("s,snc->nc", scores, posteriors)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return -float(logits[np.arange(50), labels].mean()) + 0.1 * float(np.linalg.norm(scores))

    found = softmax_scores(posteriors, labels, 0.1)
    assert found.argmax() == 1
    tried = rng.dirichlet(np.ones(4), size=300)
    sizes = np.linspace(0.1, 60, 60)
    best = min(loss(size * found) for size in sizes)
    assert best <= min(loss(size * one) for one in tried for size in sizes[::6]) + 1e-3
