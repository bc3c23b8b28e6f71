"""Shards that learn several labels and numbers: unlearned equals retrained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from tests.property.test_targets import World, bits, fitted, random_change

torch = pytest.importorskip("torch")

SHARDS: dict[str, Any] = {"num_shards": 3, "epochs": 4, "engine": "pyg"}
# A kernel takes seconds to compile.
MODELS = [
    pytest.param(model, engine, marks=[pytest.mark.long] if engine == "cpu" and slow else [])
    for engine in ("pyg", "cpu")
    for model, slow in {"gcn": 0, "sage": 1, "gat": 1, "gin": 1, "mlp": 0}.items()
]


@pytest.mark.parametrize("kind", ["partial", "partial numbers"])
@pytest.mark.parametrize(("model", "engine"), MODELS)
def test_a_sequence_of_changes_ends_where_a_fit_on_the_raw_rest_does(
    kind: str, model: str, engine: str
) -> None:
    world, rng = World.of(kind, 11), np.random.default_rng(4)
    arguments = SHARDS | {"model": model, "engine": engine}
    eraser = fitted(world, **arguments)
    for _ in range(4):
        eraser.update([random_change(world, rng)])
    assert bits(eraser) == bits(fitted(world, **arguments))


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


@pytest.mark.parametrize("kind", ["several", "partial numbers"])
def test_auto_takes_the_kernels_which_learn_what_the_reference_loop_does(kind: str) -> None:
    training = ge.Training(dropout=0.0)
    shards = {"model": "mlp", "num_shards": 2, "epochs": 20, "training": training}
    world = World.of(kind, 11)
    ours, slow = fitted(world, **shards), fitted(world, engine="pyg", **shards)
    assert (ours.engine_, slow.engine_) == ("cpu", "pyg")
    for weights, expected in zip(ours.shards_.values(), slow.shards_.values(), strict=True):
        for name, tensor in weights.tensors.items():
            other = expected.tensors[name].astype(np.float32)
            np.testing.assert_allclose(tensor.astype(np.float32), other, atol=1e-4, rtol=0)
    huber, numbers = ge.Training(loss="huber"), World.of("numbers", 11)
    with pytest.warns(UserWarning, match="the fast engines can't train with loss='huber'"):
        eraser = fitted(numbers, model="mlp", num_shards=2, training=huber)
    assert eraser.engine_ == "pyg"
