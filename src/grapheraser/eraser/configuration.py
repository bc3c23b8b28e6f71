"""A run's settings as plain JSON, and back.

A part that is registered under its name is described by the name and its options. Any other is a
user's own: its type is written down too, and who loads the run has to bring it along.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from grapheraser.aggregation import (
    AGGREGATORS,
    WIDE,
    Aggregator,
    Expert,
    LearnedAggregator,
    RoutedLearnedAggregator,
    WithExpert,
    named_expert,
    resolve_aggregator,
)
from grapheraser.aggregation.sample.membership import DEFAULT
from grapheraser.eraser.absent import LostPartitioner
from grapheraser.eraser.recommend import AUTO
from grapheraser.eraser.snapshot import Fitted
from grapheraser.eraser.state import Settings
from grapheraser.errors import ParameterError
from grapheraser.models import PRESETS, CustomModel, Model, ModelSpec, ModuleFactory
from grapheraser.partition import PARTITIONERS, Partitioner, resolve_partitioner
from grapheraser.partition.partitioning import FunctionPartitioner, PartitionFunction
from grapheraser.receipts import Ends
from grapheraser.registry import Registry

# Beside the settings in a saved run, and no part of their digest.
_ENDS = "history"
_PLAIN = str | int | float | bool | None


@dataclass(frozen=True)
class OwnParts:
    """What only the user has, handed in to load a run; None where nothing was."""

    model: Model | ModuleFactory | None = None
    partition: Partitioner | PartitionFunction | None = None
    aggregation: Aggregator | None = None


def describe(params: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """Everything that the result depends on, but for the data; executors have no part in it."""
    partitioner = settings.partitioner
    return _plain(
        {
            "model": settings.training.model.to_dict(),
            "partition": {"name": AUTO, "options": {}}
            if partitioner is None
            else _described(partitioner, PARTITIONERS),
            **_aggregation(settings.aggregator),
            "num_shards": int(params["num_shards"]),
            "epochs": settings.training.epochs,
            "seed": settings.seed,
            "device": settings.device,
            "gamma": float(params["gamma"]),
            "delta": params["delta"],
            "engine": settings.engine.name,
        }
    )


def parameters_of(configuration: dict[str, Any], own: OwnParts) -> dict[str, Any]:
    """The constructor's arguments from a description, and what the user brought along."""
    return {
        "model": _model_of(configuration["model"], own.model),
        "partition": _partition_of(configuration["partition"], own.partition),
        "aggregation": _aggregator_of(configuration, own.aggregation),
        **{
            key: configuration[key]
            for key in (
                *("num_shards", "epochs", "seed", "device", "gamma", "delta", "engine"),
                *("sample", "global_expert"),
            )
        },
    }


def with_ends(fitted: Fitted) -> dict[str, Any]:
    """The description of a run as it is kept: with the ends of its receipts beside the settings."""
    if fitted.ends is None:
        return fitted.configuration
    return {**fitted.configuration, _ENDS: asdict(fitted.ends)}


def without_ends(kept: dict[str, Any]) -> tuple[dict[str, Any], Ends | None]:
    """The settings, and the ends of the receipts where the run has them."""
    configuration = {key: value for key, value in kept.items() if key != _ENDS}
    try:
        return configuration, Ends(**kept[_ENDS])
    except (KeyError, TypeError):
        return configuration, None


def _model_of(described: dict[str, Any], model: Model | ModuleFactory | None) -> str | Model:
    if "factory" in described:
        if model is None:
            raise ParameterError(
                f"this run was trained with a module of its own ({described['factory']}).",
                hint="pass it again: GraphEraser.load(path, model=factory).",
            )
        if not isinstance(model, ModelSpec | CustomModel):
            options = {key: described[key] for key in described if key != "factory"}
            model = CustomModel(model, **options)
    else:
        model = ModelSpec(**described)
    return model.name if isinstance(model, ModelSpec) and model.name in PRESETS else model


def _partition_of(
    described: dict[str, Any], own: Partitioner | PartitionFunction | None
) -> str | Partitioner:
    if own is not None:
        partitioner = resolve_partitioner(own)
        _check_same("partition", described, _described(partitioner, PARTITIONERS))
        return partitioner
    if "type" in described:
        return LostPartitioner(described["name"], described["type"])
    return _registered(PARTITIONERS, described)


