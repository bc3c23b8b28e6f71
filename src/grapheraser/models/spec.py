"""The options of a built-in model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from grapheraser.checks import flag, one_of, real, whole
from grapheraser.errors import ParameterError
from grapheraser.models.constants import ACTIVATION_CODES

# `models.builtin` declares each of them.
KINDS = ("gcn", "sage", "gat", "gin", "mlp")
# Models without shards: the closed-form members of the pool that they consist of; None: all.
CLOSED_FORM: dict[str, tuple[str, ...] | None] = {"sgc": ("features",), "closed-form": None}
# What the kernels of the engines are written for; other numbers of layers go through PyG modules.
MAX_LAYERS = 32
USUAL_LAYERS = {kind: 3 if kind == "mlp" else 2 for kind in KINDS}
_FLAGS = (
    *("self_loops", "bias", "mean", "skip", "batch_norm", "layer_norm"),
    *("linear_head", "all_columns"),
)


@dataclass(frozen=True)
class ModelSpec:
    """A built-in model: two message-passing layers (``mlp``: three linear ones), unless it says.

    ``sgc`` and ``closed-form`` are solved for, not trained, and have none of the options below.

    Attributes:
        kind: gcn, sage, gat, gin, mlp, sgc or closed-form.
        hidden: width of the hidden layers; per head for gat.
        layers: how many; None: two, or mlp's three. Other numbers train on engine ``pyg`` alone.
        second_hidden: width of mlp's hidden layers after the first, where it differs from
            ``hidden``.
        heads: attention heads of gat's layers; its last has one.
        activation: after every hidden layer: relu, elu or none.
        dropout: on hidden units, while training.
        input_dropout: on the input features, while training.
        attention_dropout: on gat's attention coefficients, while training.
        self_loops: whether gcn and gat count a node among its own neighbours.
        bias: whether gcn's layers have one.
        mean: whether gin adds the mean of a node's neighbours to the node, instead of their sum,
            which grows with the degree.
        skip: whether the layers of gat and gcn add a linear map of a node's own row (PyG's
            ``residual``); sage's always do. Of gcn, on engine ``pyg`` alone.
        batch_norm: after message-passing layers, before the activation. But for gin, on engine
            ``pyg`` alone.
        layer_norm: likewise, over the units of each node; on engine ``pyg`` alone.
        linear_head: whether gin's last layer ends in ``hidden`` units and a linear classifier
            (with batch norm, activation and dropout between) instead of in the classes.
        all_columns: keep the weights of feature columns that no node of the shard has. By default
            they are left out: they would carry nothing but initial noise.
        lr, weight_decay: of Adam.
    """

    kind: str
    hidden: int = 64
    layers: int | None = None
    second_hidden: int | None = None
    heads: int = 1
    activation: str = "relu"
    dropout: float = 0.5
    input_dropout: float = 0.0
    attention_dropout: float = 0.0
    self_loops: bool = True
    bias: bool = True
    mean: bool = False
    skip: bool = False
    batch_norm: bool = False
    layer_norm: bool = False
    linear_head: bool = False
    all_columns: bool = False
    lr: float = 0.01
    weight_decay: float = 0.001

    def __post_init__(self) -> None:
        owner, given = "ModelSpec", vars(self)
        one_of("kind", owner, self.kind, (*KINDS, *CLOSED_FORM))
        one_of("activation", owner, self.activation, ACTIVATION_CODES)
        for name in ("hidden", "heads", "second_hidden"):
            if given[name] is not None:
                object.__setattr__(self, name, whole(name, owner, given[name], 1))
        if self.layers is not None:
            object.__setattr__(self, "layers", whole("layers", owner, self.layers, 1, MAX_LAYERS))
        for name in ("dropout", "input_dropout", "attention_dropout"):
            real(name, owner, given[name], 0, below=1)
        for name in _FLAGS:
            object.__setattr__(self, name, flag(name, owner, given[name]))
        if self.layer_norm and self.batch_norm:
            raise ParameterError("'layer_norm' and 'batch_norm' of ModelSpec exclude each other.")
        if self.layers == USUAL_LAYERS.get(self.kind):
            object.__setattr__(self, "layers", None)  # the same model is the same value
        real("lr", owner, self.lr, above=0)
        real("weight_decay", owner, self.weight_decay, 0)

    @property
    def closed_form(self) -> bool:
        """Tell whether the model is solved for, not trained: closed-form members, no shards."""
        return self.kind in CLOSED_FORM

    @property
    def beyond_kernels(self) -> tuple[str, ...]:
        """Names of the options that only the reference loop and `inference` layer by layer have."""
        has = {
            f"layers={self.layers}": self.layers is not None,
            "residual=True": self.skip and self.kind == "gcn",
            "norm='batch'": self.batch_norm and self.kind in ("gcn", "sage", "gat"),
            "norm='layer'": self.layer_norm and self.kind != "mlp",
        }
        return tuple(name for name, there in has.items() if there)

    @property
    def depth(self) -> int:
        """The number of layers."""
        return USUAL_LAYERS.get(self.kind, 0) if self.layers is None else self.layers

    @property
    def hops(self) -> int:
        """The number of hops that a node's logits look."""
        return 0 if self.kind == "mlp" else self.depth

    @property
    def members(self) -> tuple[str, ...] | None:
        """The closed-form members that the model consists of; None: all."""
        return CLOSED_FORM.get(self.kind)

    @property
    def name(self) -> str:
        """The preset's name, or the kind and what differs from its default."""
        from grapheraser.models.builtin import PRESETS  # made of specs itself

        for preset, spec in PRESETS.items():
            if spec == self:
                return preset
        if self.closed_form:
            return self.kind
        default = PRESETS[self.kind]
        changes = [
            f"{f.name}={getattr(self, f.name)}"
            for f in fields(self)
            if getattr(self, f.name) != getattr(default, f.name)
        ]
        return f"{self.kind}({', '.join(changes)})"

    def to_dict(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}
