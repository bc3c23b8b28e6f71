"""Where each tensor of a model lies while it is trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce

from grapheraser.models import ModelSpec, Parameter, architecture_of
from grapheraser.models.constants import ACTIVATION_CODES
from grapheraser.models.declaration import Units
from grapheraser.training.layout.axes import Axis, Segment
from grapheraser.training.layout.dropout import Limits, limits_of


@dataclass(frozen=True)
class TensorLayout:
    """The layout of one model, whatever the number of features.

    Attributes:
        spec: the model.
        num_classes: C.
        inputs: names and units of the first layer's weights; they lie as ``[columns, units]``.
        segments: all other parameters by their roles, in the order in which they lie.
        hidden, classes: units of the first hidden layer and of the logits.
        norms: names of the batch norms.
        offsets: where each segment begins.
    """

    spec: ModelSpec
    num_classes: int
    inputs: Segment
    segments: dict[str, Segment]
    hidden: Axis
    classes: Axis
    norms: tuple[str, ...]
    offsets: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        offsets, end = {}, 0
        for role, segment in self.segments.items():
            offsets[role] = end
            end += segment.size
        object.__setattr__(self, "offsets", offsets)

    def __getitem__(self, role: str) -> Segment:
        return self.segments[role]

    def offset(self, role: str) -> int:
        """Where a parameter begins; 0 for one that this model does not have."""
        return self.offsets.get(role, 0)

    def part(self, role: str) -> slice:
        """The places of a parameter."""
        return slice(self.offsets[role], self.offsets[role] + self.segments[role].size)

    @property
    def size(self) -> int:
        """Entries of all segments."""
        return sum(segment.size for segment in self.segments.values())

    @property
    def activation(self) -> int:
        return ACTIVATION_CODES[self.spec.activation]

    @property
    def limits(self) -> Limits:
        return limits_of(self.spec)


def layout_of(spec: ModelSpec, num_classes: int, pad: Callable[[int], int]) -> TensorLayout:
    """The layout of a model; ``pad`` gives the width of a row for its number of units."""
    architecture = architecture_of(spec, 1, num_classes)

    def segment_of(parameter: Parameter) -> Segment:
        axes = [Axis.of(parameter.out, pad) for _ in parameter.names]
        inner = None if parameter.inner is None else Axis.of(parameter.inner, pad)
        return Segment(parameter.names, reduce(Axis.beside, axes), inner, parameter.trained)

    return TensorLayout(
        spec,
        num_classes,
        inputs=replace(segment_of(architecture.inputs), inner=None),
        segments={parameter.role: segment_of(parameter) for parameter in architecture.others},
        hidden=Axis.of(architecture.hidden, pad),
        classes=Axis.of(Units(num_classes), pad),
        norms=architecture.norms,
    )
