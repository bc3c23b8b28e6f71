"""From what the user wrote after ``model=`` to a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.checks import one_of, real, whole
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.models.builtin import PRESETS
from grapheraser.models.spec import CLOSED_FORM, ModelSpec

if TYPE_CHECKING:
    from torch import nn

    from grapheraser.graph.types import Types

ModuleFactory: TypeAlias = "Callable[[Any, int], nn.Module]"


@dataclass(frozen=True)
class CustomModel:
    """A user's own module: ``factory(in_channels, out_channels)`` with ``forward(x, edge_index)``.

    Of a typed graph ``factory(types, out_channels)`` with ``forward(x_dict, edge_index_dict)``.

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

    def module(self, num_features: int, num_classes: int, types: Types | None) -> nn.Module:
        """Make a module for graphs of this schema, untrained."""
        if types is None:
            return self.factory(num_features, num_classes)
        from grapheraser.models.relational import TypedModule

        return TypedModule(self.typed(types, num_classes), types)

    def typed(self, types: Types, num_classes: int) -> nn.Module:
        """Make what takes features and edges by type and relation."""
        return self.factory(types, num_classes)

    @property
    def is_own(self) -> bool:
        """True for code of the user's own."""
        return True

    def columns(self, graph: Graph) -> NDArray[np.int32]:
        """Return the sorted feature columns that the module has weights for."""
        return np.arange(graph.num_features, dtype=np.int32)

    def module_for(self, graph: Graph) -> nn.Module:
        """Make a module for graphs of the schema of this one, untrained."""
        return self.module(graph.num_features, graph.num_classes, graph.types)

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


@dataclass(frozen=True)
class RelationalModel(CustomModel):
    """The relational GCN, for typed graphs: ``rgcn``.

    Attributes:
        factory: none; it is built in.
        hidden: units of its hidden layers.
        layers: how many layers, and so how far it looks.
        dropout: on hidden units, while training.
    """

    factory: ModuleFactory = None  # type: ignore[assignment]
    hops: int | str = 2
    hidden: int = 64
    layers: int = 2
    dropout: float = 0.5

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for option in ("hidden", "layers"):
            object.__setattr__(self, option, whole(option, owner, getattr(self, option), 1))
        real("dropout", owner, self.dropout, 0, below=1)
        object.__setattr__(self, "hops", self.layers)
        super().__post_init__()

    @property
    def is_own(self) -> bool:
        return False

    def typed(self, types: Types, num_classes: int) -> nn.Module:
        """See `CustomModel`."""
        from grapheraser.models.relational import RelationalGCN

        return RelationalGCN(types, num_classes, self.hidden, self.layers, self.dropout)

    @property
    def name(self) -> str:
        return RELATIONAL

    def to_dict(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in ("hidden", "layers", "dropout")}
        return {"kind": RELATIONAL, **options, "lr": self.lr, "weight_decay": self.weight_decay}


RELATIONAL = "rgcn"
Model: TypeAlias = ModelSpec | CustomModel


def resolve_model(model: str | Model | ModuleFactory) -> Model:
    """A model from a preset's name, a `ModelSpec`, a `CustomModel` or a module factory."""
    if isinstance(model, str):
        if model in CLOSED_FORM:
            return ModelSpec(model)
        if model == RELATIONAL:
            return RelationalModel()
        if model not in PRESETS:
            choices = ", ".join([*PRESETS, RELATIONAL, *CLOSED_FORM])
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
