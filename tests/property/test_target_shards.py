"""Shards that learn several labels and numbers: unlearned equals retrained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from tests.property.test_targets import World, bits, fitted, random_change

torch = pytest.importorskip("torch")

SHARDS: dict[str, Any] = {"num_shards": 3, "epochs": 4, "engine": "pyg"}


@pytest.mark.parametrize("kind", ["partial", "partial numbers"])
@pytest.mark.parametrize("model", ["gcn", "sage", "gat", "gin", "mlp"])
def test_a_sequence_of_changes_ends_where_a_fit_on_the_raw_rest_does(kind: str, model: str) -> None:
    world, rng = World.of(kind, 11), np.random.default_rng(4)
    eraser = fitted(world, model=model, **SHARDS)
    for _ in range(4):
        eraser.update([random_change(world, rng)])
    assert bits(eraser) == bits(fitted(world, model=model, **SHARDS))


@pytest.mark.parametrize("loss", [None, "huber"])
def test_a_halo_early_stopping_and_huber_are_as_exact(loss: str | None) -> None:
    training = ge.Training(early_stopping=2, loss=loss)
    arguments = SHARDS | {"model": "gcn", "halo": True, "training": training}
    world, rng = World.of("numbers", 11), np.random.default_rng(5)
    eraser = fitted(world, **arguments)
    for _ in range(3):
        eraser.update([random_change(world, rng)])
    assert bits(eraser) == bits(fitted(world, **arguments))


def test_a_module_of_the_users_own_has_an_output_for_each_target() -> None:
    from torch_geometric.nn import GCN

    def module(columns: int, outputs: int) -> Any:
        return GCN(columns, 8, num_layers=2, out_channels=outputs)

    world = World.of("several", 11)
    eraser = fitted(world, model=module, **SHARDS)
    eraser.unlearn(ge.Nodes([5]))
    assert eraser.predict_proba([1, 7]).shape == (2, 3)
    assert eraser.verify().identical


def test_auto_takes_the_reference_loop_and_says_so() -> None:
    with pytest.warns(UserWarning, match="engine 'pyg', the reference loop, trains this run"):
        eraser = fitted(World.of("several", 11), model="gcn", num_shards=2, epochs=1)
    assert eraser.engine_ == "pyg"
