"""From what the user wrote after ``model=`` to a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from grapheraser.checks import one_of, real, whole
from grapheraser.errors import ParameterError
from grapheraser.models.builtin import PRESETS
from grapheraser.models.spec import CLOSED_FORM, ModelSpec

if TYPE_CHECKING:
    from torch import nn

ModuleFactory: TypeAlias = "Callable[[int, int], nn.Module]"


@dataclass(frozen=True)
class CustomModel:
    """A user's own module: ``factory(in_channels, out_channels)`` with ``forward(x, edge_index)``.

    Attributes:
        factory: a class or function; importable by name if the run is to be saved and loaded.
        lr, weight_decay: of Adam.
        hops: how far the module looks, which is what a prediction has to compute: a number of
            hops, ``"all"`` if it takes the whole graph, or ``"auto"`` to find out by trying. Has
            no part in training.
    """

    factory: ModuleFactory
    lr: float = 0.01
    weight_decay: float = 0.001
    hops: int | str = "auto"

    def __post_init__(self) -> None:
        real("lr", "CustomModel", self.lr, above=0)
        real("weight_decay", "CustomModel", self.weight_decay, 0)
        if isinstance(self.hops, str):
            one_of("hops", "CustomModel", self.hops, ("auto", "all"))
        else:
            object.__setattr__(self, "hops", whole("hops", "CustomModel", self.hops, 0))

    closed_form: ClassVar[bool] = False
    members: ClassVar[None] = None

    @property
    def name(self) -> str:
        """The place that the factory can be imported from, as ``module:qualname``."""
        qualname = getattr(self.factory, "__qualname__", type(self.factory).__qualname__)
        return f"{getattr(self.factory, '__module__', '?')}:{qualname}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "factory": self.name,
            "lr": self.lr,
            "weight_decay": self.weight_decay,
            "hops": self.hops,
        }


Model: TypeAlias = ModelSpec | CustomModel


def resolve_model(model: str | Model | ModuleFactory) -> Model:
    """A model from a preset's name, a `ModelSpec`, a `CustomModel` or a module factory."""
    if isinstance(model, str):
        if model in CLOSED_FORM:
            return ModelSpec(model)
        if model not in PRESETS:
            choices = ", ".join([*PRESETS, *CLOSED_FORM])
            raise ParameterError(f"unknown model '{model}'. Choose from: {choices}.")
        return PRESETS[model]
    if isinstance(model, ModelSpec | CustomModel):
        return model
    if hasattr(model, "state_dict") and not isinstance(model, type):
        raise ParameterError(
            "'model' of GraphEraser must be a factory, not a module: every shard needs its own. "
            f"Got {type(model).__name__}.",
            hint="pass the class, or a function (in_channels, out_channels) -> module.",
        )
    if callable(model):
        return CustomModel(model)
    raise ParameterError.of("model", "GraphEraser", "a name, ModelSpec or module factory", model)
