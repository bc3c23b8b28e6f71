"""Initial weights of the built-in models, a function of a key alone.

Distributions are those of the PyG layers. Every entry depends on the key, the parameter's name,
and its own row and column: leaving out feature columns or deleting nodes changes no other entry.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.hashing import keyed_uniform
from grapheraser.models.builtin import architecture_of
from grapheraser.models.declaration import Shape
from grapheraser.models.spec import ModelSpec
from grapheraser.seeding import derive


def parameter_shapes(spec: ModelSpec, num_features: int, num_classes: int) -> dict[str, Shape]:
    """Shape of every trained parameter, by its name in the PyG module's state dict."""
    return architecture_of(spec, num_features, num_classes).parameter_shapes


def input_parameters(spec: ModelSpec) -> tuple[str, ...]:
    """The parameters that multiply the input features: the only ones with a column per feature."""
    return architecture_of(spec, 1, 1).inputs.names


def initial_weights(
    spec: ModelSpec, num_features: int, num_classes: int, columns: NDArray[np.integer], key: int
) -> dict[str, NDArray[np.float32]]:
    """Initial weights, with the input parameters restricted to the given feature columns."""
    architecture = architecture_of(spec, num_features, num_classes)
    weights: dict[str, NDArray[np.float32]] = {}
    for parameter in (architecture.inputs, *architecture.others):
        initial, shape = parameter.initial, parameter.shape
        for name in parameter.names if parameter.trained else ():
            if initial.bound == 0:
                weights[name] = np.full(shape, initial.constant, dtype=np.float32)
                continue
            if parameter is architecture.inputs:
                rows = columns
            else:
                rows = np.arange(1 if parameter.inner is None else shape[1])
            width = math.prod(shape) if parameter.inner is None else shape[0]
            uniform = keyed_uniform(rows, width, derive(key, "init", name))
            values = (2 * uniform - 1) * np.float32(initial.bound)
            if parameter.inner is None:
                weights[name] = values.reshape(shape)
            else:
                weights[name] = np.ascontiguousarray(values.T)
    return weights
