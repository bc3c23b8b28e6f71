"""Code of the user's own on the command line: named by the user, never by a run alone.

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
from typing import Annotated, Any

import typer

from grapheraser.errors import ParameterError

TrustOption = Annotated[
    list[str] | None,
    typer.Option(
        "--trust",
        metavar="MODULE:NAME",
        help="Import this code of yours, which the run was fitted with; may be repeated.",
    ),
]


def imported(text: str, option: str) -> Any:
    """What ``package.module:Name`` names, also in the current folder."""
    from grapheraser.training.importable import import_part

    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return import_part(text, option)


def own_model(text: str) -> Any:
    """A preset's name as it is; what ``package.module:Name`` names, where it can be saved."""
    from grapheraser.models import PRESETS, CustomModel
    from grapheraser.training.importable import check_importable

    if ":" not in text or text in PRESETS:
        return text
    model = imported(text, "--model")
    factory = model.factory if isinstance(model, CustomModel) else model
    if isinstance(factory, partial) or hasattr(factory, "__qualname__"):
        check_importable("--model", factory)
        return model
    raise ParameterError(
        f"--model: {text} must be a class, a function, a functools.partial or a CustomModel. "
        f"Got {type(factory).__name__}."
    )


def own_function(text: str, option: str) -> Any:
    """A name as it is; what ``package.module:name`` names."""
    return imported(text, option) if ":" in text else text


def own_parts(path: Path, trust: Sequence[str] | None) -> dict[str, Any]:
    """Arguments of `load` for a run with parts of the user's own; refuses what is not trusted."""
    from grapheraser.store import read_manifest

    configuration = read_manifest(path).get("configuration")
    arguments = configuration.get("arguments") if isinstance(configuration, dict) else None
    found: dict[str, Any] = {}
    if isinstance(arguments, dict):
        trusted = frozenset(trust or ())
        found = {"model": _factory(arguments.get("model"), trusted)}
        found["training"] = _training(arguments.get("training"), trusted)
        found = {name: part for name, part in found.items() if part is not None}
    if trust and not found:
        raise ParameterError(f"--trust: {path} has no model, optimizer or loss of its own.")
    return found


def _factory(described: Any, trusted: frozenset[str]) -> Any:
    """The user's module factory in the description of a model; None where there is none."""
    if not isinstance(described, Mapping):
        return None
    if "type" in described:
        return _part("model", described, trusted)
    options = described.get("options")
    return _factory(options.get("factory"), trusted) if isinstance(options, Mapping) else None


def _training(described: Any, trusted: frozenset[str]) -> Any:
    """The `Training` in a description, where it has functions of the user's own."""
    from grapheraser.training import EarlyStopping, Training

    options = described.get("options") if isinstance(described, Mapping) else None
    if not isinstance(options, Mapping):
        return None
    own = {
        name: _part(name, options[name], trusted)
        for name in ("optimizer", "loss")
        if isinstance(options.get(name), Mapping)
    }
    if not own:
        return None
    values = {name: _plain(value) for name, value in options.items()} | own
    stopping = options.get("early_stopping")
    if isinstance(stopping, Mapping):
        values["early_stopping"] = EarlyStopping(**stopping.get("options", {}))
    return Training(**values)


def _plain(value: Any) -> Any:
    """Lists as the tuples that they were."""
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def _part(name: str, described: Mapping[str, Any], trusted: frozenset[str]) -> Any:
    where = str(described.get("type"))
    if where not in trusted:
        raise ParameterError(
            f"this run was fitted with a {name} of its own, {where!r}; importing it runs its code.",
            hint=f"if you trust that code, add --trust {where}.",
        )
    part = imported(where, "--trust")
    options = described.get("options")
    return partial(part, **options) if options else part
