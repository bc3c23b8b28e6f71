"""Adam with weight decay added to the gradient, as ``torch.optim.Adam`` does it."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import LANES, ONE, Tile, fma, inverse_root, load, store

BETA_1, BETA_2, EPS = 0.9, 0.999, 1e-8
Rates: TypeAlias = tuple[float, float, float]


class Schedule(NamedTuple):
    """Rates of every epoch.

    Attributes:
        step: float64 ``[epochs]``, learning rate over the first moment's bias correction.
        correction: float64 ``[epochs]``, inverse root of the second moment's bias correction.
        decay: weight decay.
    """

    step: NDArray[np.float64]
    correction: NDArray[np.float64]
    decay: float


def schedule_of(lr: float, weight_decay: float, epochs: int) -> Schedule:
    """The rates of Adam with PyTorch's betas."""
    t = np.arange(1, epochs + 1, dtype=np.float64)
    return Schedule(
        np.asarray(lr / (1 - BETA_1**t), dtype=np.float64),
        np.asarray(1 / np.sqrt(1 - BETA_2**t), dtype=np.float64),
        weight_decay,
    )


class Parameters(NamedTuple):
    """All parameters but the input's, end to end, with their gradient and moments (all flat)."""

    values: NDArray[np.floating]
    gradient: NDArray[np.floating]
    first: NDArray[np.floating]
    second: NDArray[np.floating]


@compiled
def rates_of(schedule: Schedule, epoch: int) -> Rates:
    """One epoch's step, correction and decay."""
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
    """Update one tile of weights in place; returns the new weights, still in registers."""
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
    values, gradient, first, second = p
    for at in range(0, len(values), LANES):
        adam_tile(values, first, second, at, load(gradient, at, ONE), rates, ONE)
