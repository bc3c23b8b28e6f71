"""What must hold of the weights of a shard before anything computes with them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grapheraser.errors import CorruptRunError
from grapheraser.graph import Graph
from grapheraser.models import CustomModel, Model, architecture_of
from grapheraser.training.inference.module import check_module
from grapheraser.training.task import ShardWeights


def check_weights(model: Model, shards: Mapping[int, ShardWeights], graph: Graph) -> None:
    """Raise an error unless these can be weights of the model on the graph.

    Of a user's own module only columns and values are known, and whether it can hold them.
    """
    for shard, weights in shards.items():
        problem = _column_problem(weights, graph.num_features) or _problem(model, weights, graph)
        if problem:
            raise CorruptRunError(f"shard {shard} has {problem}.")
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


def _problem(model: Model, weights: ShardWeights, graph: Graph) -> str | None:
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
