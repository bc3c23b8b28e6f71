"""Load a run, with code of the user's own: named by the user, never by a run alone.

A run says by which name its model, optimizer and loss can be imported. Importing runs code, and a
run may come from anywhere. So nothing is imported that the user has not named: at ``fit`` by
``--model package.module:Class``, later by ``--trust package.module:Class``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapheraser.errors import CorruptRunError, ParameterError

if TYPE_CHECKING:
    from grapheraser.engines import Training


def load(
    path: Path, trust: Sequence[str] | None, executor: str = "local", *, task: str | None = None
) -> Any:
    """Load a run, of the given task if any; ``trust`` names code that may be imported."""
    from grapheraser.eraser.load import eraser_of, task_of

    own = own_parts(path, trust)
    return eraser_of(task or task_of(path), path).load(path, executor=executor, **own)


def _imported(text: str, option: str) -> Any:
    """Import what ``package.module:Name`` names, also from the current folder."""
    from grapheraser.registry import import_part

    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return import_part(text, option)


def own_model(text: str) -> Any:
    """Return a preset's name as it is; import ``package.module:Name``, where it can be saved."""
    from grapheraser.models import PRESETS, CustomModel
    from grapheraser.registry import check_importable

    if ":" not in text or text in PRESETS:
        return text
    model = _imported(text, "--model")
    factory = model.factory if isinstance(model, CustomModel) else model
    if isinstance(factory, partial) or hasattr(factory, "__qualname__"):
        check_importable("--model", factory)
        return model
    raise ParameterError(
        f"--model: {text} must be a class, a function, a functools.partial or a CustomModel. "
        f"Got {type(factory).__name__}."
    )


def own_function(text: str, option: str) -> Any:
    """Return a name as it is; import ``package.module:name``."""
    return _imported(text, option) if ":" in text else text


def own_parts(path: Path, trust: Sequence[str] | None) -> dict[str, Any]:
    """Return the arguments that load a run with parts of the user's own; refuse untrusted ones."""
    from grapheraser.store import read_manifest

    return parts_named(path, read_manifest(path).get("configuration"), trust)


def parts_named(path: Path, configuration: Any, trust: Sequence[str] | None) -> dict[str, Any]:
    """Return the parts of the user's own that a run's configuration names; see `own_parts`."""
    own, training = _own(configuration)
    _check_trust(path, own, trust or ())
    parts = {name: _part(part) for name, part in own.items()}
    found = {"model": parts.pop("model")} if "model" in parts else {}
    return found | ({"training": _training(training, parts)} if parts else {})


def own_names(configuration: Any) -> list[str]:
    """Return the names of a run's parts of the user's own; nothing is imported."""
    return [_where(part) for part in _own(configuration)[0].values()]


def _own(configuration: Any) -> tuple[dict[str, Mapping[str, Any]], Mapping[str, Any]]:
    """Descriptions of a run's parts of the user's own, and of its training."""
    from grapheraser.engines.task import OWN_FUNCTIONS

    arguments = configuration.get("arguments") if isinstance(configuration, dict) else None
    given = arguments if isinstance(arguments, dict) else {}
    training = _options(given.get("training"))
    described = {name: training.get(name) for name in OWN_FUNCTIONS}
    described["model"] = _factory(given.get("model"))
    return {n: part for n, part in described.items() if isinstance(part, Mapping)}, training


def _check_trust(path: Path, own: Mapping[str, Mapping[str, Any]], trust: Sequence[str]) -> None:
    """Refuse what is not trusted, before anything is imported."""
    if trust and not own:
        raise ParameterError(f"--trust: {path} has no model, optimizer or loss of its own.")
    missing = {name: where for name, part in own.items() if (where := _where(part)) not in trust}
    if missing:
        what = " and ".join(f"{name} of its own, {where!r}" for name, where in missing.items())
        options = " ".join(f"--trust {where}" for where in missing.values())
        raise ParameterError(
            f"this run was fitted with a {what}; importing runs code.",
            hint=f"if you trust that code, add {options}.",
        )


def _options(described: Any) -> Mapping[str, Any]:
    options = described.get("options") if isinstance(described, Mapping) else None
    return options if isinstance(options, Mapping) else {}


def _factory(described: Any) -> Any:
    """The description of a user's module factory in that of a model."""
    has_type = isinstance(described, Mapping) and "type" in described
    return described if has_type else _options(described).get("factory")


def _training(options: Mapping[str, Any], parts: dict[str, Any]) -> Training:
    """The `Training` in a description, with functions of the user's own."""
    from grapheraser.engines import EarlyStopping, Training

    values = {name: _plain(value) for name, value in options.items()} | parts
    try:
        if isinstance(stopping := options.get("early_stopping"), Mapping):
            values["early_stopping"] = EarlyStopping(**_options(stopping))
        return Training(**values)
    except TypeError as error:
        raise CorruptRunError(f"the run's training is none ({error}).") from error


def _plain(value: Any) -> Any:
    """Turn lists into the tuples that they were."""
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def _where(described: Mapping[str, Any]) -> str:
    return str(described.get("type"))


def _part(described: Mapping[str, Any]) -> Any:
    part, options = _imported(_where(described), "--trust"), _options(described)
    return partial(part, **options) if options else part
