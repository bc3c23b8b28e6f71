"""The settings of a link run: from `LinkEraser`'s arguments to parts, to plain JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from grapheraser.aggregation.base import Aggregator
from grapheraser.checks import one_of, whole
from grapheraser.engines import Engine, TrainingConfig, resolve_engine
from grapheraser.eraser.missing import MissingEngine, same_engine
from grapheraser.eraser.settings import Settings
from grapheraser.errors import GraphError, ParameterError
from grapheraser.execution import resolve_executor
from grapheraser.graph import TRAIN, Graph
from grapheraser.graph.labels import LabelKind
from grapheraser.links.facts.model import FACTS, FactModel
from grapheraser.links.facts.rules import num_codes
from grapheraser.links.graph import check_sides
from grapheraser.links.model import CLOSED_FORM, SHARDS, LinkModel
from grapheraser.links.shards import LinkEngine
from grapheraser.models import ModelSpec, resolve_model
from grapheraser.partition import resolve_partitioner

MEMBERS: dict[str, tuple[str, ...]] = {
    CLOSED_FORM: (CLOSED_FORM,),
    SHARDS: (SHARDS,),
    "both": (CLOSED_FORM, SHARDS),
}
DEFAULT_SAMPLE = 1000
DEFAULT_STEPS, MAX_STEPS = 2, 3
# Beyond any use; more would keep a request busy for years.
_MAX_EPOCHS = 1_000_000
# Arguments about shards, which closed-form members have no use for, with their defaults.
OF_SHARDS: dict[str, Any] = {
    "model": "gcn",
    "partition": "hash",
    "num_shards": 20,
    "epochs": 100,
    "width": 32,
    "device": "cpu",
}


def resolve(arguments: Mapping[str, Any], fitted_as: Mapping[str, Any] | None = None) -> Settings:
    """The parts that arguments of `LinkEraser` stand for.

    Args:
        arguments: by name.
        fitted_as: what the arguments of a loaded run were resolved to.
    """
    owner = "LinkEraser"
    members = MEMBERS[one_of("members", owner, arguments["members"], MEMBERS)]
    sample = DEFAULT_SAMPLE
    if arguments["sample"] != "auto":
        try:
            sample = whole("sample", owner, arguments["sample"], 1)
        except ParameterError:
            wanted = "a positive int or 'auto'"
            raise ParameterError.of("sample", owner, wanted, arguments["sample"]) from None
    sides = check_sides(arguments["sides"])
    whole("steps", owner, arguments["steps"], 1, MAX_STEPS)
    has_shards = SHARDS in members
    if has_shards:
        model = resolve_model(arguments["model"])
        if model.closed_form:
            wanted = "the name of a GNN, a ModelSpec or a module factory"
            raise ParameterError.of("model", owner, wanted, arguments["model"])
        whole("num_shards", owner, arguments["num_shards"], 2)
        whole("width", owner, arguments["width"], 2)
    else:
        _refuse_shards(arguments)
        model = ModelSpec(CLOSED_FORM)
    training = TrainingConfig(model, whole("epochs", owner, arguments["epochs"], 1, _MAX_EPOCHS))
    learner: Aggregator = LinkModel(members, sample, sides is not None)
    if fitted_as is not None and fitted_as["aggregation"].get("name") == FACTS:
        learner = fact_model(arguments)
    return Settings(
        training=training,
        partitioner=resolve_partitioner(arguments["partition"]),
        aggregator=learner,
        engine=_engine(training, str(arguments["device"]), fitted_as),
        executor=resolve_executor(arguments["executor"], str(arguments["device"])),
        seed=whole("seed", owner, arguments["seed"]),
        device=str(arguments["device"]),
    )


def fact_model(arguments: Mapping[str, Any]) -> FactModel:
    """Return what learns facts, from the arguments of `LinkEraser`."""
    usual = FactModel(steps=int(arguments["steps"]))
    if arguments["sample"] == "auto":
        return usual
    return replace(usual, sample=int(arguments["sample"]))


def fact_graph(graph: Graph, arguments: Mapping[str, Any]) -> Graph:
    """Return what a run of facts keeps of a typed graph; refuse what it can't be learned with.

    Labels and roles have no part in it: every node is a training node of class 0.
    """
    assert graph.types is not None
    for name, usual in (("members", CLOSED_FORM), ("sides", None)):
        if arguments[name] != usual:
            wanted = f"{usual!r} on a typed graph"
            raise ParameterError.of(name, "LinkEraser", wanted, arguments[name])
    if graph.num_edges == 0:
        raise GraphError(f"graph '{graph.name}' has no facts to learn from.")
    num_codes(2 * len(graph.types.relations), int(arguments["steps"]))
    role = np.full(graph.num_nodes, TRAIN, dtype=np.int8)
    y = np.zeros(graph.num_nodes, dtype=np.int64)
    inferred = tuple(item for item in graph.inferred if item != "classes")
    kind = LabelKind(count=1)
    return graph.with_fields(y=y, role=role, label_kind=kind, inferred=inferred)


def _refuse_shards(arguments: Mapping[str, Any]) -> None:
    for name, usual in OF_SHARDS.items():
        if type(arguments[name]) is not type(usual) or arguments[name] != usual:
            wanted = f"{usual!r} with members 'closed-form', which have no shards"
            raise ParameterError.of(name, "LinkEraser", wanted, arguments[name])


def _engine(config: TrainingConfig, device: str, fitted_as: Mapping[str, Any] | None) -> Engine:
    if config.model.closed_form:
        return resolve_engine("cpu", config, "cpu")
    if fitted_as is not None:
        engine = same_engine(fitted_as, config, device)
        return engine if isinstance(engine, MissingEngine) else LinkEngine.on(device)
    resolve_engine("pyg", config, device)  # refuses a device that is not there
    return LinkEngine.on(device)
