"""A shard's weights: what must hold of them, and how the forward pass reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines.task import ShardWeights
from grapheraser.errors import CorruptRunError
from grapheraser.graph import Graph
from grapheraser.inference.rows import InputLayer
from grapheraser.kernels.vectors import tile_for
from grapheraser.models import CustomModel, Model, ModelSpec, architecture_of
from grapheraser.models.constants import ACTIVATION_CODES
from grapheraser.models.declaration import running_names

_NONE = np.zeros(0, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class WeightsByRole:
    """A shard's weights and what else the compiled passes take."""

    inputs: InputLayer  # those of the first layer
    # All other tensors by their roles, matrices as ``[in, out]``; the running statistics of norm i
    # as ``mean<i>`` and ``var<i>``.
    others: Mapping[str, tuple[NDArray[np.float32], ...]]
    activation: int  # its code

    def of(self, *roles: str) -> tuple[NDArray[np.float32], ...]:
        """Return tensors by role; an empty one where the model has none of that role."""
        return tuple(tensor for role in roles for tensor in self.others.get(role, (_NONE,)))


_KNOWN: WeakKeyDictionary[ShardWeights, WeightsByRole] = WeakKeyDictionary()


def by_role(spec: ModelSpec, weights: ShardWeights) -> WeightsByRole:
    """Return the weights by role; remembered for as long as the weights themselves live."""
    known = _KNOWN.get(weights)
    if known is None:
        known = _KNOWN[weights] = _by_role(spec, weights)
    return known


def _by_role(spec: ModelSpec, weights: ShardWeights) -> WeightsByRole:
    tensors = {name: _copied(tensor) for name, tensor in weights.tensors.items()}
    architecture = architecture_of(spec, 1, 1)
    others = {
        parameter.role: tuple(tensors[name] for name in parameter.names)
        for parameter in architecture.others
        if parameter.trained
    }
    for number, norm in enumerate(architecture.norms, start=1):
        mean, variance = running_names(norm)
        others |= {f"mean{number}": (tensors[mean],), f"var{number}": (tensors[variance],)}
    matrices = (tensors[name] for name in architecture.inputs.names)
    first = tuple(np.concatenate([np.zeros_like(m, shape=(1, m.shape[1])), m]) for m in matrices)
    columns = np.array(weights.columns, dtype=np.int32)
    inputs = InputLayer(columns, first, tile_for(first[0].shape[1]))
    return WeightsByRole(inputs, others, ACTIVATION_CODES[spec.activation])


def _copied(tensor: NDArray[np.generic]) -> NDArray[np.float32]:
    """Copy a tensor, so that compiled code meets one type, whether it was writeable or not."""
    if tensor.ndim == 2:
        return np.array(np.asarray(tensor, dtype=np.float32).T, order="C")
    return np.array(tensor, dtype=np.float32).reshape(-1)


def check_weights(model: Model, shards: Mapping[int, ShardWeights], graph: Graph) -> None:
    """Refuse what can't be weights of the model on the graph.

    Of a user's own module only columns and values are known, and whether it can hold them.
    """
    for shard, weights in shards.items():
        problem = _column_problem(weights, graph.num_features) or _tensor_problem(
            model, weights, graph
        )
        if problem:
            raise CorruptRunError(f"shard {shard} has {problem}.")
    if isinstance(model, CustomModel):
        from grapheraser.inference.module import check_module

        check_module(model, shards.values(), graph)


def _column_problem(weights: ShardWeights, num_features: int) -> str | None:
    columns = weights.columns
    if columns.dtype != np.int32 or columns.ndim != 1:
        return "columns that are not a list of numbers"
    inside = not len(columns) or (columns[0] >= 0 and columns[-1] < num_features)
    # A difference may overflow.
    if not inside or (columns[1:] <= columns[:-1]).any():
        return "columns that are not ascending, or out of range"
    return None


def _tensor_problem(model: Model, weights: ShardWeights, graph: Graph) -> str | None:
    if name := weights.not_finite:
        return f"values that are not finite in {name!r}"
    if isinstance(model, CustomModel):
        return None
    architecture = architecture_of(model, len(weights.columns), graph.num_classes)
    expected = architecture.parameter_shapes | architecture.buffer_shapes
    odd = expected.keys() ^ weights.tensors.keys()
    if odd:
        return f"missing or unknown tensors ({', '.join(sorted(odd))})"
    for name, shape in expected.items():
        tensor = weights.tensors[name]
        if tensor.shape != shape or tensor.dtype != np.float32:
            return f"a tensor {name!r} of another shape or type"
    return None
