"""`Training`: how the models of the shards are trained, as the user says it.

Every field is optional: None is what the model's preset says. `configure` puts a `Training` and a
model together into the `TrainingConfig` that engines take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from grapheraser.checks import flag, one_of, real, whole
from grapheraser.engines.task import (
    HOOKS,
    LOSSES,
    OPTIMIZERS,
    OWN_FUNCTIONS,
    SAMPLING,
    Callback,
    ClassWeights,
    EarlyStopping,
    LossFunction,
    MakeOptimizer,
    MakeScheduler,
    TrainingConfig,
)
from grapheraser.errors import ParameterError
from grapheraser.models import CustomModel, Model, ModelSpec
from grapheraser.models.spec import MAX_LAYERS
from grapheraser.registry import check_importable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

GivenWeights: TypeAlias = "str | Mapping[int, float] | ArrayLike"
EPOCHS, BALANCED, BATCH_SIZE = 100, "balanced", 1024
NORMS = ("none", "batch", "layer")
# The options of models that are fields here, by the names that models give them.
_OF_MODELS = {
    "lr": "learning_rate",
    "weight_decay": "weight_decay",
    "layers": "layers",
    "hidden": "hidden",
    "dropout": "dropout",
    "skip": "residual",
    "batch_norm": "norm",
    "layer_norm": "norm",
}
_OF_BUILT_IN = ("layers", "hidden", "dropout", "residual", "norm")
# The kinds of models that two of them have.
_KINDS_WITH = {"residual": ("gcn", "gat"), "norm": ("gcn", "sage", "gat", "gin")}
_OF_LOOPS = ("optimizer", "loss", "class_weights", "early_stopping", *SAMPLING, *HOOKS)
_OF_OPTIMIZERS = ("learning_rate", "weight_decay")
_OWNER = "Training"


# Values that each field may have: for built-in models with the reference loop (engine pyg) and with
# the kernels of cpu and cuda, and for modules of one's own, which the reference loop trains.
SUPPORT: dict[str, tuple[str, str, str]] = {
    "epochs": ("any", "any", "any"),
    "learning_rate": ("any", "any", "any"),
    "weight_decay": ("any", "any", "any"),
    "optimizer": ("adam, adamw, sgd, a function", "adam", "adam, adamw, sgd, a function"),
    "loss": ("cross_entropy, a function", "cross_entropy", "cross_entropy, nll, a function"),
    "class_weights": ("balanced, by class, one per class", "", "balanced, by class, one per class"),
    "early_stopping": ("any", "", "any"),
    "layers": (f"1 to {MAX_LAYERS}", "2 (mlp: 3)", ""),
    "hidden": ("any", "any", ""),
    "dropout": ("any", "any", ""),
    "residual": ("gcn, gat", "gat", ""),
    "norm": ("none, batch, layer (mlp: no)", "none (gin: batch)", ""),
    "neighbours": ("one number for each layer", "", "any"),
    "batch_size": ("with `neighbours`", "", "with `neighbours`"),
    "scheduler": ("a function", "", "a function"),
    "callback": ("a function", "", "a function"),
}


@dataclass(frozen=True)
class Training:
    """Settings of the training of every shard model; None is what the model's preset says.

    docs/training.md has the table of what each engine supports. What a shard learns depends on its
    own data, its seed and these values alone, so that retraining it after a request is exact.

    Attributes:
        epochs: full-batch steps; None: 100. The same as ``epochs`` of `GraphEraser`.
        learning_rate: of the optimiser.
        weight_decay: of the optimiser.
        optimizer: adam, adamw, sgd, or a function ``parameters -> torch.optim.Optimizer``, which
            sets the learning rate and the weight decay itself.
        loss: cross_entropy, nll (for your own modules that return log-probabilities), or a
            function ``(scores [m, classes], labels [m]) -> scalar``; it gets labelled nodes only.
        class_weights: ``"balanced"`` (inversely to how often a class occurs in the shard), weights
            by class (others weigh 1), or one per class.
        early_stopping: stop after so many epochs without a better loss on held-out training nodes
            of the shard, or an `EarlyStopping`; the best weights are kept.
        layers: how many layers a built-in model has.
        hidden: width of its hidden layers.
        dropout: on its hidden units.
        residual: whether layers of gcn and gat add a linear map of a node's own row.
        norm: of hidden layers, none, batch or layer.
        neighbours: train in batches, on samples: so many neighbours of each node in a batch, so
            many of each of these, and so on; -1: all of them. Of a built-in model one number for
            each layer that looks at neighbours. None: full batch.
        batch_size: labelled nodes in a batch, where neighbours are sampled; None: 1024.
        scheduler: of the learning rate: a function ``torch.optim.Optimizer -> LRScheduler``, such
            as ``functools.partial(StepLR, step_size=20)``; it steps after every epoch.
        callback: a function ``(epoch, module, loss) -> None``, called after every epoch of every
            shard, wherever that is trained. What it changes about the module is trained on.
    """

    epochs: int | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    optimizer: str | MakeOptimizer | None = None
    loss: str | LossFunction | None = None
    class_weights: GivenWeights | None = None
    early_stopping: int | EarlyStopping | None = None
    layers: int | None = None
    hidden: int | None = None
    dropout: float | None = None
    residual: bool | None = None
    norm: str | None = None
    neighbours: Sequence[int] | None = None
    batch_size: int | None = None
    scheduler: MakeScheduler | None = None
    callback: Callback | None = None

    def __post_init__(self) -> None:
        checks: dict[str, Callable[[Any], Any]] = {
            "epochs": lambda value: whole("epochs", _OWNER, value, 1),
            "learning_rate": lambda value: real("learning_rate", _OWNER, value, above=0),
            "weight_decay": lambda value: real("weight_decay", _OWNER, value, 0),
            "optimizer": lambda value: _named("optimizer", value, OPTIMIZERS),
            "loss": lambda value: _named("loss", value, LOSSES),
            "class_weights": _class_weights,
            "early_stopping": _early_stopping,
            "layers": lambda value: whole("layers", _OWNER, value, 1, MAX_LAYERS),
            "hidden": lambda value: whole("hidden", _OWNER, value, 1),
            "dropout": lambda value: real("dropout", _OWNER, value, 0, below=1),
            "residual": lambda value: flag("residual", _OWNER, value),
            "norm": lambda value: one_of("norm", _OWNER, value, NORMS),
            "neighbours": _neighbours,
            "batch_size": lambda value: whole("batch_size", _OWNER, value, 1),
            **{name: partial(_function, name) for name in HOOKS},
        }
        for name, check in checks.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, check(value))
        self._check_together()

    def _check_together(self) -> None:
        if callable(self.optimizer):
            for name in _OF_OPTIMIZERS:
                if getattr(self, name) is not None:
                    raise ParameterError(
                        f"'{name}' of {_OWNER} has no part in an optimizer of your own.",
                        hint=f"let the function set its {name}.",
                    )
        if callable(self.loss) and self.class_weights is not None:
            raise ParameterError(
                f"'class_weights' of {_OWNER} has no part in a loss of your own.",
                hint="let the function weigh the classes.",
            )
        if self.neighbours is None and self.batch_size is not None:
            raise ParameterError(
                f"'batch_size' of {_OWNER} has no part in full-batch training.",
                hint="add neighbours=[10, 10], or [-1, -1] for all neighbours.",
            )

    @property
    def given(self) -> dict[str, Any]:
        """The fields that are not None."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


