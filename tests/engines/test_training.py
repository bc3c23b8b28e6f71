"""`Training`: what may be said about how shards are trained, and which engine can do it."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import grapheraser as ge
from grapheraser.engines import TrainingConfig, resolve_engine
from grapheraser.engines.training import SUPPORT, check_recordable, configure
from grapheraser.errors import ParameterError
from grapheraser.models import PRESETS, CustomModel, resolve_model
from tests.strategies import TwoHops

GUIDE = Path(__file__).parents[2] / "docs" / "training.md"


def own_optimizer(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def own_loss(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.multi_margin_loss(scores, labels)


# Of each field, a value that no preset has.
UNUSUAL: dict[str, Any] = {
    "epochs": 7,
    "learning_rate": 0.5,
    "weight_decay": 0.25,
    "optimizer": "sgd",
    "loss": own_loss,
    "class_weights": "balanced",
    "early_stopping": 5,
    "layers": 4,
    "hidden": 5,
    "dropout": 0.25,
    "residual": True,
    "norm": "layer",
    "neighbours": (3, 2),
    "batch_size": 9,
    "scheduler": partial(torch.optim.lr_scheduler.StepLR, step_size=1),
    "callback": print,
}
# What a field can't be given without.
BESIDE: dict[str, dict[str, Any]] = {"batch_size": {"neighbours": (3, 2)}}


def unusual(name: str) -> ge.Training:
    return ge.Training(**{name: UNUSUAL[name]} | BESIDE.get(name, {}))


def test_every_field_has_a_row_and_a_value_to_try() -> None:
    names = [field.name for field in fields(ge.Training)]
    assert list(SUPPORT) == list(UNUSUAL) == names
    assert ge.Training().given == {}


@pytest.mark.parametrize("name", UNUSUAL)
def test_engines_train_with_what_the_table_says_and_refuse_the_rest(name: str) -> None:
    config = configure(PRESETS["gcn"], unusual(name), None)
    assert resolve_engine("pyg", config, "cpu").name == "pyg"
    if SUPPORT[name][1] == "any":
        assert resolve_engine("auto", config, "cpu").name == "cpu"
        assert resolve_engine("cpu", config, "cpu").name == "cpu"
        return
    assert resolve_engine("auto", config, "cpu").name == "pyg"
    with pytest.raises(ParameterError, match=rf"engine 'cpu' can't train with .*{name}") as caught:
        resolve_engine("cpu", config, "cpu")
    assert "pyg" in str(caught.value.hint)


@pytest.mark.parametrize("name", UNUSUAL)
def test_own_modules_train_with_what_the_table_says(name: str) -> None:
    training = unusual(name)
    if SUPPORT[name][2]:
        assert configure(resolve_model(TwoHops), training, None) != TrainingConfig(
            resolve_model(TwoHops)
        )
        return
    with pytest.raises(ParameterError, match=f"'{name}' of Training has no part in a module of"):
        configure(resolve_model(TwoHops), training, None)


def test_the_table_of_the_guide_is_that_of_the_code() -> None:
    lines = [
        "| field | built-in models, engine `pyg` | engines `cpu` and `cuda` | your own module |",
        "| --- | --- | --- | --- |",
        *(
            f"| `{name}` | {' | '.join(each or 'no' for each in row)} |"
            for name, row in SUPPORT.items()
        ),
    ]
    assert "\n".join(lines) in GUIDE.read_text()


def test_what_a_preset_says_is_changed_field_by_field() -> None:
    training = ge.Training(learning_rate=0.5, weight_decay=0, layers=3, hidden=5, dropout=0)
    config = configure(PRESETS["sage"], training, 20)
    changes = {"lr": 0.5, "weight_decay": 0.0, "layers": 3, "hidden": 5, "dropout": 0.0}
    assert config == TrainingConfig(replace(PRESETS["sage"], **changes), 20)  # type: ignore[arg-type]
    assert configure(PRESETS["sage"], None, None) == TrainingConfig(PRESETS["sage"], 100)


def test_epochs_are_given_once_or_alike() -> None:
    assert configure(PRESETS["gcn"], ge.Training(epochs=5), None).epochs == 5
    assert configure(PRESETS["gcn"], ge.Training(epochs=5), 5).epochs == 5
    with pytest.raises(ParameterError, match=r"'epochs' of GraphEraser is 6, and that .* 5"):
        configure(PRESETS["gcn"], ge.Training(epochs=5), 6)


def test_an_option_of_ones_own_model_is_given_once_or_alike() -> None:
    spec = ge.ModelSpec("gcn", hidden=8)
    assert configure(spec, ge.Training(hidden=8, dropout=0.1), None, named=False).model == replace(
        spec, dropout=0.1
    )
    with pytest.raises(ParameterError, match="'hidden' of Training is 9, and 'hidden' of Model"):
        configure(spec, ge.Training(hidden=9), None, named=False)
    own = CustomModel(TwoHops, lr=0.5)
    with pytest.raises(ParameterError, match=r"'learning_rate' .* 'lr' of CustomModel 0\.5"):
        configure(own, ge.Training(learning_rate=0.1), None, named=False)
    with pytest.raises(ParameterError, match="'lr' of CustomModel has no part in an optimizer"):
        configure(own, ge.Training(optimizer=own_optimizer), None, named=False)


def without_addresses(value: object) -> str:
    """The same in every process that collects tests."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"epochs": 0}, "'epochs' of Training must be a positive int. Got 0"),
        ({"epochs": True}, "'epochs'"),
        ({"learning_rate": 0}, "'learning_rate' of Training must be a number above 0"),
        ({"weight_decay": -1}, "'weight_decay'"),
        ({"optimizer": "lion"}, "'optimizer' of Training must be 'adam', 'adamw' or 'sgd'"),
        ({"optimizer": 3}, "'optimizer'"),
        ({"loss": "mse"}, "'loss' of Training must be 'cross_entropy', 'nll' or 'huber'"),
        ({"class_weights": "even"}, "'class_weights' of Training must be 'balanced'"),
        ({"class_weights": {0: 0.0}}, "'class_weights' of Training must be a number above 0"),
        ({"class_weights": {-1: 1.0}}, "'class_weights'"),
        ({"class_weights": [[1.0]]}, "'class_weights'"),
        ({"class_weights": []}, "'class_weights'"),
        ({"class_weights": [1.0, np.nan]}, "'class_weights'"),
        ({"early_stopping": 0}, "'early_stopping' of Training must be a positive int"),
        ({"early_stopping": True}, "'early_stopping'"),
        ({"layers": 0}, r"'layers' of Training must be an int in \[1, 32\]"),
        ({"layers": 33}, "'layers'"),
        ({"hidden": 1.5}, "'hidden'"),
        ({"dropout": 1.0}, "'dropout'"),
        ({"optimizer": own_optimizer, "learning_rate": 0.1}, "'learning_rate' .* has no part"),
        ({"loss": own_loss, "class_weights": "balanced"}, "'class_weights' .* has no part"),
    ],
    ids=without_addresses,
)
def test_bad_values_are_told_by_name(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        ge.Training(**changes)


def test_bad_early_stopping_is_told_by_name() -> None:
    for changes in ({"patience": 0}, {"share": 0.0}, {"share": 1.0}):
        (name,) = changes
        with pytest.raises(ParameterError, match=f"'{name}' of EarlyStopping"):
            ge.EarlyStopping(**changes)


def test_what_makes_no_sense_for_a_model_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"'training' .* 'closed-form', which is solved for"):
        configure(resolve_model("closed-form"), ge.Training(epochs=3), None)
    with pytest.raises(ParameterError, match="'loss' of Training can't be 'nll' for model 'gcn'"):
        configure(PRESETS["gcn"], ge.Training(loss="nll"), None)
    with pytest.raises(ParameterError, match="'training' of GraphEraser must be a Training"):
        configure(PRESETS["gcn"], {"epochs": 3}, None)  # type: ignore[arg-type]


