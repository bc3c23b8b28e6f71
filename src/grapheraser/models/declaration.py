"""The declaration of a built-in model, which modules, engines and inference read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from grapheraser.models.spec import ModelSpec

if TYPE_CHECKING:
    from torch import nn

Shape: TypeAlias = tuple[int, ...]
Module: TypeAlias = "nn.Module"
Weighing: TypeAlias = Literal["normalised", "mean", "sum"]


@dataclass(frozen=True)
class Units:
    """The units of a layer: ``size`` of them in each of ``heads`` attention heads."""

    size: int
    heads: int = 1

    @property
    def count(self) -> int:
        return self.size * self.heads


@dataclass(frozen=True)
class Initial:
    """Initial values: uniform in plus and minus ``bound``; constant where that is 0."""

    bound: float = 0.0
    constant: float = 0.0


ZEROS, ONES = Initial(), Initial(constant=1.0)


def glorot(shape: Shape) -> Initial:
    """Return the initial values of PyG's own linear layers and attention vectors."""
    return Initial(math.sqrt(6.0 / (shape[-1] + shape[-2])))


def by_fan_in(shape: Shape) -> Initial:
    """Return the initial values of torch's linear layers."""
    return fan_in(shape[-1])


def fan_in(count: int) -> Initial:
    """Return the initial values of biases of torch's linear layers with ``count`` inputs."""
    return Initial(1.0 / math.sqrt(count)) if count else ZEROS


@dataclass(frozen=True)
class Parameter:
    """One parameter of a model, or several alike that lie side by side."""

    role: str  # what the engines call it
    names: tuple[str, ...]  # in the PyG module's state dict, one per tensor
    shape: Shape  # of each tensor
    initial: Initial  # how each tensor starts
    out: Units  # the units that it gives, per tensor
    inner: Units | None = None  # the units that it multiplies; None for vectors
    trained: bool = True  # whether the model has it. Engines lay out the others too, as zeros.


def matrix(
    role: str,
    names: str | tuple[str, ...],
    out: Units,
    inner: Units,
    initial: Callable[[Shape], Initial] = by_fan_in,
) -> Parameter:
    """Weights ``[out, inner]``."""
    names, shape = (names,) if isinstance(names, str) else names, (out.count, inner.count)
    return Parameter(role, names, shape, initial(shape), out, inner)


def vector(
    role: str, name: str, out: Units, initial: Initial, *, trained: bool = True
) -> Parameter:
    """A number per unit: biases, scales."""
    return Parameter(role, (name,), (out.count,), initial, out, trained=trained)


def layers_of(
    spec: ModelSpec, num_features: int, num_classes: int, *, heads: int = 1
) -> list[tuple[int, Units, Units]]:
    """Return each layer's number and units, in and out; hidden ones have ``heads``."""
    hidden = [Units(spec.hidden, heads)] * (spec.depth - 1)
    units = [Units(num_features), *hidden, Units(num_classes)]
    return [(i + 1, *pair) for i, pair in enumerate(pairwise(units))]


@dataclass(frozen=True)
class Architecture:
    """The tensors of a model with given options, features and classes."""

    # The weights that multiply the input features; its ``inner`` units are the features.
    inputs: Parameter
    # All other parameters, in the order in which engines lay them out.
    others: tuple[Parameter, ...]
    # Names of the batch norms; each has a running mean and variance per hidden unit.
    norms: tuple[str, ...] = ()

    @property
    def hidden(self) -> Units:
        """The units of the first hidden layer."""
        return self.inputs.out

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """Shape of every trained tensor by its name."""
        parameters = (p for p in (self.inputs, *self.others) if p.trained)
        return {name: p.shape for p in parameters for name in p.names}

    @property
    def buffer_shapes(self) -> dict[str, Shape]:
        """Shape of every running statistic by its name."""
        return {name: (self.hidden.count,) for norm in self.norms for name in running_names(norm)}


def running_names(norm: str) -> tuple[str, str]:
    """Names of a batch norm's running mean and variance."""
    return f"{norm}.running_mean", f"{norm}.running_var"


@dataclass(frozen=True)
class Declaration:
    """A built-in model."""

    # preset, paper: its options by default, and in the paper's code with the optimiser of the
    # paper's text.
    preset: ModelSpec
    paper: ModelSpec
    # Its tensors, from (spec, features, classes).
    architecture: Callable[[ModelSpec, int, int], Architecture]
    # Its PyG module, from (spec, features, classes). Imports torch.
    module: Callable[[ModelSpec, int, int], Module]
    # How a layer weighs neighbours: by both degrees, by the node's own, or not.
    weighing: Callable[[ModelSpec], Weighing] = field(default=lambda spec: "sum")
    # Whether a node counts among its own neighbours; beside a mean, in full.
    self_loops: Callable[[ModelSpec], bool] = field(default=lambda spec: False)
    weighs_edges: bool = False  # whether it uses the weights and the directions of edges

    def reach(self, spec: ModelSpec) -> int:
        """Return how many hops a removal reaches; degrees of neighbours reach one more."""
        return spec.hops + (1 if self.weighing(spec) == "normalised" else 0)
