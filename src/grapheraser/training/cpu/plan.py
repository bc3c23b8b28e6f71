"""Where each tensor of a model lies while it is trained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grapheraser.models import ModelSpec
from grapheraser.training.cpu.layout import Axis, Segment


@dataclass(frozen=True)
class Plan:
    """The layout of one model.

    Attributes:
        inputs: the weights of the first layer.
        segments: all other parameters, in the order that the model's loop expects.
        hidden: units of the first hidden layer.
        last: units before the classifier: mlp's second hidden layer, gin's second layer.
        classes: units of the logits.
        norms: names of the batch norms.
    """

    inputs: Segment
    segments: tuple[Segment, ...]
    hidden: Axis
    last: Axis
    classes: Axis
    norms: tuple[str, ...] = ()


def plan_of(spec: ModelSpec, num_columns: int, num_classes: int) -> Plan:
    """The layout of a model on so many feature columns."""
    c = Axis.plain(num_classes)
    h = Axis.heads(spec.heads, spec.hidden) if spec.kind == "gat" else Axis.plain(spec.hidden)
    columns = Axis(np.arange(num_columns), num_columns)
    match spec.kind:
        case "gcn":
            inputs = Segment(("conv1.lin.weight",), h, columns)
            segments: tuple[Segment, ...] = (
                Segment(("conv1.bias",), h),
                Segment(("conv2.lin.weight",), c, h),
                Segment(("conv2.bias",), c),
            )
            return Plan(inputs, segments, h, h, c)
        case "sage":
            pair = ("conv1.lin_l.weight", "conv1.lin_r.weight")
            inputs = Segment(pair, h.beside(h), columns)
            segments = (
                Segment(("conv1.lin_l.bias",), h),
                Segment(("conv2.lin_l.weight", "conv2.lin_r.weight"), c.beside(c), h),
                Segment(("conv2.lin_l.bias",), c),
            )
            return Plan(inputs, segments, h, h, c)
        case "gat":
            inputs = Segment(("conv1.lin.weight",), h, columns)
            segments = (
                Segment(("conv1.att_src",), h),
                Segment(("conv1.att_dst",), h),
                Segment(("conv1.bias",), h),
                Segment(("conv2.lin.weight",), c, h),
                Segment(("conv2.att_src",), c),
                Segment(("conv2.att_dst",), c),
                Segment(("conv2.bias",), c),
            )
            return Plan(inputs, segments, h, h, c)
        case "gin":
            return _gin_plan(spec, columns, h, c)
        case _:
            second = Axis.plain(spec.second_hidden or spec.hidden)
            inputs = Segment(("lin1.weight",), h, columns)
            segments = (
                Segment(("lin1.bias",), h),
                Segment(("lin2.weight",), second, h),
                Segment(("lin2.bias",), second),
                Segment(("lin3.weight",), c, second),
                Segment(("lin3.bias",), c),
            )
            return Plan(inputs, segments, h, second, c)


def _gin_plan(spec: ModelSpec, columns: Axis, h: Axis, c: Axis) -> Plan:
    last = h if spec.linear_head else c
    segments = (
        Segment(("conv1.nn.0.bias",), h),
        Segment(("conv1.nn.2.weight",), h, h),
        Segment(("conv1.nn.2.bias",), h),
        Segment(("norm1.weight",), h),
        Segment(("norm1.bias",), h),
        Segment(("conv2.nn.0.weight",), h, h),
        Segment(("conv2.nn.0.bias",), h),
        Segment(("conv2.nn.2.weight",), last, h),
        Segment(("conv2.nn.2.bias",), last),
        Segment(("norm2.weight",), last),
        Segment(("norm2.bias",), last),
        Segment(("head.weight",), c, last),
        Segment(("head.bias",), c),
    )
    norms = ("norm1", "norm2") if spec.linear_head else ("norm1",)
    inputs = Segment(("conv1.nn.0.weight",), h, columns)
    return Plan(inputs, segments, h, last, c, norms if spec.batch_norm else ())
