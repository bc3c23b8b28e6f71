"""Axes and segments: between PyG's named tensors and the padded arrays that kernels work on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.models.declaration import Units

Tensors = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Axis:
    """The units of one layer: where each lies in a padded row.

    Attributes:
        places: place of each of PyG's units.
        width: of the padded row.
        period: distance between the places of one head; 1 without heads.
    """

    places: NDArray[np.int64]
    width: int
    period: int = 1

    @classmethod
    def of(cls, units: Units, pad: Callable[[int], int]) -> Axis:
        """Units in a row whose width ``pad`` makes of their number.

        Those of several heads are interleaved: place i of a row belongs to head ``i % period``,
        the number of heads rounded up to a power of two. A coefficient per head, repeated along a
        vector, then multiplies a whole row without a shuffle.
        """
        period = power_of_two(units.heads)
        head, unit = np.divmod(np.arange(units.count), units.size)
        return cls(unit * period + head, pad(period * units.size), period)

    @cached_property
    def slots(self) -> slice | NDArray[np.int64]:
        """The places as `_slots` gives them."""
        return _slots(self.places)

    def beside(self, other: Axis) -> Axis:
        """Both axes in one row."""
        return Axis(
            np.concatenate([self.places, self.width + other.places]), self.width + other.width
        )


@dataclass(frozen=True)
class Segment:
    """One or more tensors that lie together: a matrix ``[in, out]`` or a vector ``[out]``.

    Attributes:
        names: in PyG's state dict; several are stacked along their first axis.
        out: their first axes.
        inner: their second axis; None for vectors.
        trained: whether the model has them; otherwise the segment stays zero.
    """

    names: tuple[str, ...]
    out: Axis
    inner: Axis | None = None
    trained: bool = True

    @property
    def size(self) -> int:
        return self.out.width * (1 if self.inner is None else self.inner.width)

    def write(self, tensors: Mapping[str, NDArray[Any]], flat: NDArray[np.floating]) -> None:
        """Put the tensors into the segment."""
        view = flat.reshape(-1, self.out.width)
        for name, at in self._blocks:
            tensor = np.asarray(tensors[name])
            view[at] = tensor.reshape(1, -1) if self.inner is None else tensor.T

    def read(self, flat: NDArray[np.floating], shapes: Mapping[str, tuple[int, ...]]) -> Tensors:
        """Take the tensors out of the segment."""
        view = flat.reshape(-1, self.out.width)
        return {
            name: np.array(view[at].T, order="C").reshape(shapes[name]) for name, at in self._blocks
        }

    @cached_property
    def _blocks(self) -> list[tuple[str, Any]]:
        """Each tensor's name and where its transpose lies in the segment's ``[in, out]``."""
        rows = slice(0, 1) if self.inner is None else self.inner.slots
        size = len(self.out.places) // len(self.names)
        blocks: list[tuple[str, Any]] = []
        for number, name in enumerate(self.names):
            columns = _slots(self.out.places[number * size : (number + 1) * size])
            if isinstance(rows, slice) or isinstance(columns, slice):
                blocks.append((name, (rows, columns)))
            else:
                blocks.append((name, np.ix_(rows, columns)))
        return blocks


def _slots(places: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """The places as a slice where they are one: copying through a slice is far quicker."""
    if len(places) == 0:
        return slice(0, 0)
    if places[-1] - places[0] == len(places) - 1 and bool((np.diff(places) == 1).all()):
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def power_of_two(size: int) -> int:
    """The smallest power of two that is not below ``size``."""
    return 1 << max(0, size - 1).bit_length()
