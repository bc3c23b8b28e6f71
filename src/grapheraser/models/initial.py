"""Initial weights of the built-in models, a function of a key alone.

Distributions are those of the PyG layers. Every entry depends on the key, the parameter's name,
and its own row and column: leaving out feature columns or deleting nodes changes no other entry.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.hashing import keyed_uniform
from grapheraser.models.spec import ModelSpec
from grapheraser.seeding import derive

Tensors = dict[str, NDArray[np.float32]]


def parameter_shapes(
    spec: ModelSpec, num_features: int, num_classes: int
) -> dict[str, tuple[int, ...]]:
    """Shape of every trained parameter, by its name in the PyG module's state dict."""
    h, c = spec.hidden, num_classes
    match spec.kind:
        case "gcn":
            shapes: dict[str, tuple[int, ...]] = {
                "conv1.lin.weight": (h, num_features),
                "conv2.lin.weight": (c, h),
            }
            if spec.bias:
                shapes |= {"conv1.bias": (h,), "conv2.bias": (c,)}
        case "sage":
            shapes = {
                "conv1.lin_l.weight": (h, num_features),
                "conv1.lin_l.bias": (h,),
                "conv1.lin_r.weight": (h, num_features),
                "conv2.lin_l.weight": (c, h),
                "conv2.lin_l.bias": (c,),
                "conv2.lin_r.weight": (c, h),
            }
        case "gat":
            width = spec.heads * h
            shapes = {
                "conv1.lin.weight": (width, num_features),
                "conv1.att_src": (1, spec.heads, h),
                "conv1.att_dst": (1, spec.heads, h),
                "conv1.bias": (width,),
                "conv2.lin.weight": (c, width),
                "conv2.att_src": (1, 1, c),
                "conv2.att_dst": (1, 1, c),
                "conv2.bias": (c,),
            }
        case "gin":
            last = h if spec.linear_head else c
            shapes = {
                "conv1.nn.0.weight": (h, num_features),
                "conv1.nn.0.bias": (h,),
                "conv1.nn.2.weight": (h, h),
                "conv1.nn.2.bias": (h,),
                "conv2.nn.0.weight": (h, h),
                "conv2.nn.0.bias": (h,),
                "conv2.nn.2.weight": (last, h),
                "conv2.nn.2.bias": (last,),
            }
            if spec.batch_norm:
                shapes |= {"norm1.weight": (h,), "norm1.bias": (h,)}
            if spec.linear_head:
                shapes |= {"head.weight": (c, h), "head.bias": (c,)}
                if spec.batch_norm:
                    shapes |= {"norm2.weight": (h,), "norm2.bias": (h,)}
        case _:
            second = spec.second_hidden or h
            shapes = {
                "lin1.weight": (h, num_features),
                "lin1.bias": (h,),
                "lin2.weight": (second, h),
                "lin2.bias": (second,),
                "lin3.weight": (c, second),
                "lin3.bias": (c,),
            }
    return shapes


def input_parameters(spec: ModelSpec) -> tuple[str, ...]:
    """The parameters that multiply the input features: the only ones with a column per feature."""
    return {
        "gcn": ("conv1.lin.weight",),
        "sage": ("conv1.lin_l.weight", "conv1.lin_r.weight"),
        "gat": ("conv1.lin.weight",),
        "gin": ("conv1.nn.0.weight",),
        "mlp": ("lin1.weight",),
    }[spec.kind]


def initial_weights(
    spec: ModelSpec,
    num_features: int,
    num_classes: int,
    columns: NDArray[np.integer],
    key: int,
) -> Tensors:
    """Initial weights, with the input parameters cut down to the given feature columns."""
    shapes = parameter_shapes(spec, num_features, num_classes)
    inputs = input_parameters(spec)
    weights: Tensors = {}
    for name, shape in shapes.items():
        bound = uniform_bound(spec.kind, name, shapes)
        entry_key = derive(key, "init", name)
        if name.startswith("norm") and name.endswith("weight"):
            weights[name] = np.ones(shape, dtype=np.float32)
        elif bound == 0:
            weights[name] = np.zeros(shape, dtype=np.float32)
        elif len(shape) == 2:
            rows = columns if name in inputs else np.arange(shape[1])
            uniform = keyed_uniform(rows, shape[0], entry_key)
            weights[name] = np.ascontiguousarray(((2 * uniform - 1) * np.float32(bound)).T)
        else:
            uniform = keyed_uniform(np.arange(1), math.prod(shape), entry_key)
            weights[name] = ((2 * uniform - 1) * np.float32(bound)).reshape(shape)
    return weights


def uniform_bound(kind: str, name: str, shapes: dict[str, tuple[int, ...]]) -> float:
    """Half the width of the uniform distribution that PyG draws a parameter from."""
    shape = shapes[name]
    if kind in ("gcn", "gat"):
        if name.endswith("bias"):
            return 0.0
        return math.sqrt(6.0 / (shape[-1] + shape[-2]))
    if name.startswith("norm"):
        return 0.0
    fan_in = shapes[name.rpartition(".")[0] + ".weight"][1]
    return 1.0 / math.sqrt(fan_in)
