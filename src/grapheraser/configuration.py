"""A run's settings as plain JSON, and back."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from grapheraser.aggregation import (
    AGGREGATORS,
    WIDE,
    Aggregator,
    Expert,
    WithExpert,
    named_expert,
    resolve_aggregator,
)
from grapheraser.aggregation.sample import DEFAULT
from grapheraser.errors import ParameterError
from grapheraser.guideline import AUTO
from grapheraser.models import PRESETS, CustomModel, Model, ModelSpec, ModuleFactory
from grapheraser.partition import PARTITIONERS, resolve_partitioner
from grapheraser.state import Settings


def describe(params: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """Everything that the result depends on, but for the data; executors have no part in it."""
    return {
        "model": settings.training.model.to_dict(),
        "partition": _described(params["partition"]),
        **_aggregation(settings.aggregator),
        "num_shards": int(params["num_shards"]),
        "epochs": settings.training.epochs,
        "seed": settings.seed,
        "device": params["device"],
        "gamma": float(params["gamma"]),
        "delta": params["delta"],
        "engine": settings.engine.name,
        # Only where there are any: a run without slices is described as it always was.
        **({"slices": settings.slices} if settings.slices > 1 else {}),
    }


def parameters_of(
    configuration: dict[str, Any], model: Model | ModuleFactory | None
) -> dict[str, Any]:
    """The constructor's arguments from a description; ``model`` stands for a user's own module."""
    described = configuration["model"]
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
    preset = isinstance(model, ModelSpec) and model.name in PRESETS
    return {
        "model": model.name if preset else model,
        "partition": _registered(PARTITIONERS, configuration["partition"]),
        "aggregation": _aggregator_of(configuration),
        **{
            key: configuration[key]
            for key in (
                *("num_shards", "epochs", "seed", "device", "gamma", "delta", "engine"),
                *("sample", "global_expert"),
            )
        },
        "slices": configuration.get("slices", 1),
    }


def _aggregation(aggregator: Aggregator) -> dict[str, Any]:
    """The shards' aggregation, and beside it the expert, as it would be if asked for by name."""
    inner: Aggregator | None = aggregator
    named: bool | str = False
    options: dict[str, Any] = {}
    if isinstance(aggregator, WithExpert):
        inner = aggregator.inner
        named = WIDE if aggregator.expert == Expert.wide() else True
        own = {} if named == WIDE else _options(aggregator.expert)
        options = {name: value for name, value in _options(aggregator).items() if name != "inner"}
        options |= own
    return {
        "aggregation": {"name": aggregator.name, "options": _options(inner)},
        "sample": getattr(inner, "sample", DEFAULT),
        "global_expert": named,
        "expert": options,
    }


def _aggregator_of(configuration: dict[str, Any]) -> Any:
    aggregation = _registered(AGGREGATORS, configuration["aggregation"])
    options = dict(configuration["expert"])
    if not options:
        return aggregation
    weight = {"weight": options.pop("weight")} if "weight" in options else {}
    expert = replace(named_expert(configuration["global_expert"]) or Expert(), **options)
    return WithExpert(resolve_aggregator(aggregation), expert, **weight)


def _described(partition: Any) -> dict[str, Any]:
    if partition == AUTO:
        return {"name": AUTO, "options": {}}
    partitioner = resolve_partitioner(partition)
    return {"name": partitioner.name, "options": _options(partitioner)}


def _options(part: Any) -> dict[str, Any]:
    """Fields of a part that differ from their defaults and can be written down."""
    if not is_dataclass(part):
        return {}
    options = {field.name: (getattr(part, field.name), field.default) for field in fields(part)}
    return {
        name: value
        for name, (value, default) in options.items()
        if value != default and isinstance(value, str | int | float | bool | None)
    }


def _registered(registry: Any, described: dict[str, Any]) -> Any:
    """The part as registered, or its bare name where it was the user's own."""
    if described["name"] not in registry:
        return described["name"]
    if not described["options"]:
        return described["name"]
    return registry.get(described["name"])(**described["options"])
