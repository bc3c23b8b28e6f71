"""AUC, Hits@K and mean reciprocal rank, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from grapheraser.errors import GraphError
from grapheraser.links.metrics import link_score


@pytest.mark.parametrize("seed", range(3))
def test_auc_is_that_of_scikit_learn_also_with_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, labels = rng.integers(12, size=200).astype(float), rng.random(200) < 0.4
    assert link_score(scores, labels).auc == pytest.approx(roc_auc_score(labels, scores))


def test_hits_and_reciprocal_ranks_follow_their_definitions() -> None:
    others = np.arange(100.0)
    edges = np.array([200.0, 94.5, 50.5, 90.0])
    labels = np.repeat([True, False], [len(edges), len(others)])
    found = link_score(np.concatenate([edges, others]), labels)
    assert found.hits == {10: 0.5, 50: 1.0, 100: 1.0}
    expected = np.mean([1 / (1 + higher) for higher in (0, 5, 49, 9.5)])
    assert found.mrr == pytest.approx(expected)
    assert (found.edges, found.others) == (4, 100)


def test_hits_among_fewer_others_than_k_are_certain() -> None:
    found = link_score(np.array([0.0, 1.0]), np.array([True, False]))
    assert found.hits[50] == 1.0
    assert found.auc == 0.0


@pytest.mark.parametrize("label", [True, False])
def test_one_kind_of_pairs_can_not_be_scored(label: bool) -> None:
    with pytest.raises(GraphError, match="pairs of both labels"):
        link_score(np.zeros(3), np.full(3, label))