def configure(
    model: Model, training: Training | None, epochs: int | None, *, named: bool = True
) -> TrainingConfig:
    """Return the config that engines take.

    ``epochs`` are those of `GraphEraser`. All options of a ``named`` preset may be changed; of a
    model of the user's own, none may be given twice.
    """
    training = Training() if training is None else training
    if not isinstance(training, Training):
        raise ParameterError.of("training", "GraphEraser", "a Training or None", training)
    if model.closed_form and training.given:
        raise ParameterError(
            f"'training' of GraphEraser has no part in model '{model.name}', which is solved for, "
            "not trained."
        )
    if epochs is not None and training.epochs not in (None, epochs):
        raise ParameterError(
            f"'epochs' of GraphEraser is {epochs}, and that of its Training {training.epochs}.",
            hint="give it in one of them.",
        )
    _check_loss(model, training)
    changed = _changed(model, training, named)
    _check_neighbours(changed, training)
    chosen = next((each for each in (training.epochs, epochs) if each is not None), EPOCHS)
    options = {name: training.given[name] for name in _OF_LOOPS if name in training.given}
    if "neighbours" in options:
        options.setdefault("batch_size", BATCH_SIZE)
    return TrainingConfig(changed, chosen, **options)


def check_recordable(training: Training | None) -> None:
    """Refuse to write down functions that nobody could bring back by their name."""
    for name in OWN_FUNCTIONS:
        value = None if training is None else getattr(training, name)
        if callable(value):
            check_importable(f"'{name}' of {_OWNER}", value)


