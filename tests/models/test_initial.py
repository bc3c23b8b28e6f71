"""Initial weights: PyG's distributions, keyed by name, row and column."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grapheraser.models import PRESETS, architecture_of, initial_weights
from grapheraser.models.modules import build_module

FEATURES, CLASSES = 30, 5
EVERY = np.arange(FEATURES)
PINNED = [[0.3240539, -0.2680707, -0.1037916], [-0.2589195, 0.4445593, -0.3649207]]


def pyg_parameters(name: str, seed: int) -> dict[str, torch.Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return dict(build_module(PRESETS[name], FEATURES, CLASSES).named_parameters())


@pytest.mark.parametrize("name", PRESETS)
def test_names_and_shapes_are_those_of_the_pyg_module(name: str) -> None:
    expected = {key: tuple(value.shape) for key, value in pyg_parameters(name, 0).items()}
    assert architecture_of(PRESETS[name], FEATURES, CLASSES).parameter_shapes == expected
    found = initial_weights(PRESETS[name], FEATURES, CLASSES, EVERY, 0)
    assert {key: value.shape for key, value in found.items()} == expected
    assert all(value.dtype == np.float32 for value in found.values())


@pytest.mark.parametrize("name", PRESETS)
def test_the_range_of_every_parameter_is_that_of_pyg(name: str) -> None:
    """The extremes of many draws come near the bounds, and ours must be PyG's."""
    theirs: dict[str, list[float]] = {}
    ours: dict[str, list[float]] = {}
    for key in range(40):
        for parameter, value in pyg_parameters(name, key).items():
            theirs.setdefault(parameter, []).extend(value.detach().flatten().tolist()[:400])
        start = initial_weights(PRESETS[name], FEATURES, CLASSES, EVERY, key)
        for parameter, array in start.items():
            ours.setdefault(parameter, []).extend(array.ravel().tolist()[:400])
    for parameter, values in theirs.items():
        low, high = min(values), max(values)
        spread = max(high - low, 1e-6)
        assert min(ours[parameter]) == pytest.approx(low, abs=0.06 * spread), parameter
        assert max(ours[parameter]) == pytest.approx(high, abs=0.06 * spread), parameter
        assert np.std(ours[parameter]) == pytest.approx(np.std(values), abs=0.1 * spread), parameter


@pytest.mark.parametrize("name", PRESETS)
@given(columns=st.lists(st.integers(0, FEATURES - 1), unique=True).map(sorted))
def test_leaving_out_columns_changes_no_other_entry(name: str, columns: list[int]) -> None:
    spec = PRESETS[name]
    whole = initial_weights(spec, FEATURES, CLASSES, EVERY, 7)
    part = initial_weights(spec, FEATURES, CLASSES, np.array(columns, dtype=np.int64), 7)
    inputs = architecture_of(spec, 1, 1).inputs.names
    for parameter, array in whole.items():
        expected = array[:, columns] if parameter in inputs else array
        assert part[parameter].shape == expected.shape
        assert part[parameter].tobytes() == np.ascontiguousarray(expected).tobytes()


def test_keys_and_parameters_have_numbers_of_their_own() -> None:
    spec = PRESETS["sage"]
    first, second = (initial_weights(spec, FEATURES, CLASSES, EVERY, key) for key in (1, 2))
    assert not np.array_equal(first["conv1.lin_l.weight"], second["conv1.lin_l.weight"])
    assert not np.array_equal(first["conv1.lin_l.weight"], first["conv1.lin_r.weight"])


def test_the_numbers_are_pinned() -> None:
    """A change here makes every stored run impossible to verify: a new major version."""
    start = initial_weights(PRESETS["gcn"], 3, 2, np.arange(3), 0)
    bound = np.sqrt(6 / (3 + 16))
    assert np.abs(start["conv1.lin.weight"]).max() <= bound
    np.testing.assert_array_equal(start["conv1.bias"], np.zeros(16))
    found = start["conv1.lin.weight"][:2].astype(np.float64)
    np.testing.assert_allclose(found, PINNED, rtol=1e-6)
