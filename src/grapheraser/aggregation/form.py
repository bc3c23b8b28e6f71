"""Forms that the tensors of an aggregator must have before anything computes with them.

A run may come from anywhere, and compiled code indexes by what an aggregator holds. So each kind of
aggregator and of member declares the form of its tensors on the ensemble at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grapheraser.errors import CorruptRunError

Tensors = Mapping[str, NDArray[np.generic]]
# Posteriors are rounded: their sum may be a little more than 1.
SHARE = 1.001
# No weight that was ever learned is larger.
MAX_WEIGHT = 1e6


class Form(NamedTuple):
    """The form of a tensor.

    Attributes:
        dtype: of its numbers.
        shape: of the tensor.
        least, most: bounds of its numbers; without them, any finite number.
    """

    dtype: DTypeLike
    shape: tuple[int, ...]
    least: float | None = None
    most: float | None = None


def check_forms(tensors: Tensors, forms: Mapping[str, Form], owner: str) -> None:
    """Raise an error unless the tensors are those of these forms, no more and no less.

    Args:
        tensors: by name.
        forms: of all of them.
        owner: whose they are, for the message.
    """
    odd = forms.keys() ^ tensors.keys()
    if odd:
        raise CorruptRunError(f"{owner} has missing or unknown tensors ({', '.join(sorted(odd))}).")
    for name, form in forms.items():
        problem = _problem(tensors[name], form)
        if problem:
            raise CorruptRunError(f"{owner} has {problem} in '{name}'.")


def check_equal(found: NDArray[Any], expected: NDArray[Any], what: str) -> None:
    """Raise an error unless a tensor is what follows from the graph and the settings."""
    if found.dtype != expected.dtype or not np.array_equal(found, expected):
        raise CorruptRunError(f"{what} are not those of the graph.")


def _problem(tensor: NDArray[Any], form: Form) -> str | None:
    if tensor.dtype != np.dtype(form.dtype) or tensor.shape != form.shape:
        wanted = f"{np.dtype(form.dtype)}{list(form.shape)}"
        return f"{tensor.dtype}{list(tensor.shape)} instead of {wanted}"
    if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
        return "numbers that are not finite"
    below = form.least is not None and bool((tensor < form.least).any())
    above = form.most is not None and bool((tensor > form.most).any())
    return "numbers out of range" if below or above else None
