"""The Hungarian method finds the cheapest assignment; the greedy one keeps every place."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from grapheraser_lab.measure.partition import greedily, kuhn_munkres


@pytest.mark.parametrize("seed", range(3))
def test_kuhn_and_munkres_are_as_cheap_as_scipy(seed: int) -> None:
    cost = np.random.default_rng(seed).random((30, 30))
    found = kuhn_munkres(cost)
    assert sorted(found) == list(range(30))
    rows, columns = linear_sum_assignment(cost)
    assert cost[np.arange(30), found].sum() == pytest.approx(cost[rows, columns].sum())


def test_greedy_places_are_never_exceeded() -> None:
    found = greedily(np.random.default_rng(0).random((30, 5)), 6)
    assert np.bincount(found).tolist() == [6] * 5
