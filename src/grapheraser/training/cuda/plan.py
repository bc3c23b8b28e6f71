"""Where each tensor of a model lies on the device; every block shape follows from this alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from grapheraser.errors import ParameterError
from grapheraser.models import ModelSpec
from grapheraser.models.spec import ACTIVATION_CODES
from grapheraser.training.cpu.layout import Axis, Segment

NARROWEST = 16
# A product of one row with a matrix keeps the whole matrix in registers.
LARGEST_MATRIX = 32768


class Limits(NamedTuple):
    """A unit is dropped when its 32-bit hash is below this."""

    hidden: int
    features: int
    attention: int


class Gradient(NamedTuple):
    """``parameter``'s gradient is ``left^T right``, or the sum of the rows of ``right``.

    Attributes:
        parameter: its name in the plan.
        left: a buffer, or None for a vector.
        right: a buffer.
        by_shard: ``right`` has one row per shard: the gradient itself.
    """

    parameter: str
    left: str | None
    right: str
    by_shard: bool = False


@dataclass(frozen=True)
class Plan:
    """The layout of one model.

    Attributes:
        spec: the model.
        num_classes: C.
        inputs: names and units of the first layer's weights; they lie as ``[columns, units]``.
        segments: all other parameters, by short names.
        hidden, last, classes: units of the first hidden layer, of what the classifier sees (gin:
            of the second layer), and of the logits.
        norms: names of the batch norms.
        heads: of gat's first layer, rounded up to a power of two.
    """

    spec: ModelSpec
    num_classes: int
    inputs: Segment
    segments: dict[str, Segment]
    hidden: Axis
    last: Axis
    classes: Axis
    norms: tuple[str, ...] = ()
    heads: int = 1
    offsets: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        offsets, end = {}, 0
        for name, segment in self.segments.items():
            offsets[name] = end
            end += segment.size
        object.__setattr__(self, "offsets", offsets)

    def __getitem__(self, name: str) -> Segment:
        return self.segments[name]

    def offset(self, name: str) -> int:
        """Where a parameter begins; 0 for one that this model does not have."""
        return self.offsets.get(name, 0)

    @property
    def size(self) -> int:
        """Entries of all segments."""
        return sum(segment.size for segment in self.segments.values())

    @property
    def activation(self) -> int:
        return ACTIVATION_CODES[self.spec.activation]

    @property
    def limits(self) -> Limits:
        spec = self.spec
        shares = (spec.dropout, spec.input_dropout, spec.attention_dropout)
        return Limits(*(round(share * 2**32) for share in shares))


def power_of_two(size: int) -> int:
    """The smallest power of two that is not below ``size``."""
    return 1 << max(0, size - 1).bit_length()


@lru_cache(maxsize=64)
def plan_of(spec: ModelSpec, num_classes: int) -> Plan:
    """The layout of a model; models that are too wide for these kernels are an error."""
    c = _plain(num_classes)
    heads = power_of_two(spec.heads) if spec.kind == "gat" else 1
    h = _heads(spec.heads, spec.hidden) if spec.kind == "gat" else _plain(spec.hidden)
    build = {"gcn": _gcn, "sage": _sage, "gat": _gat, "gin": _gin, "mlp": _mlp}[spec.kind]
    inputs, segments, last = build(spec, h, c)
    norms: tuple[str, ...] = ()
    if spec.kind == "gin" and spec.batch_norm:
        norms = ("norm1", "norm2") if spec.linear_head else ("norm1",)
    plan = Plan(spec, num_classes, inputs, segments, h, last, c, norms, heads)
    _check_width(plan)
    return plan


def _plain(size: int) -> Axis:
    return Axis(np.arange(size), max(NARROWEST, power_of_two(size)))


def _heads(heads: int, size: int) -> Axis:
    """Unit f of head i lies at ``f * period + i``, as in the CPU engine, whose hash names it so."""
    period = power_of_two(heads)
    head, unit = np.divmod(np.arange(heads * size), size)
    return Axis(unit * period + head, max(NARROWEST, period * power_of_two(size)))


Parts = tuple[Segment, dict[str, Segment], Axis]


def _gcn(spec: ModelSpec, h: Axis, c: Axis) -> Parts:
    del spec
    segments = {
        "bias1": Segment(("conv1.bias",), h),
        "conv2": Segment(("conv2.lin.weight",), c, h),
        "bias2": Segment(("conv2.bias",), c),
    }
    return Segment(("conv1.lin.weight",), h), segments, h


def _sage(spec: ModelSpec, h: Axis, c: Axis) -> Parts:
    del spec
    segments = {
        "bias1": Segment(("conv1.lin_l.bias",), h),
        "conv2": Segment(("conv2.lin_l.weight", "conv2.lin_r.weight"), c.beside(c), h),
        "bias2": Segment(("conv2.lin_l.bias",), c),
    }
    return Segment(("conv1.lin_l.weight", "conv1.lin_r.weight"), h.beside(h)), segments, h


def _gat(spec: ModelSpec, h: Axis, c: Axis) -> Parts:
    del spec
    segments = {
        "att_src1": Segment(("conv1.att_src",), h),
        "att_dst1": Segment(("conv1.att_dst",), h),
        "bias1": Segment(("conv1.bias",), h),
        "weight2": Segment(("conv2.lin.weight",), c, h),
        "att_src2": Segment(("conv2.att_src",), c),
        "att_dst2": Segment(("conv2.att_dst",), c),
        "bias2": Segment(("conv2.bias",), c),
    }
    return Segment(("conv1.lin.weight",), h), segments, h


def _gin(spec: ModelSpec, h: Axis, c: Axis) -> Parts:
    last = h if spec.linear_head else c
    segments = {
        "bias1": Segment(("conv1.nn.0.bias",), h),
        "weight2": Segment(("conv1.nn.2.weight",), h, h),
        "bias2": Segment(("conv1.nn.2.bias",), h),
        "weight3": Segment(("conv2.nn.0.weight",), h, h),
        "bias3": Segment(("conv2.nn.0.bias",), h),
        "weight4": Segment(("conv2.nn.2.weight",), last, h),
        "bias4": Segment(("conv2.nn.2.bias",), last),
    }
    if spec.batch_norm:
        segments |= {
            "scale1": Segment(("norm1.weight",), h),
            "shift1": Segment(("norm1.bias",), h),
        }
    if spec.linear_head:
        segments |= {
            "head": Segment(("head.weight",), c, h),
            "head_bias": Segment(("head.bias",), c),
        }
        if spec.batch_norm:
            segments |= {
                "scale2": Segment(("norm2.weight",), h),
                "shift2": Segment(("norm2.bias",), h),
            }
    return Segment(("conv1.nn.0.weight",), h), segments, last


def _mlp(spec: ModelSpec, h: Axis, c: Axis) -> Parts:
    second = _plain(spec.second_hidden or spec.hidden)
    segments = {
        "bias1": Segment(("lin1.bias",), h),
        "weight2": Segment(("lin2.weight",), second, h),
        "bias2": Segment(("lin2.bias",), second),
        "weight3": Segment(("lin3.weight",), c, second),
        "bias3": Segment(("lin3.bias",), c),
    }
    return Segment(("lin1.weight",), h), segments, second


def _check_width(plan: Plan) -> None:
    if plan.spec.kind == "mlp":
        # Its products run in tiles; only the logits must fit into one.
        largest = plan.classes.width * NARROWEST
    else:
        largest = max(segment.size for segment in plan.segments.values())
    if largest > LARGEST_MATRIX:
        raise ParameterError(
            f"engine 'cuda' can't train {plan.spec.name} with {plan.num_classes} classes: "
            f"a layer of {largest} weights is more than its {LARGEST_MATRIX}.",
            hint="use engine='pyg', fewer hidden units or fewer heads.",
        )