def test_values_are_plain_and_equal_however_they_were_given() -> None:
    values: dict[str, Any] = {"early_stopping": np.int64(5)}
    given = ge.Training(class_weights={2: 0.5, 0: np.float32(2).item()}, **values)
    assert given == ge.Training(class_weights={0: 2.0, 2: 0.5}, early_stopping=ge.EarlyStopping(5))
    assert ge.Training(class_weights=np.array([1, 2])) == ge.Training(class_weights=[1.0, 2.0])
    assert hash(given) == hash(replace(given))


def test_functions_without_a_name_are_not_written_into_runs() -> None:
    check_recordable(None)
    for fine in (own_optimizer, torch.optim.SGD, partial(torch.optim.SGD, lr=0.1)):
        check_recordable(ge.Training(optimizer=fine))

    def local(parameters: Any) -> torch.optim.Optimizer:
        return own_optimizer(parameters)

    for nameless in (local, lambda parameters: local(parameters), partial(local)):  # noqa: PLW0108
        with pytest.raises(ParameterError, match="'optimizer' of Training can't be written") as e:
            check_recordable(ge.Training(optimizer=nameless))
        assert "top of a module" in str(e.value.hint)


def test_neighbours_go_with_batches_and_the_hops_of_a_model() -> None:
    config = configure(PRESETS["gcn"], ge.Training(neighbours=[5, -1]), None)
    assert (config.neighbours, config.batch_size) == ((5, -1), 1024)
    three = ge.Training(layers=3, neighbours=[5, 4, 3], batch_size=10)
    config = configure(PRESETS["sage"], three, None)
    assert (config.neighbours, config.batch_size) == ((5, 4, 3), 10)
    assert configure(PRESETS["mlp"], ge.Training(neighbours=[]), None).neighbours == ()
    assert configure(resolve_model(TwoHops), ge.Training(neighbours=[4]), None).neighbours == (4,)
    for model, training, message in (
        ("gcn", ge.Training(neighbours=[5]), "each of the 2 hops that model 'gcn' looks. Got [5]"),
        ("mlp", ge.Training(neighbours=[5]), "each of the 0 hops that model 'mlp' looks. Got [5]"),
        ("sage", ge.Training(layers=3, neighbours=[5, 5]), "each of the 3 hops"),
    ):
        with pytest.raises(ParameterError, match=re.escape(message)):
            configure(PRESETS[model], training, None)
    with pytest.raises(ParameterError, match="'batch_size' of Training has no part in full-batch"):
        ge.Training(batch_size=10)


@pytest.mark.parametrize("bad", [10, "10,10", [0, 1], [-2], [2.5], [True], {3: 4}])
def test_neighbours_are_numbers_of_neighbours(bad: Any) -> None:
    with pytest.raises(ParameterError, match="'neighbours' of Training must be"):
        ge.Training(neighbours=bad)
