"""Rates of training: Adam's by epoch, with PyTorch's betas, and dropout's by layer."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.models import ModelSpec

BETA_1, BETA_2, EPS = 0.9, 0.999, 1e-8
# Layers that have noise of their own: their numbers are part of every dropout hash.
INPUT, HIDDEN_1, HIDDEN_2, ATTENTION_1, ATTENTION_2 = range(5)


class Schedule(NamedTuple):
    """Rates of every epoch."""

    # Float64 ``[epochs]``, learning rate over the first moment's bias correction.
    step: NDArray[np.float64]
    # Float64 ``[epochs]``, inverse root of the second moment's bias correction.
    correction: NDArray[np.float64]
    decay: float  # weight decay


@lru_cache(maxsize=64)
def schedule_of(spec: ModelSpec, epochs: int) -> Schedule:
    """Return the rates of a model."""
    t = np.arange(1, epochs + 1, dtype=np.float64)
    return Schedule(
        np.asarray(spec.lr / (1 - BETA_1**t), dtype=np.float64),
        np.asarray(1 / np.sqrt(1 - BETA_2**t), dtype=np.float64),
        spec.weight_decay,
    )


class Limits(NamedTuple):
    """A unit is dropped when its 32-bit hash is below this."""

    hidden: int
    features: int
    attention: int


def limits_of(spec: ModelSpec) -> Limits:
    """Return the limits that give the probabilities of a spec."""
    shares = (spec.dropout, spec.input_dropout, spec.attention_dropout)
    return Limits(*(round(share * 2**32) for share in shares))
