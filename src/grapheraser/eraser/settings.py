"""The settings of a run: from the constructor's arguments to parts, to plain JSON, and back.

A task's `resolve` turns arguments into parts. `describe` writes both down: the arguments as given,
and what they were resolved to. `restore` turns a description into arguments again, with the parts
that only the user has; `check` refuses them where they resolve to something else than the run was
fitted with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from grapheraser.aggregation import AGGREGATORS, Aggregator, PooledAggregator
from grapheraser.engines import EarlyStopping, Engine, Training, TrainingConfig, resolve_engine
from grapheraser.engines.engine import PROCESSOR
from grapheraser.engines.task import HOOKS, SAMPLING
from grapheraser.environment import versions
from grapheraser.eraser.missing import MissingEngine, MissingPartitioner
from grapheraser.eraser.replay import REPLAY
from grapheraser.errors import CorruptRunError, ParameterError
from grapheraser.execution import Executor, resolve_executor
from grapheraser.graph import Graph
from grapheraser.graph.roles import DEFAULT_CONTEXT
from grapheraser.models import CustomModel, ModelSpec, RelationalModel
from grapheraser.partition import PARTITIONERS, Partitioner, resolve_partitioner
from grapheraser.partition.halo import halo_key
from grapheraser.partition.partitioning import FunctionPartitioner
from grapheraser.registry import name_of
from grapheraser.reports.wording import listed
from grapheraser.seeding import derive

_FORM = {"model": "factory", "aggregation": "...", "training": "ge.Training(...)"}
_PLAIN = str | int | float | bool | None
# Classes that a description can be turned into again; any other is a user's own.
_PARTS: dict[str, type[Any]] = {
    part.__name__: part
    for part in (
        *(ModelSpec, CustomModel, RelationalModel, FunctionPartitioner, PooledAggregator),
        *(Training, EarlyStopping),
        *(type(AGGREGATORS.get(name)()) for name in AGGREGATORS),
        *(type(PARTITIONERS.get(name)()) for name in PARTITIONERS),
    )
}


@dataclass(frozen=True)
class Settings:
    """The arguments of an eraser, resolved: everything but the data."""

    training: TrainingConfig  # the model and how each shard of it is trained
    # What partitions the graph; None where that depends on the graph (``auto``).
    partitioner: Partitioner | None
    aggregator: Aggregator  # what combines the shards
    engine: Engine  # what trains a shard
    executor: Executor  # where shards are trained; has no part in the results
    seed: int  # every random number follows from it
    device: str = "cpu"  # where the engine trains
    halo: bool = False  # whether shards see the features of neighbours in other shards
    context: str = DEFAULT_CONTEXT  # which nodes are in shards beside the training nodes
    # How training a shard twice went when the run was fitted; see `eraser.replay`.
    replay: str | None = None

    def shard_seed(self, shard: int) -> int:
        """The seed of one shard's training; no other shard or node has a part in it."""
        return derive(self.seed, "train", shard)

    @property
    def halo_key(self) -> int | None:
        """The key that chooses the neighbours in a halo; None where there is none."""
        return halo_key(self.seed) if self.halo else None

    @property
    def own_code(self) -> tuple[str, ...]:
        """Names of the parts that train or combine and are code of the user's own."""
        return (*self.training.own_code, *_own_types(_described(self.aggregator)))

    def aggregation_names(self, graph: Graph) -> dict[str, Any]:
        """Return the name and members of the aggregation on a graph, as receipts state them."""
        if isinstance(self.aggregator, PooledAggregator):
            members = self.aggregator.members_on(graph)
        else:
            members = getattr(self.aggregator, "members", ())
        return {"name": self.aggregator.name, "members": list(members)}


def closed_form(learner: Any, *, seed: int, executor: str | Executor = "local") -> Settings:
    """Return the settings of a task without shards, whose learner does all the work."""
    training = TrainingConfig(ModelSpec("closed-form"), epochs=1)
    return Settings(
        training=training,
        partitioner=resolve_partitioner("hash"),
        aggregator=learner,
        engine=resolve_engine("cpu", training, "cpu"),
        executor=resolve_executor(executor, "cpu"),
        seed=seed,
    )


# -- to JSON and back ---------------------------------------------------------------------------


