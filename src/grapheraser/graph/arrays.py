"""NumPy arrays from lists, arrays and tensors, and arrays that nobody can write to."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.errors import GraphError, InputError

T = TypeVar("T", bound=np.generic)


def as_array(values: Any, what: str, error: type[InputError] = GraphError) -> NDArray[Any]:
    """Return the values as an array; raise ``error``, which names ``what``, if they are none."""
    try:
        if hasattr(values, "detach"):
            values = values.detach().cpu()
            # NumPy has no bfloat16 and no 8-bit floats; a float32 holds each of their values.
            narrow = values.is_floating_point() and values.element_size() < 4
            return np.asarray((values.float() if narrow else values).numpy())
        return np.asarray(values)
    except (TypeError, ValueError) as failure:
        raise error(f"{what} must be a plain array ({failure}).") from None


def as_int64(array: NDArray[Any], what: str, error: type[InputError] = GraphError) -> NDArray[Any]:
    """Return a copy of an integer array as int64; raise ``error`` for numbers that don't fit."""
    if array.dtype.kind == "u" and array.size and array.max() >= 2**63:
        raise error(f"{what} must be below 2**63 (found {array.max()}).")
    return array.astype(np.int64)


def read_only(array: NDArray[T]) -> NDArray[T]:
    """Forbid writing to an array that nobody else holds."""
    array.flags.writeable = False
    return array


def fresh(**fields: Any) -> dict[str, Any]:
    """Make the arrays and CSR matrices among these fields read-only, where nobody else holds them.

    A frozen value takes what is read-only as it is, and copies what is not; see `owned`.
    """
    for value in fields.values():
        arrays = (
            (value.data, value.indices, value.indptr)
            if isinstance(value, sp.csr_array)
            else (value,)
        )
        for array in arrays:
            if isinstance(array, np.ndarray):
                read_only(array)
    return fields


def owned(array: NDArray[T]) -> NDArray[T]:
    """Return a read-only array with this content: a copy, where the caller could write to it."""
    return read_only(array.copy()) if array.flags.writeable else array


def owned_csr(x: sp.csr_array) -> sp.csr_array:
    """Return a read-only matrix with this content, copying what the caller could write to."""
    parts = (x.data, x.indices, x.indptr)
    if not any(part.flags.writeable for part in parts):
        return x
    return sp.csr_array(tuple(owned(part) for part in parts), shape=x.shape)
