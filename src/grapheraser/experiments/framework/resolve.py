"""From the names in a cell's configuration to the objects that they stand for.

A part is written as ``name``, as ``name(option=value, ...)`` or, for the user's own, as
``module:attribute``. In this form it can be put into a cell, sent to a worker and read by people.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from grapheraser.aggregation import AGGREGATORS, MEMBERS, Aggregator, PooledAggregator
from grapheraser.errors import ParameterError
from grapheraser.experiments.framework.released import LogMean, ReleasedAggregator
from grapheraser.experiments.framework.stepped import SteppedAggregator
from grapheraser.models import CustomModel, Model, resolve_model
from grapheraser.partition import PARTITIONERS, Partitioner, resolve_partitioner
from grapheraser.partition.pretrained import pretrained_gnn
from grapheraser.store.results import file_digest

_FORM = re.compile(r"([\w.:-]+)(?:\((.*)\))?$")
# The paper's released code averages logarithms and learns scores by an objective of its own.
# `stepped` is LBAggr as the paper writes it, with its rate and steps to choose.
OTHERS: dict[str, Callable[..., Any]] = {
    "log-mean": LogMean,
    "released": ReleasedAggregator,
    "stepped": SteppedAggregator,
}
EMBEDDINGS: dict[str, Callable[..., Any]] = {"sage": pretrained_gnn}


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """Name and options of a part.

    >>> parse("learned(solver=paper, sample=0.1)")
    ('learned', {'solver': 'paper', 'sample': 0.1})
    """
    match = _FORM.match(text)
    if match is None:
        raise ParameterError(f"can't read '{text}'.", hint="write name or name(option=value, ...).")
    options = {}
    for item in (match[2] or "").split(","):
        if item.strip():
            key, _, value = item.partition("=")
            options[key.strip()] = _value(value.strip())
    return match[1], options


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def is_own(name: str) -> bool:
    """Whether a name is the user's own ``module:attribute`` (``gcn:paper`` is a preset)."""
    module, _, attribute = name.partition("(")[0].partition(":")
    return bool(attribute) and attribute != "paper" and bool(module)


def shown(name: str) -> str:
    """A data set, model or method as tables print it."""
    if name.endswith(".npz"):
        return Path(name).stem
    return name.rsplit(":", maxsplit=1)[-1] if is_own(name) else name


def named(*parts: object) -> str:
    """A case in words: ``cora gcn blpa``."""
    return " ".join(shown(str(part)) for part in parts)


def load_own(name: str) -> Any:
    """Import what ``module:attribute`` names."""
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for step in attribute.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError) as error:
        raise ParameterError(
            f"can't import '{name}' ({error}).",
            hint="it must be module:attribute, with the module on the Python path.",
        ) from error
    return found


def model_of(text: str) -> Model:
    """A preset, a preset with other options (``gat:paper(dropout=0)``), or a user's factory."""
    name, options = parse(text)
    if is_own(name):
        found = load_own(name)
        return found if isinstance(found, CustomModel) else resolve_model(found)
    preset = resolve_model(name)
    return _made(partial(replace, preset), text, options) if options else preset


def partitioner_of(text: str) -> Partitioner:
    """A registered method with options, or a user's partitioner or function."""
    name, options = parse(text)
    if is_own(name):
        return resolve_partitioner(load_own(name))
    if options.get("embedding") in EMBEDDINGS:
        options["embedding"] = EMBEDDINGS[options["embedding"]]
    return _made(PARTITIONERS.get(name), text, options)


def aggregator_of(text: str) -> Aggregator:
    """A registered aggregation with options, or a user's aggregator.

    ``pooled`` is the pool of the routed shards and the closed-form members, as `GraphEraser` has it
    by default; ``closed-form`` is those members alone.
    """
    name, options = parse(text)
    if name in ("pooled", "closed-form"):
        return PooledAggregator(MEMBERS, shards=name == "pooled")
    if name in OTHERS:
        return _made(OTHERS[name], text, options)
    if is_own(name):
        found = load_own(name)
        own: Aggregator = found(**options) if isinstance(found, type) else found
        return own
    return _made(AGGREGATORS.get(name), text, options)


def _made(factory: Callable[..., Any], text: str, options: dict[str, Any]) -> Any:
    try:
        return partial(factory, **options)()
    except TypeError as error:
        raise ParameterError(f"'{text}' can't be made ({error}).") from error


def sources_of(names: Iterable[str]) -> dict[str, str]:
    """SHA-256 of the files that hold the user's own parts: when they change, so do the cells."""
    found = {}
    for name in names:
        if is_own(name):
            module = name.partition(":")[0]
            try:
                spec = importlib.util.find_spec(module)
            except ImportError:
                spec = None
            digest = None if spec is None or not spec.origin else file_digest(Path(spec.origin))
            if digest is not None:
                found[module] = digest
    return dict(sorted(found.items()))
