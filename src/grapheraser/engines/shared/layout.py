"""Layouts: where each of PyG's named tensors lies in the padded arrays that kernels work on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.models import ModelSpec, Parameter, architecture_of
from grapheraser.models.constants import ACTIVATION_CODES
from grapheraser.models.declaration import Units

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


Tensors = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Axis:
    """The units of one layer: where each lies in a padded row."""

    places: NDArray[np.int64]  # place of each of PyG's units
    width: int  # of the padded row
    period: int = 1  # distance between the places of one head; 1 without heads

    @classmethod
    def of(cls, units: Units, pad: Callable[[int], int]) -> Axis:
        """Lay units out in a row whose width ``pad`` makes of their number.

        Those of several heads are interleaved: place i of a row belongs to head ``i % period``,
        the number of heads rounded up to a power of two. A coefficient per head, repeated along a
        vector, then multiplies a whole row without a shuffle.
        """
        period = power_of_two(units.heads)
        head, unit = np.divmod(np.arange(units.count), units.size)
        return cls(unit * period + head, pad(period * units.size), period)

    @cached_property
    def slots(self) -> slice | NDArray[np.int64]:
        """The places, as a slice where they are one."""
        return _slots(self.places)

    def beside(self, other: Axis) -> Axis:
        """Return both axes in one row."""
        return Axis(
            np.concatenate([self.places, self.width + other.places]), self.width + other.width
        )


@dataclass(frozen=True)
class Segment:
    """One or more tensors that lie together: a matrix ``[in, out]`` or a vector ``[out]``."""

    names: tuple[str, ...]  # in PyG's state dict; several are stacked along their first axis
    out: Axis  # their first axes
    inner: Axis | None = None  # their second axis; None for vectors
    trained: bool = True  # whether the model has them; otherwise the segment stays zero

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
        """The name of each tensor, and where its transpose lies in the segment's ``[in, out]``."""
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


@dataclass(frozen=True)
class TensorLayout:
    """The layout of one model, whatever the number of features."""

    spec: ModelSpec  # the model
    num_classes: int  # C
    # Names and units of the first layer's weights; they lie as ``[columns, units]``.
    inputs: Segment
    # All other parameters by their roles, in the order in which they lie.
    segments: dict[str, Segment]
    # hidden, classes: units of the first hidden layer and of the logits.
    hidden: Axis
    classes: Axis
    norms: tuple[str, ...]  # names of the batch norms
    offsets: dict[str, int] = field(init=False)  # where each segment begins

    def __post_init__(self) -> None:
        offsets, end = {}, 0
        for role, segment in self.segments.items():
            offsets[role] = end
            end += segment.size
        object.__setattr__(self, "offsets", offsets)

    def __getitem__(self, role: str) -> Segment:
        return self.segments[role]

    def offset(self, role: str) -> int:
        """Return where a parameter begins; 0 for one that this model does not have."""
        return self.offsets.get(role, 0)

    def part(self, role: str) -> slice:
        """Return the places of a parameter."""
        return slice(self.offsets[role], self.offsets[role] + self.segments[role].size)

    @property
    def size(self) -> int:
        """The number of entries of all segments."""
        return sum(segment.size for segment in self.segments.values())

    @property
    def activation(self) -> int:
        return ACTIVATION_CODES[self.spec.activation]

    @property
    def limits(self) -> Limits:
        return limits_of(self.spec)


@lru_cache(maxsize=128)
def layout_of(spec: ModelSpec, num_classes: int, pad: Callable[[int], int]) -> TensorLayout:
    """Lay out a model; ``pad`` gives the width of a row for its number of units."""
    architecture = architecture_of(spec, 1, num_classes)

    def segment_of(parameter: Parameter) -> Segment:
        axes = [Axis.of(parameter.out, pad) for _ in parameter.names]
        inner = None if parameter.inner is None else Axis.of(parameter.inner, pad)
        return Segment(parameter.names, reduce(Axis.beside, axes), inner, parameter.trained)

    return TensorLayout(
        spec,
        num_classes,
        inputs=replace(segment_of(architecture.inputs), inner=None),
        segments={parameter.role: segment_of(parameter) for parameter in architecture.others},
        hidden=Axis.of(architecture.hidden, pad),
        classes=Axis.of(Units(num_classes), pad),
        norms=architecture.norms,
    )


def _slots(places: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """Return the places as a slice where they are one: copying through it is far quicker."""
    if len(places) == 0:
        return slice(0, 0)
    if places[-1] - places[0] == len(places) - 1 and bool((np.diff(places) == 1).all()):
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def power_of_two(size: int) -> int:
    """Return the smallest power of two that is not below ``size``."""
    return 1 << max(0, size - 1).bit_length()
