"""Numpy arrays from whatever the caller has: lists, arrays, torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import GraphError, InputError


def as_array(values: Any, what: str, error: type[InputError] = GraphError) -> NDArray[Any]:
    """The values as an array; ``what`` and ``error`` are for those that are none."""
    try:
        if hasattr(values, "detach"):
            values = values.detach().cpu()
            # Numpy has no bfloat16 and no 8-bit floats; a float32 holds each of their values.
            narrow = values.is_floating_point() and values.element_size() < 4
            return np.asarray((values.float() if narrow else values).numpy())
        return np.asarray(values)
    except (TypeError, ValueError) as failure:
        raise error(f"{what} must be a plain array ({failure}).") from None


def as_int64(array: NDArray[Any], what: str, error: type[InputError] = GraphError) -> NDArray[Any]:
    """An integer array as int64; numbers that don't fit are refused, never wrapped."""
    if array.dtype.kind == "u" and array.size and array.max() >= 2**63:
        raise error(f"{what} must be below 2**63 (found {array.max()}).")
    return array.astype(np.int64)
