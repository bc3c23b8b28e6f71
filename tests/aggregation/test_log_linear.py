"""Weights of a pool: what an independent optimiser finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from grapheraser.aggregation.log_linear import OFFSET_PULL, PULL, PoolWeights, pool_weights

Array = NDArray[np.float64]
# The gain that the solver leaves on the table, per node.
TOLERANCE = 1e-5


def problem(
    seed: int, nodes: int, members: int, classes: int, *, sharp: float = 1.0
) -> tuple[Array, NDArray[np.int64], Array]:
    """Members that know the classes more or less, one of them worse than nothing."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=nodes)
    skill = rng.uniform(0, 2, size=members)
    skill[-1] = -1.0
    truth = np.eye(classes)[labels][:, None] * skill[:, None]
    evidence = log_softmax(sharp * (truth + rng.normal(size=(nodes, members, classes))), axis=2)
    return np.maximum(evidence, -30.0), labels, rng.uniform(0.1, 0.5, size=members)


def objective(x: Array, L: Array, labels: NDArray[np.int64], start: Array) -> tuple[float, Array]:
    """The value and its gradient."""
    members = len(start)
    w, b = x[:members], x[members:]
    logs = log_softmax(np.einsum("i,vic->vc", w, L) + b, axis=1)
    residue = np.exp(logs) - np.eye(L.shape[2])[labels]
    value = -logs[np.arange(len(labels)), labels].sum()
    value += 0.5 * PULL * ((w - start) ** 2).sum() + 0.5 * OFFSET_PULL * (b**2).sum()
    by_weight = np.einsum("vc,vic->i", residue, L) + PULL * (w - start)
    return float(value), np.concatenate([by_weight, residue.sum(axis=0) + OFFSET_PULL * b])


def joined(found: PoolWeights) -> Array:
    return np.concatenate([found.members, found.offsets])


def best(L: Array, labels: NDArray[np.int64], start: Array) -> Array:
    bounds = [(0, None)] * len(start) + [(None, None)] * L.shape[2]
    x = np.concatenate([start, np.zeros(L.shape[2])])
    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
    solve: Any = minimize
    found: Array = solve(
        objective, x, (L, labels, start), "L-BFGS-B", jac=True, bounds=bounds, options=options
    ).x
    return found


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    nodes=st.integers(1, 150),
    members=st.integers(1, 6),
    classes=st.integers(1, 8),
    sharp=st.sampled_from([0.1, 1.0, 10.0]),
)
def test_it_is_the_minimum_that_scipy_finds(
    seed: int, nodes: int, members: int, classes: int, sharp: float
) -> None:
    L, labels, start = problem(seed, nodes, members, classes, sharp=sharp)
    found = pool_weights(L, labels, start)
    assert (found.members >= 0).all()
    x, reference = joined(found), best(L, labels, start)
    value, gradient = objective(x, L, labels, start)
    least, _ = objective(reference, L, labels, start)
    left = TOLERANCE * nodes
    assert value <= least + left
    # The objective curves at least as much as the pulls do.
    curvature = np.concatenate([np.full(members, PULL), np.full(classes, OFFSET_PULL)])
    assert 0.5 * (curvature * (x - reference) ** 2).sum() <= left + 1e-7
    # No slope where a weight may move either way, none downwards where it may only rise.
    slope = np.where((x > 0) | (np.arange(len(x)) >= members), gradient, np.minimum(gradient, 0))
    steepest = 0.25 * nodes * max(1.0, float(np.abs(L).max())) ** 2 + PULL
    assert 0.5 * float(slope @ slope) / (steepest * len(x)) <= left


def test_a_member_worse_than_nothing_gets_no_weight_at_all() -> None:
    L, labels, start = problem(1, 400, 3, 4)
    found = pool_weights(L, labels, start)
    assert found.members[-1] == 0.0
    assert found.members[:-1].max() > 0.1
    _, gradient = objective(joined(found), L, labels, start)
    assert gradient[2] > 0
    assert np.abs(np.delete(gradient, 2)).max() < 0.1


@pytest.mark.parametrize("classes", [1, 3])
def test_without_nodes_the_start_stays(classes: int) -> None:
    start = np.array([0.3, 0.1])
    found = pool_weights(np.zeros((0, 2, classes)), np.zeros(0, dtype=np.int64), start)
    assert found.members.tolist() == start.tolist()
    assert found.offsets.tolist() == [0.0] * classes
    assert found.members is not start


def test_members_that_say_nothing_keep_their_weight_and_offsets_learn_the_classes() -> None:
    labels = np.repeat([0, 1], [300, 100])
    found = pool_weights(np.full((400, 2, 2), -0.7), labels, np.array([0.2, 0.4]))
    np.testing.assert_allclose(found.members, [0.2, 0.4])
    shares = np.exp(log_softmax(found.offsets))
    np.testing.assert_allclose(shares, [0.75, 0.25], atol=0.01)


def test_a_constant_that_a_member_adds_to_a_row_changes_nothing() -> None:
    L, labels, start = problem(3, 120, 3, 4)
    shifted = L + np.random.default_rng(0).normal(size=(120, 3, 1))
    mine, its = (joined(pool_weights(part, labels, start)) for part in (L, shifted))
    np.testing.assert_allclose(mine, its, atol=1e-6)


def test_the_same_input_gives_the_same_bits() -> None:
    L, labels, start = problem(4, 200, 5, 6)
    first = joined(pool_weights(L, labels, start))
    assert joined(pool_weights(L.copy(), labels, start)).tobytes() == first.tobytes()
    part = np.asfortranarray(L)
    assert joined(pool_weights(part, labels, start)).tobytes() == first.tobytes()


def test_evidence_as_sure_as_it_may_be_is_no_trouble() -> None:
    """Every row at the floor but for one class, right or wrong."""
    rng = np.random.default_rng(0)
    labels = rng.integers(5, size=300)
    said = np.where(rng.random((300, 2)) < 0.7, labels[:, None], rng.integers(5, size=(300, 2)))
    L = np.where(np.eye(5)[said] > 0, 0.0, -30.0)
    start = np.array([3.0, 3.0])
    found = joined(pool_weights(L, labels, start))
    value, _ = objective(found, L, labels, start)
    least, _ = objective(best(L, labels, start), L, labels, start)
    assert value <= least + TOLERANCE * 300
