"""Initial weights on the device: the first layer's are made there, the few others on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from grapheraser.models import initial_weights, parameter_shapes
from grapheraser.models.initial import _bound
from grapheraser.seeding import derive, keyed_hash
from grapheraser.training.cuda import sparse
from grapheraser.training.cuda.plan import Plan
from grapheraser.training.cuda.stack import HostStack, Stack, upload
from grapheraser.training.task import ShardTask


def initial_columns(
    plan: Plan, tasks: Sequence[ShardTask], host: HostStack, stack: Stack, dtype: torch.dtype
) -> Tensor:
    """First-layer weights ``[columns, units]``, with the bits of `models.initial_weights`."""
    axis, graph = plan.inputs.out, tasks[0].graph
    device = stack.labels.device
    weights = torch.zeros((stack.num_columns, axis.width), dtype=dtype, device=device)
    shapes = parameter_shapes(plan.spec, graph.num_features, plan.num_classes)
    if stack.num_columns == 0:
        return weights
    places = np.split(axis.places, len(plan.inputs.names))
    for name, at in zip(plan.inputs.names, places, strict=True):
        keys = [derive(task.seed, "init", name) for task in tasks]
        units = np.arange(len(at))
        sent = upload(
            {
                "columns": _column_keys(host, keys),
                "units": np.stack([keyed_hash(units, derive(key, "columns")) for key in keys]).view(
                    np.int64
                ),
                "places": at.astype(np.int32),
            },
            device,
        )
        sparse.initial_columns[(stack.num_columns,)](
            weights, sent["columns"], sent["units"], sent["places"], stack.column_shard,
            float(np.float32(_bound(plan.spec.kind, name, shapes))),
            WIDTH=axis.width, UNITS=len(at), BLOCK=64, num_warps=1,
        )  # fmt: skip
    return weights


def _column_keys(host: HostStack, keys: Sequence[int]) -> NDArray[np.int64]:
    """Key of each row of the first layer's weights."""
    features = np.split(host.arrays["features"], host.column_bounds[1:-1])
    found = [keyed_hash(ids, key) for ids, key in zip(features, keys, strict=True)]
    return np.concatenate(found).view(np.int64)


def initial_theta(plan: Plan, tasks: Sequence[ShardTask], dtype: Any) -> NDArray[Any]:
    """All other parameters ``[shards, plan.size]``."""
    theta = np.zeros((len(tasks), plan.size), dtype=dtype)
    no_columns = np.empty(0, dtype=np.int32)
    for row, task in zip(theta, tasks, strict=True):
        graph = task.graph
        start = initial_weights(
            plan.spec, graph.num_features, graph.num_classes, no_columns, task.seed
        )
        for name, segment in plan.segments.items():
            if segment.names[0] in start:
                at = plan.offset(name)
                segment.write(start, row[at : at + segment.size])
    return theta