def _changed(model: Model, training: Training, named: bool) -> Model:
    """Return the model with the options that the training has for it."""
    asked = training.given
    _check_options(model, asked)
    given = {option: asked[name] for option, name in _OF_MODELS.items() if name in asked}
    for norm in ("batch", "layer") if "norm" in asked else ():
        given[f"{norm}_norm"] = asked["norm"] == norm
    usual = {field.name: field.default for field in fields(model)}
    for option, name in _OF_MODELS.items():
        own = getattr(model, option, None)
        if named or own == usual.get(option):
            continue
        if option in given and given[option] != own:
            raise ParameterError(
                f"'{name}' of {_OWNER} is {asked[name]}, and '{option}' of {type(model).__name__} "
                f"{own}.",
                hint="give it in one of them.",
            )
        if callable(training.optimizer) and name in _OF_OPTIMIZERS:
            raise ParameterError(
                f"'{option}' of {type(model).__name__} has no part in an optimizer of your own.",
                hint="let the function set it.",
            )
    return replace(model, **given)


def _check_options(model: Model, asked: Mapping[str, Any]) -> None:
    """Refuse options that the model does not have."""
    for name in _OF_BUILT_IN:
        if name not in asked:
            continue
        if isinstance(model, CustomModel) and model.is_own:
            raise ParameterError(
                f"'{name}' of {_OWNER} has no part in a module of your own ({model.name}).",
                hint="build it into the module.",
            )
        kinds = _KINDS_WITH.get(name)
        if kinds is not None and getattr(model, "kind", None) not in kinds:
            raise ParameterError(
                f"'{name}' of {_OWNER} is for {', '.join(kinds)}. Got model '{model.name}'."
            )


def _check_loss(model: Model, training: Training) -> None:
    if training.loss == "nll" and isinstance(model, ModelSpec):
        raise ParameterError(
            f"'loss' of {_OWNER} can't be 'nll' for model '{model.name}', whose scores are no "
            "log-probabilities.",
            hint="use loss='cross_entropy'.",
        )


def _check_neighbours(model: Model, training: Training) -> None:
    """Refuse a number of hops other than that of a built-in model's layers that pass messages."""
    asked = training.neighbours
    if asked is not None and isinstance(model, ModelSpec) and len(asked) != model.hops:
        raise ParameterError(
            f"'neighbours' of {_OWNER} must have one number for each of the {model.hops} hops that "
            f"model '{model.name}' looks. Got {list(asked)}."
        )


def _neighbours(value: Any) -> tuple[int, ...]:
    wanted = "a list of how many neighbours to sample, each a positive int or -1 for all"
    if not isinstance(value, list | tuple):
        raise ParameterError.of("neighbours", _OWNER, wanted, value)
    counts = tuple(whole("neighbours", _OWNER, count, -1) for count in value)
    if 0 in counts:
        raise ParameterError.of("neighbours", _OWNER, wanted, value)
    return counts


def _function(name: str, value: Any) -> Any:
    if not callable(value):
        raise ParameterError.of(name, _OWNER, "a function", value)
    return value


def _named(name: str, value: Any, choices: tuple[str, ...]) -> Any:
    return value if callable(value) else one_of(name, _OWNER, value, choices)


def _early_stopping(value: Any) -> EarlyStopping:
    if isinstance(value, EarlyStopping):
        return value
    return EarlyStopping(whole("early_stopping", _OWNER, value, 1))


def _class_weights(value: Any) -> ClassWeights:
    """``"balanced"``, pairs of a class and its weight, or one weight per class."""
    if isinstance(value, str):
        return one_of("class_weights", _OWNER, value, (BALANCED,))
    if isinstance(value, Mapping):
        pairs = [(whole("class_weights", _OWNER, c, 0), _weight(w)) for c, w in value.items()]
        return tuple(sorted(pairs))
    if isinstance(value, tuple) and value and all(isinstance(item, tuple) for item in value):
        return _class_weights(dict(value))  # as a run has written it down
    array = np.asarray(value)
    if array.ndim != 1 or not len(array):
        wanted = f"'{BALANCED}', weights by class, or one weight per class"
        raise ParameterError.of("class_weights", _OWNER, wanted, value)
    return tuple(_weight(each) for each in array.tolist())


def _weight(value: Any) -> float:
    return real("class_weights", _OWNER, value, above=0)
