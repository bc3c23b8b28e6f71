"""Between PyG's named tensors and the padded flat arrays that the kernels work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grapheraser.kernels.vectors import LANES, padded

Tensors = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Axis:
    """The units of one layer: where each lies in a padded row.

    Attributes:
        places: place of each of PyG's units.
        width: of the padded row.
    """

    places: NDArray[np.int64]
    width: int

    @classmethod
    def plain(cls, size: int) -> Axis:
        """Units in their own order."""
        return cls(np.arange(size), padded(size))

    @classmethod
    def heads(cls, heads: int, size: int) -> Axis:
        """Units of attention heads, interleaved: lane i of a row belongs to head ``i % period``.

        A coefficient per head, repeated along a vector, then multiplies a whole row without a
        shuffle. The number of heads is rounded up to a power of two.
        """
        period = 1 << (heads - 1).bit_length()
        head, unit = np.divmod(np.arange(heads * size), size)
        return cls(unit * period + head, padded(period * size))

    def beside(self, other: Axis) -> Axis:
        """Both axes in one row."""
        return Axis(
            np.concatenate([self.places, self.width + other.places]), self.width + other.width
        )


@dataclass(frozen=True)
class Segment:
    """One or more tensors that lie together: a matrix ``[in, out]`` or a vector ``[out]``.

    Attributes:
        names: in PyG's state dict; several ones are stacked along their first axis.
        out: their first axes.
        inner: their second axis; None for vectors.
    """

    names: tuple[str, ...]
    out: Axis
    inner: Axis | None = None

    @property
    def size(self) -> int:
        return self.out.width * (1 if self.inner is None else self.inner.width)

    def write(self, tensors: Mapping[str, NDArray[Any]], flat: NDArray[np.floating]) -> None:
        """Put the tensors into the segment."""
        view = flat.reshape(-1, self.out.width)
        for name, at in self._blocks():
            tensor = np.asarray(tensors[name])
            view[at] = tensor.reshape(1, -1) if self.inner is None else tensor.T

    def read(self, flat: NDArray[np.floating], shapes: Mapping[str, tuple[int, ...]]) -> Tensors:
        """Take the tensors out of the segment."""
        view = flat.reshape(-1, self.out.width)
        return {
            name: np.array(view[at].T, order="C").reshape(shapes[name])
            for name, at in self._blocks()
        }

    def _blocks(self) -> list[tuple[str, Any]]:
        """Each tensor's name and where its transpose lies in the segment's ``[in, out]``."""
        rows = slice(0, 1) if self.inner is None else _slots(self.inner.places)
        parts = np.split(self.out.places, len(self.names))
        blocks: list[tuple[str, Any]] = []
        for name, places in zip(self.names, parts, strict=True):
            columns = _slots(places)
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


def aligned(size: int, dtype: DTypeLike) -> NDArray[np.floating]:
    """Flat zeros that start at a cache line."""
    kind = np.dtype(dtype)
    flat = np.zeros(size + LANES, dtype=kind)
    start = (-(flat.ctypes.data // kind.itemsize)) % (64 // kind.itemsize)
    return flat[start : start + size]


def offsets_of(segments: tuple[Segment, ...]) -> tuple[int, ...]:
    """Where each segment begins when they lie end to end."""
    ends = np.cumsum([0, *(segment.size for segment in segments)])
    return tuple(int(end) for end in ends[:-1])
