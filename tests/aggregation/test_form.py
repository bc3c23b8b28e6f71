"""What the tensors of an aggregator must look like before anything computes with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation import ChecksTensors
from grapheraser.errors import CorruptRunError
from tests.strategies import small_graph

Array = NDArray[Any]
CHANGES: dict[str, Callable[[Array], Array]] = {
    "another type": lambda array: np.zeros(array.shape, dtype=np.float16),
    "one row less": lambda array: array[:-1],
    "one axis more": lambda array: array[None],
    "out of range": lambda array: np.full_like(array, np.nan if array.dtype.kind == "f" else -7e8),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "routed": {"num_shards": 3},
    "learned": {"num_shards": 3, "aggregation": "learned"},
    "closed-form": {"model": "closed-form", "num_shards": 1},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", SETTINGS)
def test_tensors_of_another_form_are_refused(name: str, change: str) -> None:
    options = SETTINGS[name] if name == "closed-form" else {**SETTINGS[name], "epochs": 1}
    eraser = ge.GraphEraser(**options).fit(small_graph())
    aggregator, state = eraser._snapshot.settings.aggregator, eraser._snapshot.state
    assert isinstance(aggregator, ChecksTensors)
    tensors = dict(state.aggregator.tensors)
    aggregator.check_tensors(tensors, state.ensemble)
    for key, tensor in tensors.items():
        if change == "out of range" and key.endswith(("cross", "gram")):
            continue  # sums of whole numbers of any sign
        with pytest.raises(CorruptRunError):
            aggregator.check_tensors({**tensors, key: CHANGES[change](tensor)}, state.ensemble)
        left = {other: value for other, value in tensors.items() if other != key}
        with pytest.raises(CorruptRunError, match="missing or unknown"):
            aggregator.check_tensors(left, state.ensemble)


def test_aggregations_that_learn_nothing_hold_nothing() -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=1, aggregation="mean").fit(small_graph())
    aggregator = eraser._snapshot.settings.aggregator
    assert isinstance(aggregator, ChecksTensors)
    aggregator.check_tensors({}, eraser._snapshot.state.ensemble)
    with pytest.raises(CorruptRunError, match="missing or unknown"):
        aggregator.check_tensors({"more": np.zeros(3)}, eraser._snapshot.state.ensemble)
