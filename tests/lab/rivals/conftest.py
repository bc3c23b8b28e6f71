"""One small graph in place of every data set."""

from __future__ import annotations

from functools import partial

import pytest

import grapheraser as ge
from grapheraser.audit.attacks.membership import attack
from grapheraser_lab.rivals import measure
from tests.strategies import small_graph


@pytest.fixture(scope="session")
def middling() -> ge.Graph:
    """120 nodes, 90 of them for training."""
    return small_graph(n=120)


@pytest.fixture
def offline(middling: ge.Graph, monkeypatch: pytest.MonkeyPatch) -> ge.Graph:
    """Whatever data set is asked for; few epochs of PyG, and one attack model."""
    monkeypatch.setattr(measure, "_loaded", lambda name, seed: middling)
    monkeypatch.setattr(measure, "EPOCHS", 2)
    quick = partial(attack, models=("decision tree",))
    monkeypatch.setattr(measure, "attack", quick)
    return middling
