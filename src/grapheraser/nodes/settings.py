"""From the arguments of `GraphEraser` to the parts of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grapheraser.aggregation import (
    MEMBERS,
    SHARDS_ASKED,
    Aggregator,
    PooledAggregator,
    named,
    resolve_aggregator,
)
from grapheraser.checks import flag, one_of, real, whole
from grapheraser.engines import TrainingConfig, resolve_engine
from grapheraser.engines.engine import ENGINES
from grapheraser.engines.training import configure
from grapheraser.eraser.missing import same_engine
from grapheraser.eraser.settings import Settings
from grapheraser.errors import ParameterError
from grapheraser.execution import resolve_executor
from grapheraser.graph.roles import SHARDED_ROLES
from grapheraser.models import Model, resolve_model
from grapheraser.nodes.guideline import AUTO
from grapheraser.partition import resolve_partitioner

# What arguments about shards may be where a model has none.
_WITHOUT_SHARDS: dict[str, tuple[Any, ...]] = {
    "aggregation": ("routed",),
    "partition": ("hash",),
    "global_expert": (None, True),
    "halo": (False,),
    "shards_asked": (SHARDS_ASKED,),
}


def resolve(arguments: Mapping[str, Any], fitted_as: Mapping[str, Any] | None = None) -> Settings:
    """The parts that arguments of `GraphEraser` stand for.

    Args:
        arguments: by name.
        fitted_as: what the arguments of a loaded run were resolved to; its engine is the run's.
    """
    model = resolve_model(arguments["model"])
    for name in ("seed", "num_shards"):
        whole(name, "GraphEraser", arguments[name])
    training = training_config(arguments)
    device = str(arguments["device"])
    _check_capacity(arguments["gamma"], arguments["delta"])
    if fitted_as is None:
        engine = resolve_engine(arguments["engine"], training, device)
    else:
        one_of("engine", "GraphEraser", arguments["engine"], ("auto", *ENGINES))
        engine = same_engine(fitted_as, training, device)
    partition = arguments["partition"]
    return Settings(
        training=training,
        partitioner=None if partition == AUTO else resolve_partitioner(partition),
        aggregator=_aggregator(model, arguments),
        engine=engine,
        executor=resolve_executor(arguments["executor"], device),
        seed=int(arguments["seed"]),
        device=device,
        halo=flag("halo", "GraphEraser", arguments["halo"]),
        context=one_of("context", "GraphEraser", arguments["context"], tuple(SHARDED_ROLES)),
    )


def training_config(arguments: Mapping[str, Any]) -> TrainingConfig:
    """The model, and how its shards are trained."""
    model, epochs = arguments["model"], arguments["epochs"]
    epochs = None if epochs is None else whole("epochs", "GraphEraser", epochs, 1)
    named = isinstance(model, str)
    return configure(resolve_model(model), arguments["training"], epochs, named=named)


def _check_capacity(gamma: object, delta: object) -> None:
    """Check what can be said of a shard's capacity before there is a graph."""
    real("gamma", "GraphEraser", gamma, 0, 1)
    if delta is not None:
        whole("delta", "GraphEraser", delta, 1)


def _aggregator(model: Model, arguments: Mapping[str, Any]) -> Aggregator:
    sample, members = arguments["sample"], arguments["members"]
    if model.closed_form:
        for name, usual in _WITHOUT_SHARDS.items():
            if not any(type(arguments[name]) is type(v) and arguments[name] == v for v in usual):
                allowed = " or ".join(map(repr, usual))
                without = f"{allowed} with model '{model.name}', which has no shards"
                raise ParameterError.of(name, "GraphEraser", without, arguments[name])
        chosen = named(model.members if members is None else members)
        if not chosen:
            wanted = f"at least one of {', '.join(MEMBERS)} with model '{model.name}'"
            raise ParameterError.of("members", "GraphEraser", wanted, members)
        return PooledAggregator(chosen, shards=False, sample=sample)
    return resolve_aggregator(
        arguments["aggregation"],
        num_shards=arguments["num_shards"],
        sample=sample,
        global_expert=arguments["global_expert"],
        members=members,
        shards_asked=arguments["shards_asked"],
    )
