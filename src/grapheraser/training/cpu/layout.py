"""Where tensors lie for the CPU's kernels: rows are whole vectors."""

from __future__ import annotations

from functools import lru_cache

from grapheraser.kernels.vectors import padded
from grapheraser.models import ModelSpec
from grapheraser.training.layout import tensors
from grapheraser.training.layout.tensors import TensorLayout


@lru_cache(maxsize=64)
def layout_of(spec: ModelSpec, num_classes: int) -> TensorLayout:
    """The layout of a model."""
    return tensors.layout_of(spec, num_classes, padded)
