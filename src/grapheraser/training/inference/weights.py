"""A shard's weights as the forward pass reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.vectors import Tile, tile_for
from grapheraser.models import ModelSpec, architecture_of
from grapheraser.models.constants import ACTIVATION_CODES
from grapheraser.models.declaration import running_names
from grapheraser.training.task import ShardWeights

_NONE = np.zeros(0, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class WeightsByRole:
    """A shard's weights and what else the compiled passes take.

    Attributes:
        columns: int32, the feature columns that have weights.
        inputs: the first layer's matrices ``[1 + columns, width]``, a feature's weights side by
            side, below a row of zeros.
        others: all other tensors by their roles, matrices as ``[in, out]``; the running statistics
            of norm i as ``mean<i>`` and ``var<i>``.
        activation: its code.
        tile: of the first layer's rows.
    """

    columns: NDArray[np.int32]
    inputs: tuple[NDArray[np.float32], ...]
    others: Mapping[str, tuple[NDArray[np.float32], ...]]
    activation: int
    tile: Tile

    def of(self, *roles: str) -> tuple[NDArray[np.float32], ...]:
        """Tensors by role; an empty one where the model has none of that role."""
        return tuple(tensor for role in roles for tensor in self.others.get(role, (_NONE,)))


_KNOWN: WeakKeyDictionary[ShardWeights, WeightsByRole] = WeakKeyDictionary()


def by_role(spec: ModelSpec, weights: ShardWeights) -> WeightsByRole:
    """The weights by role; remembered for as long as the weights themselves live."""
    known = _KNOWN.get(weights)
    if known is None:
        known = _KNOWN[weights] = _by_role(spec, weights)
    return known


def _by_role(spec: ModelSpec, weights: ShardWeights) -> WeightsByRole:
    tensors = {name: _readable(tensor) for name, tensor in weights.tensors.items()}
    architecture = architecture_of(spec, 1, 1)
    others = {
        parameter.role: tuple(tensors[name] for name in parameter.names)
        for parameter in architecture.others
        if parameter.trained
    }
    for number, norm in enumerate(architecture.norms, start=1):
        mean, variance = running_names(norm)
        others |= {f"mean{number}": (tensors[mean],), f"var{number}": (tensors[variance],)}
    inputs = tuple(_below_zeros(tensors[name]) for name in architecture.inputs.names)
    activation, tile = ACTIVATION_CODES[spec.activation], tile_for(inputs[0].shape[1])
    columns = np.array(weights.columns, dtype=np.int32)
    return WeightsByRole(columns, inputs, others, activation, tile)


def _readable(tensor: NDArray[np.generic]) -> NDArray[np.float32]:
    """A copy, so that compiled code meets one kind of array, whether the tensor can be written."""
    if tensor.ndim == 2:
        return np.array(np.asarray(tensor, dtype=np.float32).T, order="C")
    return np.array(tensor, dtype=np.float32).reshape(-1)


def _below_zeros(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.concatenate([np.zeros((1, matrix.shape[1]), dtype=np.float32), matrix])
