"""What a request says about the model after it: everything, or nothing."""

from __future__ import annotations

import numpy as np
import pytest

from grapheraser_lab.bench.adaptive import CONFIGURATIONS, WAYS, _leak, markdown


@pytest.mark.parametrize(("kept", "leak"), [(True, 1.0), (False, 0.0)])
def test_a_model_that_stays_as_it_was_tells_what_was_asked_for(kept: bool, leak: float) -> None:
    """Where the watched node keeps its class, the request names it; where it is fresh, it can't."""
    rng = np.random.default_rng(0)
    before = rng.integers(0, 2, size=(400, 1))
    fresh = rng.integers(0, 2, size=(400, 1))
    after = np.stack([before if kept else fresh] * 2, axis=1)
    usual = np.array([1])
    found = _leak(after, usual, before == usual, np.array([0]))
    assert found["value"] == pytest.approx(leak, abs=0.15)


def test_nothing_is_watched_where_nothing_hangs_on_chance() -> None:
    after = np.ones((8, 2, 3), dtype=np.int64)
    seen = np.ones((8, 3), dtype=bool)
    assert (
        _leak(after, np.ones(3, dtype=np.int64), seen, np.array([], dtype=np.int64))["value"] == 0.0
    )


def test_the_table_has_every_way() -> None:
    leak = {way: {"value": 0.5, "error": None} for way in WAYS[:1]}
    row = {"dataset": "cora", "configuration": next(iter(CONFIGURATIONS)), "watched": 3}
    told = markdown({"seeds": 8, "rows": [row | {"leak": leak}]})
    assert "refresh=all" in told
    assert "| 0.50 | - |" in told
