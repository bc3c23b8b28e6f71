"""Two states compared bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Verification:
    """What a replay from the remaining data found.

    Attributes:
        identical: whether every tensor, and what the receipts say, is what it should be.
        tensors: how many tensors were compared.
        values: how many numbers that is.
        receipts: how many receipts were checked.
        differences: what is not as it should be, in words.
        notes: circumstances that weaken or explain the result.
        seconds: how long the replay took.
    """

    identical: bool
    tensors: int
    values: int
    receipts: int
    differences: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "differences": list(self.differences),
            "notes": list(self.notes),
        }


def compare(found: dict[str, NDArray[Any]], expected: dict[str, NDArray[Any]]) -> tuple[str, ...]:
    """Every difference between two sets of named tensors; equal means equal bytes."""
    differences = [f"{name}: missing" for name in expected.keys() - found.keys()]
    differences += [f"{name}: should not be there" for name in found.keys() - expected.keys()]
    for name in found.keys() & expected.keys():
        a, b = found[name], expected[name]
        if a.dtype != b.dtype or a.shape != b.shape:
            differences.append(
                f"{name}: {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
            )
        elif a.tobytes() != b.tobytes():
            differs = int(np.count_nonzero(a != b))
            differences.append(f"{name}: {differs} of {a.size} values differ")
    return tuple(sorted(differences))
