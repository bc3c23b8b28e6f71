"""Vectors compute lane by lane what numpy computes entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from grapheraser.engines.cpu.noise import is_kept
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import (
    HALF,
    HALF_LANES,
    LANES,
    Tile,
    exponential,
    fma,
    fold_max,
    fold_sum,
    inverse_root,
    kept_lanes,
    larger,
    load,
    padded,
    root,
    store,
    tile_for,
    where_below,
    where_positive,
)

Array = NDArray[np.floating]


@compiled
def computed(a: Array, b: Array, out: Array, tile: Tile) -> None:
    """One row of ``out [8, n]`` per function."""
    n = a.size
    for t in range(0, n, LANES * len(tile)):
        x, y = load(a, t, tile), load(b, t, tile)
        store(out, t, fma(x, y, 0.5) - x)
        store(out, n + t, larger(x, y) / 2.0)
        store(out, 2 * n + t, root(y))
        store(out, 3 * n + t, where_positive(x, y, 0.0))
        store(out, 4 * n + t, exponential(x))
        store(out, 5 * n + t, inverse_root(y))
        store(out, 6 * n + t, where_below(5 - t, x, 0.0))
        store(out, 7 * n + t, kept_lanes(x, np.uint32(9), t, 2**31, 2**31))


@pytest.mark.long
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("vectors", [1, 2, 4])
def test_every_function_equals_numpy(dtype: Any, vectors: int) -> None:
    rng, n = np.random.default_rng(0), 64
    a = rng.normal(size=n).astype(dtype)
    b = rng.uniform(0.1, 3, size=n).astype(dtype)
    out = np.empty((8, n), dtype=dtype)
    computed(a, b, out, (0,) * vectors)
    kept = [is_kept(np.uint32(9), unit, 2**31) for unit in range(n)]
    expected = [
        a * b + 0.5 - a,
        np.maximum(a, b) / 2,
        np.sqrt(b),
        np.where(a > 0, b, 0),
        np.exp(a),
        1 / np.sqrt(b),
        np.where(np.arange(n) < 5, a, 0),
        kept,
    ]
    tolerance = 4 * np.finfo(dtype).eps
    for found, wanted in zip(out, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@compiled
def folded(a: Array, out: Array, period: int, tile: Tile) -> None:
    """Sums and maxima over lanes."""
    x = load(a, 0, tile)
    store(out, 0, fold_sum(x, period))
    store(out, LANES, fold_max(x, period))


@pytest.mark.parametrize("period", [1, 2, 4, 8, 16])
def test_folds_run_over_the_lanes_of_a_period(period: int) -> None:
    a = np.random.default_rng(1).normal(size=LANES)
    out = np.empty((2, LANES))
    folded(a, out, period, (0,))
    for lane in range(LANES):
        same = a[lane % period :: period]
        assert out[0, lane] == pytest.approx(same.sum())
        assert out[1, lane] == same.max()


def test_rows_are_padded_to_whole_tiles() -> None:
    assert [padded(width) for width in (0, 1, 16, 17)] == [16, 16, 16, 32]
    assert [len(tile_for(width)) for width in (16, 32, 48, 64, 128)] == [1, 2, 1, 4, 4]


@compiled
def half_sums(a: Array, b: Array, out: Array) -> None:
    for at in range(0, a.size, HALF_LANES):
        store(out, at, load(a, at, HALF) + load(b, at, HALF) * 2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_half_a_vector_is_eight_lanes(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 24)).astype(dtype)
    out = np.zeros(24 + HALF_LANES, dtype=dtype)
    half_sums(a, b, out)
    assert HALF_LANES == 8
    assert out[:24].tobytes() == (a + b * dtype(2.0)).tobytes()
    assert not out[24:].any()
