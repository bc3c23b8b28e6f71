"""Adam with weight decay added to the gradient, as ``torch.optim.Adam`` does it."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines.shared.layout import BETA_1, BETA_2, EPS, Schedule
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import LANES, ONE, Tile, fma, inverse_root, load, store

Rates: TypeAlias = tuple[float, float, float]


class Parameters(NamedTuple):
    """All parameters but the input's, with all that changes along with them."""

    # values, gradient, first, second: flat, the parameters end to end, their gradient and Adam's
    # moments of it.
    values: NDArray[np.floating]
    gradient: NDArray[np.floating]
    first: NDArray[np.floating]
    second: NDArray[np.floating]
    # ``[4, hidden]``, running mean and variance of the first and of the second norm.
    running: NDArray[np.floating]


@compiled
def rates_of(schedule: Schedule, epoch: int) -> Rates:
    """Return one epoch's step, correction and decay."""
    return schedule.step[epoch], schedule.correction[epoch], schedule.decay


@compiled
def adam_tile(
    values: NDArray[np.floating],
    first: NDArray[np.floating],
    second: NDArray[np.floating],
    at: int,
    gradient: Any,
    rates: Rates,
    tile: Tile,
) -> Any:
    """Update one tile of weights in place; returns the new weights, still in registers.

    The bits of a weight follow from its own gradient and moments. Multiply-adds are fused where
    `fma` says so and nowhere else, and the root is Newton's (`inverse_root`), not the processor's.
    """
    step, correction, decay = rates
    w = load(values, at, tile)
    g = fma(w, decay, gradient)
    m = load(first, at, tile)
    m = fma(g - m, 1 - BETA_1, m)
    v = fma(g * (1 - BETA_2), g, load(second, at, tile) * BETA_2)
    denominator = fma(v * inverse_root(v), correction, EPS)
    w = fma(m / denominator, -step, w)
    store(values, at, w)
    store(first, at, m)
    store(second, at, v)
    return w


@compiled
def adam_step(p: Parameters, rates: Rates) -> None:
    """Update all parameters from their gradient."""
    values, gradient, first, second = p.values, p.gradient, p.first, p.second
    for at in range(0, len(values), LANES):
        adam_tile(values, first, second, at, load(gradient, at, ONE), rates, ONE)
