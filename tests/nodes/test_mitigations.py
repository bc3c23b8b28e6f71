"""Saying less about a posterior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import ParameterError
from grapheraser.nodes.mitigations import (
    CANDIDATES,
    Guarded,
    Mitigation,
    rounded,
    temperature,
    top_k,
    top_labels,
)

P = np.array([[0.62, 0.28, 0.10], [0.25, 0.25, 0.5]], dtype=np.float32)


def test_temperature_one_changes_nothing_and_a_high_one_flattens() -> None:
    assert np.allclose(temperature(P, 1.0), P)
    assert np.allclose(temperature(P, 1e6), 1 / 3, atol=1e-4)
    assert np.allclose(temperature(P, 1e-3).max(axis=1), 1)
    assert (temperature(P, 3.0).argmax(axis=1) == P.argmax(axis=1)).all()


def test_top_k_keeps_the_k_largest_as_they_are() -> None:
    assert np.allclose(top_k(P, 2), [[0.62, 0.28, 0], [0.25, 0, 0.5]])
    assert np.array_equal(top_k(P, 9), P)


def test_labels_only_tells_the_order_and_no_more() -> None:
    assert np.allclose(top_labels(P, 1), [[1, 0, 0], [0, 0, 1]])
    assert np.allclose(top_labels(P, 2), [[2 / 3, 1 / 3, 0], [1 / 3, 0, 2 / 3]])


def test_rounding_rounds() -> None:
    assert np.allclose(rounded(P, 1), [[0.6, 0.3, 0.1], [0.2, 0.2, 0.5]])


def test_no_mitigation_is_the_posterior_itself() -> None:
    assert np.array_equal(Mitigation()(P), P)
    assert str(Mitigation()) == "none"


def test_mitigations_are_applied_one_after_another() -> None:
    guard = Mitigation(temperature=2.0, top=1, decimals=1)
    assert np.allclose(guard(P), rounded(top_k(temperature(P, 2.0), 1), 1))
    assert str(guard) == "temperature 2, top 1 probability, rounded to 1 decimal"
    assert len({str(candidate) for candidate in CANDIDATES}) == len(CANDIDATES)


@pytest.mark.parametrize(
    "bad",
    [
        *({"temperature": heat} for heat in (0, float("nan"), float("inf"), "a")),
        *({"decimals": count} for count in (-1, 16, 400, 2.0)),
        {"labels": 0},
        {"top": 1.5},
    ],
)
def test_a_bad_option_is_named(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"'{next(iter(bad))}' of Mitigation"):
        Mitigation(**bad)


def test_a_guarded_eraser_hands_out_only_mitigated_answers(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=5).fit(small)
    nodes = small.test_nodes
    guarded = Guarded(eraser, Mitigation(labels=1))
    assert np.array_equal(guarded.predict(nodes), eraser.predict(nodes))
    assert set(np.unique(guarded.predict_proba(nodes))) == {0.0, 1.0}
