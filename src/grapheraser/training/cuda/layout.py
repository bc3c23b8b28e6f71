"""Where tensors lie on the device; every block shape follows from this alone."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from grapheraser.errors import ParameterError
from grapheraser.models import ModelSpec
from grapheraser.training.layout import tensors
from grapheraser.training.layout.axes import power_of_two
from grapheraser.training.layout.tensors import TensorLayout

NARROWEST = 16
# A product of one row with a matrix keeps the whole matrix in registers.
LARGEST_MATRIX = 32768


class Gradient(NamedTuple):
    """``parameter``'s gradient is ``left^T right``, or the sum of the rows of ``right``.

    Attributes:
        parameter: its role in the layout.
        left: a buffer, or None for a vector.
        right: a buffer.
        by_shard: ``right`` has one row per shard: the gradient itself.
    """

    parameter: str
    left: str | None
    right: str
    by_shard: bool = False


@lru_cache(maxsize=64)
def layout_of(spec: ModelSpec, num_classes: int) -> TensorLayout:
    """The layout of a model; models that are too wide for these kernels are an error."""
    layout = tensors.layout_of(spec, num_classes, _padded)
    _check_width(layout)
    return layout


def _padded(size: int) -> int:
    return max(NARROWEST, power_of_two(size))


def _check_width(layout: TensorLayout) -> None:
    if layout.spec.hops == 0:
        # Without edges, products run in tiles; only the logits must fit into one.
        largest = layout.classes.width * NARROWEST
    else:
        largest = max(segment.size for segment in layout.segments.values())
    if largest > LARGEST_MATRIX:
        raise ParameterError(
            f"engine 'cuda' can't train {layout.spec.name} with {layout.num_classes} classes: "
            f"a layer of {largest} weights is more than its {LARGEST_MATRIX}.",
            hint="use engine='pyg', fewer hidden units or fewer heads.",
        )
