"""The rates of Adam with PyTorch's betas."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.models import ModelSpec

BETA_1, BETA_2, EPS = 0.9, 0.999, 1e-8


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


@lru_cache(maxsize=64)
def schedule_of(spec: ModelSpec, epochs: int) -> Schedule:
    """The rates of a model."""
    t = np.arange(1, epochs + 1, dtype=np.float64)
    return Schedule(
        np.asarray(spec.lr / (1 - BETA_1**t), dtype=np.float64),
        np.asarray(1 / np.sqrt(1 - BETA_2**t), dtype=np.float64),
        spec.weight_decay,
    )
