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

from grapheraser.models import ModelSpec, initial_weights, parameter_shapes
from grapheraser.models.initial import uniform_bound
from grapheraser.seeding import derive
from grapheraser.training.cuda.plan import Plan, plan_of
from grapheraser.training.task import ShardTask


def keys_of(plan: Plan, tasks: Sequence[ShardTask]) -> NDArray[np.int64]:
    """Keys of the rows and of the columns of every parameter: ``[shards, parameters, 2]``.

    Parameters come in the order of `names_of`.
    """
    found = []
    for task in tasks:
        keys = [derive(task.seed, "init", name) for name in names_of(plan)]
        found.append([[key, derive(key, "columns")] for key in keys])
    return np.array(found, dtype=np.uint64).view(np.int64)


def names_of(plan: Plan) -> list[str]:
    """The parameters, those of the first layer first."""
    return [*plan.inputs.names, *(name for s in plan.segments.values() for name in s.names)]


@lru_cache(maxsize=64)
def tables_of(spec: ModelSpec, num_features: int, num_classes: int) -> dict[str, NDArray[Any]]:
    """What lies where: in a row of the first layer, and in the other parameters.

    ``input_name`` and ``input_unit`` are -1 where a row is padded; ``theta_name`` is -1 where the
    other parameters are constant, and ``theta_bound`` is that constant then.
    """
    plan = plan_of(spec, num_classes)
    names, axis = names_of(plan), plan.inputs.out
    shapes = parameter_shapes(spec, num_features, num_classes)
    input_name = np.full(axis.width, -1, dtype=np.int32)
    input_unit = np.zeros(axis.width, dtype=np.int32)
    for number, places in enumerate(np.split(axis.places, len(plan.inputs.names))):
        input_name[places], input_unit[places] = number, np.arange(len(places))
    constants = initial_weights(spec, num_features, num_classes, np.empty(0, np.int32), 0)
    name = np.full(plan.size, -1, dtype=np.int32)
    row, unit = np.zeros_like(name), np.zeros_like(name)
    value = np.zeros(plan.size, dtype=np.float32)
    for short, segment in plan.segments.items():
        part = slice(plan.offset(short), plan.offset(short) + segment.size)
        known = [each for each in segment.names if each in shapes]
        if not known:
            continue
        bound = uniform_bound(spec.kind, known[0], shapes)
        if bound == 0:
            segment.write(constants, value[part])
            continue
        units = {each: _entries(shapes[each], 0) for each in known}
        rows = {each: _entries(shapes[each], 1) for each in known}
        numbers = {each: np.full(shapes[each], names.index(each)) for each in known}
        bounds = {each: np.full(shapes[each], bound) for each in known}
        targets: list[tuple[NDArray[Any], dict[str, NDArray[Any]]]] = [
            (name, numbers),
            (row, rows),
            (unit, units),
            (value, bounds),
        ]
        for target, source in targets:
            segment.write(source, target[part])
    input_bound = [uniform_bound(spec.kind, each, shapes) for each in plan.inputs.names]
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
