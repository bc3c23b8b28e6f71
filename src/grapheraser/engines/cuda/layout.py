"""Layouts on the device, and the tables that initial weights are made from there.

Every block shape follows from the layout alone. An initial weight is a hash of its parameter's key,
its row and its column, with the bits of `models.initial_weights`: all that the host sends are two
keys per parameter and shard, and a table of what lies where that depends on the model alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines.shared import layout as shared
from grapheraser.engines.shared.layout import TensorLayout, power_of_two
from grapheraser.engines.task import ShardTask
from grapheraser.errors import ParameterError
from grapheraser.models import ModelSpec, architecture_of
from grapheraser.seeding import derive

NARROWEST = 16
# A product of one row with a matrix keeps the whole matrix in registers.
LARGEST_MATRIX = 32768


class Gradient(NamedTuple):
    """``parameter``'s gradient is ``left^T right``, or the sum of the rows of ``right``."""

    parameter: str  # its role in the layout
    left: str | None  # a buffer, or None for a vector
    right: str  # a buffer
    by_shard: bool = False  # ``right`` has one row per shard: the gradient itself


@lru_cache(maxsize=64)
def layout_of(spec: ModelSpec, num_classes: int) -> TensorLayout:
    """Lay out a model; refuse one that is too wide for these kernels."""
    layout = shared.layout_of(spec, num_classes, _padded)
    _check_width(layout)
    return layout


def _padded(size: int) -> int:
    return max(NARROWEST, power_of_two(size))


def _check_width(layout: TensorLayout) -> None:
    if layout.spec.hops == 0:
        # Without edges, products run in tiles; only the logits must fit into one.
        largest = layout.classes.width * NARROWEST
    else:
        largest = max(segment.size for segment in layout.segments.values())
    if largest > LARGEST_MATRIX:
        raise ParameterError(
            f"engine 'cuda' can't train {layout.spec.name} with {layout.num_classes} classes: "
            f"a layer of {largest} weights is more than its {LARGEST_MATRIX}.",
            hint="use engine='pyg', fewer hidden units or fewer heads.",
        )


def keys_of(layout: TensorLayout, tasks: Sequence[ShardTask]) -> NDArray[np.int64]:
    """Return keys of rows and columns ``[shards, parameters, 2]``, in the order of `names_of`."""
    found = []
    for task in tasks:
        keys = [derive(task.seed, "init", name) for name in names_of(layout)]
        found.append([[key, derive(key, "columns")] for key in keys])
    return np.array(found, dtype=np.uint64).view(np.int64)


def names_of(layout: TensorLayout) -> list[str]:
    """Return the names of all parameters, those of the first layer first."""
    return [*layout.inputs.names, *(name for s in layout.segments.values() for name in s.names)]


@lru_cache(maxsize=64)
def tables_of(spec: ModelSpec, num_features: int, num_classes: int) -> dict[str, NDArray[Any]]:
    """Say what lies where, in a row of the first layer and in the other parameters.

    ``input_name`` is -1 where a row is padded, ``theta_name`` where a parameter is constant;
    ``theta_value`` is that constant, and elsewhere the bound of the distribution.
    """
    layout = layout_of(spec, num_classes)
    names, axis = names_of(layout), layout.inputs.out
    architecture = architecture_of(spec, num_features, num_classes)
    input_name = np.full(axis.width, -1, dtype=np.int32)
    input_unit = np.zeros(axis.width, dtype=np.int32)
    for number, places in enumerate(np.split(axis.places, len(layout.inputs.names))):
        input_name[places], input_unit[places] = number, np.arange(len(places))
    name = np.full(layout.size, -1, dtype=np.int32)
    row, unit = np.zeros_like(name), np.zeros_like(name)
    value = np.zeros(layout.size, dtype=np.float32)
    for parameter in architecture.others:
        if parameter.trained:
            segment, part = layout[parameter.role], layout.part(parameter.role)
            initial, shape = parameter.initial, parameter.shape
            known: list[tuple[NDArray[Any], list[Any]]] = [
                (value, [np.full(shape, initial.bound or initial.constant) for _ in segment.names])
            ]
            if initial.bound:
                known += [
                    (name, [np.full(shape, names.index(each)) for each in segment.names]),
                    (row, [_entries(shape, 1) for _ in segment.names]),
                    (unit, [_entries(shape, 0) for _ in segment.names]),
                ]
            for target, entries in known:
                segment.write(dict(zip(segment.names, entries, strict=True)), target[part])
    input_bound = [architecture.inputs.initial.bound] * len(layout.inputs.names)
    return {
        "input_name": input_name,
        "input_unit": input_unit,
        "input_bound": np.array(input_bound, dtype=np.float32),
        "theta_name": name,
        "theta_row": row,
        "theta_unit": unit,
        "theta_value": value,
    }


def _entries(shape: tuple[int, ...], axis: int) -> NDArray[np.int64]:
    """Number each entry along an axis; what is not a matrix counts as one row of units."""
    if len(shape) == 2:
        return np.indices(shape)[axis]
    count = int(np.prod(shape))
    return (np.arange(count) if axis == 0 else np.zeros(count, dtype=np.int64)).reshape(shape)