def describe(arguments: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Everything that the result depends on, but for the data; executors have no part in it."""
    given = {name: value for name, value in arguments.items() if name != "executor"}
    return {
        "arguments": {name: _described(value) for name, value in given.items()},
        "resolved": {
            "model": _described(settings.training.model),
            "training": _training(settings.training),
            "partition": _described(settings.partitioner),
            "aggregation": _described(settings.aggregator),
            "engine": settings.engine.name,
            "device": settings.device,
            **({} if settings.replay is None else {REPLAY: settings.replay}),
        },
    }


def restore(configuration: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments from a description, and from the parts that the user brought.

    ``own`` may have ``model``, ``partition``, ``aggregation`` and, of a run that has one,
    ``training``.
    """
    # Runs from before there was a Training were fitted without one.
    usual = {name: None for name in ("training",) if name in own}
    arguments = usual | configuration["arguments"]
    for name, part in own.items():
        if part is None and name not in arguments:  # a run from before there was the argument
            continue
        arguments[name] = _restored(name, arguments[name], part)
    return arguments


def check(configuration: Mapping[str, Any], settings: Settings, own: Mapping[str, Any]) -> None:
    """Refuse parts that are not what the run was fitted with; see `restore`."""
    found = describe({}, settings)["resolved"]
    for name, brought in own.items():
        if name == "training" and name not in configuration["resolved"]:
            continue
        expected, got = _without_types(configuration["resolved"][name]), _without_types(found[name])
        # A user's module may have moved; whether the weights go into it is checked elsewhere.
        stands_in = name == "partition" and isinstance(settings.partitioner, MissingPartitioner)
        if expected == got or stands_in or (name == "model" and brought):
            continue
        if brought is None:
            raise CorruptRunError(f"its {name} is not what it was fitted with: {expected}.")
        raise ParameterError(
            f"'{name}' of GraphEraser.load must be what the run was fitted with, {expected}. "
            f"Got {got}."
        )


def _described(part: Any) -> Any:
    """A plain value as it is; a part of ours by its class and options; a user's own by its type."""
    part = part.item() if isinstance(part, np.generic) else part
    if isinstance(part, _PLAIN):
        return part
    if isinstance(part, list | tuple):
        return [_described(item) for item in part]
    changed = part.keywords if isinstance(part, partial) else _changed(part)
    options = {name: _described(value) for name, value in changed.items()}
    if _PARTS.get(type(part).__name__) is type(part):
        return {"part": type(part).__name__, "options": options}
    return {
        "type": name_of(part),
        "name": str(getattr(part, "name", name_of(part).partition(":")[2])),
        "options": {name: value for name, value in options.items() if isinstance(value, _PLAIN)},
    }


def _training(config: TrainingConfig) -> dict[str, Any]:
    names = ["epochs", "optimizer", "loss", "class_weights", "early_stopping"]
    # Runs from before there were these say nothing of them.
    names += [name for name in (*SAMPLING, *HOOKS) if getattr(config, name) is not None]
    return {name: _described(getattr(config, name)) for name in names}


def _changed(part: Any) -> dict[str, Any]:
    """Fields of a part that differ from their defaults."""
    if not is_dataclass(part) or isinstance(part, type):
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


def _restored(name: str, described: Any, own: Any) -> Any:
    """The argument that a description stands for, or what the user brought in its place."""
    whole_part = name == "training" or _described(own) == described or not _has_own(described)
    if own is not None and whole_part:
        return own
    return _rebuilt(name, described, own)


def _rebuilt(name: str, described: Any, own: Any) -> Any:
    """The part itself; ``own`` takes the place of a user's part in it."""
    if isinstance(described, list):
        return tuple(_rebuilt(name, item, own) for item in described)
    if not isinstance(described, dict):
        return described
    if "type" in described:
        return _missing(name, described) if own is None else own
    options = {key: _rebuilt(name, value, own) for key, value in described["options"].items()}
    return _PARTS[described["part"]](**options)


def _has_own(described: Any) -> bool:
    if not isinstance(described, dict):
        return False
    return "type" in described or any(map(_has_own, described["options"].values()))


def _own_types(described: Any) -> list[str]:
    """The names of parts in a description that come from outside this package."""
    if not isinstance(described, dict):
        return []
    own = not described.get("type", "grapheraser.").startswith("grapheraser.")
    inner = [name for part in described["options"].values() for name in _own_types(part)]
    return [described["name"], *inner] if own else inner


def _missing(name: str, described: dict[str, Any]) -> MissingPartitioner:
    if name == "partition":
        return MissingPartitioner(described["name"], described["type"])
    raise ParameterError(
        f"this run was fitted with '{name}' of its own, '{described['name']}' "
        f"({described['type']}).",
        hint=f"pass it again: GraphEraser.load(path, {name}={_FORM[name]}).",
    )


def _without_types(described: Any) -> Any:
    if not isinstance(described, dict):
        return described
    return {key: _without_types(value) for key, value in described.items() if key != "type"}


# All that the bits of some engine depend on.
_OF_ENGINES = ("torch", "torch_geometric", "triton", "gpu", PROCESSOR)


def made_with(settings: Settings, before: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what a state made here depends on: versions, and the processor where it matters.

    ``before`` is that of the state that it was made from: without its engine a run keeps all its
    shards, and what trained them.
    """
    found = versions(settings.device)
    if before is not None and isinstance(settings.engine, MissingEngine):
        return {**found, **{name: before[name] for name in _OF_ENGINES if name in before}}
    processor = getattr(settings.engine, PROCESSOR, None)
    return found if processor is None else {**found, PROCESSOR: processor}


def trained_elsewhere(settings: Settings, made: Mapping[str, str]) -> str | None:
    """Say what the shards of a run were trained with and what there is here; None: the same.

    ``made`` is what its state was made with. Runs of earlier versions don't name the processor: it
    may be another.
    """
    if settings.training.model.closed_form:
        return None
    here = made_with(settings)
    other = [name for name in settings.engine.depends_on if made.get(name) != here.get(name)]
    if not other:
        return None
    there = listed([f"{name} {made.get(name, 'not recorded')}" for name in other])
    return f"{there} there, {listed([f'{name} {here[name]}' for name in other])} here"