def _aggregation(aggregator: Aggregator) -> dict[str, Any]:
    """The shards' aggregation, and beside it the expert, as it would be if asked for by name."""
    inner: Aggregator | None = aggregator
    named: bool | str = False
    expert: dict[str, Any] = {}
    strangers: list[Any] = []
    if isinstance(aggregator, WithExpert):
        inner = aggregator.inner
        named = WIDE if aggregator.expert == Expert.wide() else True
        options = _options(aggregator) | ({} if named == WIDE else _options(aggregator.expert))
        expert = {name: value for name, value in options.items() if name not in ("inner", "expert")}
        whole = ((aggregator, WithExpert), (aggregator.expert, Expert))
        strangers = [part for part, ours in whole if type(part) is not ours]
    described: dict[str, Any] = {"name": aggregator.name, "options": {}}
    if inner is not None:
        described = _described(inner, AGGREGATORS)
    if strangers:
        described["type"] = _type_of(strangers[0])
    learns = isinstance(inner, LearnedAggregator | RoutedLearnedAggregator)
    return {
        "aggregation": described,
        "sample": getattr(inner, "sample", DEFAULT) if learns else DEFAULT,
        "global_expert": named,
        "expert": expert,
    }


def _aggregator_of(configuration: dict[str, Any], own: Aggregator | None) -> str | Aggregator:
    described, options = configuration["aggregation"], dict(configuration["expert"])
    if isinstance(own, WithExpert):
        found = _aggregation(own)
        _check_same("aggregation", described, found["aggregation"])
        _check_same("expert", {"options": options}, {"options": found["expert"]})
        return own
    if own is not None:
        _check_same("aggregation", described, _described(own, AGGREGATORS))
    elif "type" in described:
        raise ParameterError(
            f"this run was fitted with an aggregation of its own, '{described['name']}' "
            f"({described['type']}).",
            hint="pass it again: GraphEraser.load(path, aggregation=...).",
        )
    alone = own is None and configuration["global_expert"] and described["name"] not in AGGREGATORS
    inner = None if alone else own or _registered(AGGREGATORS, described)
    if isinstance(inner, str):
        named = {"sample": configuration["sample"], "global_expert": configuration["global_expert"]}
        again = _aggregation(resolve_aggregator(inner, **named))
        if all(again[key] == configuration[key] for key in again):
            return inner
        inner = AGGREGATORS.get(inner)()
    if not configuration["global_expert"] and inner is not None:
        return inner
    weight = {"weight": options.pop("weight")} if "weight" in options else {}
    expert = replace(named_expert(configuration["global_expert"]) or Expert(), **options)
    resolved = None if inner is None else resolve_aggregator(inner)
    return WithExpert(resolved, expert, **weight)


def _described(part: Any, registry: Registry[Any]) -> dict[str, Any]:
    """Name and options of a part, and its type where the registry can't make it again."""
    described: dict[str, Any] = {"name": part.name, "options": _options(part)}
    if not _can_be_made(part, described, registry):
        described["type"] = _type_of(part)
    return described


def _can_be_made(part: Any, described: dict[str, Any], registry: Registry[Any]) -> bool:
    if part.name not in registry:
        return False
    try:
        again = registry.get(part.name)(**described["options"])
    except TypeError:  # it was registered with a factory that takes no options
        return False
    return type(again) is type(part) and (not is_dataclass(part) or _same(again, part))


def _options(part: Any) -> dict[str, Any]:
    """Fields of a part that differ from their defaults and can be written down."""
    changed = {name: _plain(value) for name, value in _changed(part).items()}
    return {name: value for name, value in changed.items() if isinstance(value, _PLAIN)}


def _changed(part: Any) -> dict[str, Any]:
    if not is_dataclass(part):
        return {}
    defaults = {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(part)
        if field.init
    }
    values = {name: getattr(part, name) for name in defaults}
    return {name: value for name, value in values.items() if not _same(value, defaults[name])}


def _same(value: Any, other: Any) -> bool:
    try:
        return bool(value == other)
    except ValueError:  # arrays of a user's own part are never taken for equal
        return False


def _plain(value: Any) -> Any:
    """The same with Python's own numbers in place of numpy's."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _type_of(part: Any) -> str:
    """Where a part is defined, as ``module:qualname``."""
    what = part.function if isinstance(part, FunctionPartitioner) else type(part)
    return f"{what.__module__}:{getattr(what, '__qualname__', type(what).__qualname__)}"


def _check_same(part: str, expected: dict[str, Any], found: dict[str, Any]) -> None:
    """Refuse a part under another name or with other options than the run had."""
    for key in expected.keys() - {"type"}:
        if expected[key] != found[key]:
            raise ParameterError(
                f"'{part}' of GraphEraser.load must be what the run was fitted with, "
                f"{key} {expected[key]!r}. Got {found[key]!r}."
            )


def _registered(registry: Registry[Any], described: dict[str, Any]) -> Any:
    """The part as registered: its name, or an object where it has options."""
    if not described["options"]:
        return described["name"]
    return registry.get(described["name"])(**described["options"])
