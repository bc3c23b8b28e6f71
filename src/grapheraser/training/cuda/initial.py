"""Initial weights, made on the device with the bits of `models.initial_weights`.

An entry is a hash of its parameter's key, its row and its column, so all that the host sends are
two keys per parameter and shard, and a table of what lies where that depends on the model alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.models import ModelSpec, architecture_of
from grapheraser.seeding import derive
from grapheraser.training.cuda.layout import layout_of
from grapheraser.training.layout.tensors import TensorLayout
from grapheraser.training.task import ShardTask


def keys_of(layout: TensorLayout, tasks: Sequence[ShardTask]) -> NDArray[np.int64]:
    """Keys of the rows and of the columns of every parameter: ``[shards, parameters, 2]``.

    Parameters come in the order of `names_of`.
    """
    found = []
    for task in tasks:
        keys = [derive(task.seed, "init", name) for name in names_of(layout)]
        found.append([[key, derive(key, "columns")] for key in keys])
    return np.array(found, dtype=np.uint64).view(np.int64)


def names_of(layout: TensorLayout) -> list[str]:
    """The parameters, those of the first layer first."""
    return [*layout.inputs.names, *(name for s in layout.segments.values() for name in s.names)]


@lru_cache(maxsize=64)
def tables_of(spec: ModelSpec, num_features: int, num_classes: int) -> dict[str, NDArray[Any]]:
    """What lies where: in a row of the first layer, and in the other parameters.

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
    """Number of each entry along an axis; what is not a matrix counts as one row of units."""
    if len(shape) == 2:
        return np.indices(shape)[axis]
    count = int(np.prod(shape))
    return (np.arange(count) if axis == 0 else np.zeros(count, dtype=np.int64)).reshape(shape)
