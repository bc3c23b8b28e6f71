"""Measured advice, with reasons: which partition, how many shards, which aggregation and expert.

In the spirit of the paper's guideline: where a network that sees the graph is hardly better than
one that doesn't, edges need not stay inside shards, and the partition need not read any data.
Otherwise the partition matters, and the method that keeps most neighbours together is advised.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation import WIDE, Ensemble, Expert
from grapheraser.errors import PartitionError
from grapheraser.graph import TEST, Graph
from grapheraser.models import Model, ModelSpec, ModuleFactory, resolve_model
from grapheraser.partition import partition_graph
from grapheraser.seeding import derive, generator
from grapheraser.training import ShardTask, TrainingConfig, resolve_engine, shard_posteriors

AUTO = "auto"
CANDIDATES = ("blpa", "bekm", "metis")
_FEWEST_NODES, _NODES_PER_CLASS, _MOST_SHARDS = 100, 15, 100
_HELD_OUT = 0.2


@dataclass(frozen=True)
class PartitionAdvice:
    """Which partition to use, what was measured, and why.

    Attributes:
        partition, num_shards: arguments of `GraphEraser`.
        mlp_f1: micro F1 on held-out training nodes of a network that doesn't see the graph.
        model_f1: the same of the model in question.
        margin: the gap between two such figures that chance alone could make (two standard errors).
        neighbours_kept: the share that each candidate partition keeps, where it was measured.
        reasons: one sentence for each choice.
    """

    partition: str
    num_shards: int
    mlp_f1: float
    model_f1: float
    margin: float
    neighbours_kept: dict[str, float]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Recommendation(PartitionAdvice):
    """The same with what to combine the shards by.

    Attributes:
        aggregation, global_expert: arguments of `GraphEraser`.
        expert_f1, wide_f1: micro F1 on held-out training nodes of the two kinds of global expert.
    """

    aggregation: str
    global_expert: bool | str
    expert_f1: float
    wide_f1: float

    def report(self) -> dict[str, Any]:
        """All of it in plain values, ready for JSON."""
        return asdict(self) | {"reasons": list(self.reasons)}


def recommend(
    graph: Graph,
    model: str | Model | ModuleFactory = "gcn",
    *,
    num_shards: int | None = None,
    epochs: int = 100,
    seed: int = 0,
    engine: str = "auto",
    device: str = "cpu",
) -> Recommendation:
    """Measure a graph and a model, and recommend how to shard them.

    One MLP, one model and both kinds of global expert learn from four fifths of the training nodes
    and are compared on the rest; test nodes are never looked at. With that the advice has read
    features, edges and labels, also where it is to use a partition that reads nothing.

    Args:
        graph: only its training nodes and the edges between them are looked at.
        model: as for `GraphEraser`.
        num_shards: k, where it is given already.
        epochs: of the two trainings.
        seed: of the held-out nodes, the trainings and the partitions.
        engine: as for `GraphEraser`.
        device: as for `GraphEraser`.
    """
    advice = recommend_partition(
        graph, model, num_shards=num_shards, epochs=epochs, seed=seed, engine=engine, device=device
    )
    training = graph.training_graph
    held_out = _held_out(training, seed)
    expert_f1, wide_f1 = (
        _expert_f1(training, held_out, expert, seed) for expert in (Expert(), Expert.wide())
    )
    wide = wide_f1 - expert_f1 > advice.margin
    expert = (
        f"a wide global expert: alone it has {wide_f1:.3f} on the held-out nodes, the usual one "
        f"{expert_f1:.3f}."
        if wide
        else f"the usual global expert: alone it has {expert_f1:.3f} on the held-out nodes, a wide "
        f"one {wide_f1:.3f}."
    )
    routing = "aggregation 'routed': the shards with a node's neighbours know most about it."
    return Recommendation(
        **{
            field.name: getattr(advice, field.name)
            for field in fields(advice)
            if field.name != "reasons"
        },
        aggregation="routed",
        global_expert=WIDE if wide else True,
        expert_f1=expert_f1,
        wide_f1=wide_f1,
        reasons=(*advice.reasons, routing, expert),
    )


def recommend_partition(
    graph: Graph,
    model: str | Model | ModuleFactory = "gcn",
    *,
    num_shards: int | None = None,
    epochs: int = 100,
    seed: int = 0,
    engine: str = "auto",
    device: str = "cpu",
) -> PartitionAdvice:
    """The part of `recommend` that is about the partition; arguments as there."""
    training = graph.training_graph
    if training.num_nodes < 5:
        raise PartitionError(
            f"a recommendation needs 5 training nodes (found {training.num_nodes})."
        )
    resolved = resolve_model(model)
    closed_form = isinstance(resolved, ModelSpec) and resolved.closed_form
    held_out = _held_out(training, seed)
    mlp_f1 = _f1(training, held_out, resolve_model("mlp"), epochs, seed, engine, device)
    model_f1 = (
        _expert_f1(training, held_out, Expert(), seed)
        if closed_form
        else _f1(training, held_out, resolved, epochs, seed, engine, device)
    )
    margin = 2 * math.sqrt(2 * max(model_f1 * (1 - model_f1), 0.01) / len(held_out))
    shards, shards_reason = _shards(training, 1 if closed_form else num_shards)
    gap_text = f"F1 on held-out nodes is {model_f1:.3f} with the graph and {mlp_f1:.3f} without"
    kept: dict[str, float] = {}
    if shards == 1:
        partition, reason = "hash", "one shard needs no partition"
    elif model_f1 - mlp_f1 <= margin or training.num_edges == 0:
        partition = "hash"
        reason = f"{gap_text}: edges need not be kept, so the shard can follow from the id alone"
    else:
        kept = _neighbours_kept(training, shards, seed)
        partition = max(kept, key=lambda name: kept[name])
        figures = ", ".join(f"{name} {share:.2f}" for name, share in kept.items())
        reason = (
            f"{gap_text}: the graph matters, and {partition} keeps the largest share of each "
            f"node's neighbours ({figures})"
        )
    reasons = (f"partition '{partition}': {reason}.", f"{shards} shards: {shards_reason}.")
    return PartitionAdvice(partition, shards, mlp_f1, model_f1, margin, kept, reasons)


def _shards(training: Graph, asked: int | None) -> tuple[int, str]:
    if asked is not None:
        return asked, "as asked for"
    size = max(_FEWEST_NODES, _NODES_PER_CLASS * training.num_classes)
    shards = int(np.clip(training.num_nodes // size, 1, _MOST_SHARDS))
    nodes = math.ceil(training.num_nodes / shards)
    return shards, (
        f"a request retrains {nodes} of {training.num_nodes} nodes, and a shard still sees "
        f"{nodes // training.num_classes} of each class on average"
    )


def _held_out(training: Graph, seed: int) -> NDArray[np.int64]:
    order = generator(seed, "guideline").permutation(training.num_nodes)
    return np.sort(order[: max(1, int(_HELD_OUT * training.num_nodes))])


def _f1(
    training: Graph,
    held_out: NDArray[np.int64],
    model: Model,
    epochs: int,
    seed: int,
    engine: str,
    device: str,
) -> float:
    rest = np.setdiff1d(np.arange(training.num_nodes), held_out)
    task = ShardTask(0, training.subgraph(training.ids[rest]), derive(seed, "guideline", "train"))
    weights = resolve_engine(engine, model, device).train(task, TrainingConfig(model, epochs))
    posteriors = shard_posteriors(model, [weights], training, held_out)[0]
    return float((posteriors.argmax(axis=1) == training.y[held_out]).mean())


def _expert_f1(training: Graph, held_out: NDArray[np.int64], expert: Expert, seed: int) -> float:
    role = training.role.copy()
    role[held_out] = TEST
    graph = replace(training, role=role)
    whole = partition_graph(graph, "hash", num_shards=1, seed=seed)
    ensemble = Ensemble(graph, whole, {}, resolve_model("mlp"), derive(seed, "guideline", "expert"))
    posteriors = expert.fit(ensemble).predict_proba(ensemble, held_out)
    return float((posteriors.argmax(axis=1) == training.y[held_out]).mean())


def _neighbours_kept(training: Graph, num_shards: int, seed: int) -> dict[str, float]:
    kept = {}
    for name in CANDIDATES:
        quality = partition_graph(training, name, num_shards=num_shards, seed=seed).quality
        kept[name] = 0.0 if quality is None else quality.neighbours_kept or 0.0
    return kept
