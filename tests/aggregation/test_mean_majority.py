"""Mean and majority against plain loops over the shards' posteriors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation import (
    AGGREGATORS,
    Ensemble,
    MajorityAggregator,
    MeanAggregator,
    resolve_aggregator,
)
from grapheraser.errors import ParameterError


@dataclass
class FakeGraph:
    num_classes: int


@dataclass
class FakeEnsemble:
    """An ensemble that says what it is told to say."""

    answers: NDArray[np.float32]

    @property
    def graph(self) -> FakeGraph:
        return FakeGraph(self.answers.shape[2])

    def posteriors(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.answers[:, positions]


@st.composite
def ensembles(draw: st.DrawFn) -> FakeEnsemble:
    shape = tuple(draw(st.integers(1, 6)) for _ in range(3))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    # Few distinct values, so that ties happen.
    answers = rng.integers(1, 4, size=shape).astype(np.float32)
    return FakeEnsemble(answers / answers.sum(axis=2, keepdims=True))


def predicted(aggregator: Any, ensemble: FakeEnsemble) -> NDArray[np.float32]:
    found: NDArray[np.float32] = aggregator.predict_proba(
        cast(Ensemble, ensemble), np.arange(ensemble.answers.shape[1])
    )
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    return found


@given(ensembles())
def test_mean_is_the_average_posterior(ensemble: FakeEnsemble) -> None:
    found = predicted(MeanAggregator(), ensemble)
    shards, nodes, classes = ensemble.answers.shape
    for node in range(nodes):
        for label in range(classes):
            total = sum(float(ensemble.answers[s, node, label]) for s in range(shards))
            assert found[node, label] == pytest.approx(total / shards, abs=1e-6)


@given(ensembles())
def test_majority_is_the_share_of_votes_and_ties_go_to_the_lower_class(
    ensemble: FakeEnsemble,
) -> None:
    found = predicted(MajorityAggregator(), ensemble)
    shards, nodes, classes = ensemble.answers.shape
    for node in range(nodes):
        votes: Counter[int] = Counter()
        for s in range(shards):
            row = ensemble.answers[s, node].tolist()
            votes[row.index(max(row))] += 1
        assert found[node].tolist() == pytest.approx([votes[c] / shards for c in range(classes)])
        winner = min(votes, key=lambda label: (-votes[label], label))
        assert found[node].argmax() == winner


@pytest.mark.parametrize("name", ["mean", "majority"])
def test_with_one_shard_the_answer_is_that_shards(small: ge.Graph, name: str) -> None:
    eraser = ge.GraphEraser(num_shards=1, epochs=2, aggregation=name).fit(small)
    alone = ge.GraphEraser(num_shards=1, epochs=2).fit(small)
    assert (eraser.predict(small.ids) == alone.predict(small.ids)).all()


def test_names_and_objects_are_resolved() -> None:
    assert resolve_aggregator("mean", num_shards=2) == MeanAggregator()
    mine = MajorityAggregator()
    assert resolve_aggregator(mine, num_shards=2) is mine
    assert {"mean", "majority"} <= set(AGGREGATORS)


@pytest.mark.parametrize(
    ("bad", "message"), [("median", "Choose from: mean, majority"), (3, "an Aggregator. Got 3")]
)
def test_anything_else_is_refused(bad: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        resolve_aggregator(bad, num_shards=2)
