"""Measured advice, with reasons: which model, members, partition and number of shards.

Every candidate learns from four fifths of the training nodes and is judged on the rest; test nodes
are never looked at. Shards that add no more to the closed-form members than chance could are not
advised: they only cost time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation import MEMBERS, Ensemble, PooledAggregator
from grapheraser.aggregation.members import BEST
from grapheraser.engines import ShardTask, TrainingConfig, resolve_engine
from grapheraser.errors import GraphError, PartitionError
from grapheraser.graph import TEST, UNLABELLED, Graph
from grapheraser.graph.labels import require_classes
from grapheraser.models import GNNS, Model, ModuleFactory, resolve_model
from grapheraser.partition import partition_graph
from grapheraser.reports.wording import plural
from grapheraser.seeding import derive, generator

CLOSED_FORM = "closed-form"
RICHER = "closed-form, richer"
_MIN_NODES, _NODES_PER_CLASS, _MAX_SHARDS = 100, 15, 100
_HELD_OUT = 0.2
# Shards have to add so much F1 to the closed-form members to be worth retraining them, and richer
# members to the usual ones, since a request takes them longer.
_WORTH = 0.002


@dataclass(frozen=True)
class Recommendation:
    """A configuration to use, what was measured, and why.

    Attributes:
        model, partition, num_shards, members: arguments of `GraphEraser`.
        f1: micro F1 on held-out training nodes, by candidate: ``closed-form``, the same with the
            members `interactions` and `surprises`, the pool with the shards of each model, and
            those shards alone (``gcn shards``).
        margin: the gap between two such figures that chance alone could make (two standard errors).
        reasons: one sentence for each choice.
    """

    model: str
    partition: str
    num_shards: int
    members: tuple[str, ...]
    f1: dict[str, float]
    margin: float
    reasons: tuple[str, ...]

    def report(self) -> dict[str, Any]:
        """Return all of it in plain values, ready for JSON."""
        return asdict(self) | {"reasons": list(self.reasons), "members": list(self.members)}


def recommend(
    graph: Graph,
    model: str | Model | ModuleFactory | None = None,
    *,
    num_shards: int | None = None,
    epochs: int = 100,
    seed: int = 0,
    engine: str = "auto",
    device: str = "cpu",
) -> Recommendation:
    """Measure a graph, and recommend how to fit it.

    The advice has read features, edges and labels, also where it names a partition that reads
    nothing.

    Args:
        graph: only its training nodes and the edges between them are looked at.
        model: the model of the shards, where it is fixed; None tries gcn, sage, gat and gin.
        num_shards: k, where it is fixed.
        epochs: of each shard's training.
        seed: of the held-out nodes, the trainings and the partition.
        engine: as for `GraphEraser`.
        device: as for `GraphEraser`.
    """
    require_classes(graph, "recommend")
    if graph.types is not None:
        raise GraphError("recommend is for graphs without types.", hint="use model='closed-form'.")
    training = graph.training_graph
    held_out = held_out_nodes(training, seed)
    shards, why = advised_shards(training, num_shards)
    split = _split(training, held_out)
    whole = partition_graph(split, "hash", num_shards=1, seed=seed)
    ensemble = Ensemble(split, whole, {}, resolve_model(CLOSED_FORM), seed)
    f1 = {
        name: _f1(PooledAggregator(members, shards=False), ensemble, held_out)
        for name, members in ((CLOSED_FORM, MEMBERS), (RICHER, BEST))
    }
    margin = margin_of(f1[CLOSED_FORM], len(held_out))
    more = f1[RICHER] - f1[CLOSED_FORM]
    members = BEST if more > max(_WORTH, margin) else MEMBERS
    reasons = (f"members {', '.join(BEST)}: they add {more:.3f} to the usual ones.",)
    candidates = _candidates(model)
    for name, candidate in candidates.items():
        args = shards, epochs, seed, engine, device
        f1 |= _measured(split, held_out, members, name, candidate, *args)
    names, fixed = list(candidates), model is not None
    advice = _advice(f1, margin, names, shards, why, members, fixed=fixed)
    return replace(advice, reasons=advice.reasons + reasons) if members is BEST else advice


def _candidates(model: str | Model | ModuleFactory | None) -> dict[str, Model]:
    if model is None:
        return {name: resolve_model(name) for name in GNNS}
    resolved = resolve_model(model)
    return {} if resolved.closed_form else {resolved.name: resolved}


def _advice(
    f1: dict[str, float],
    margin: float,
    names: Sequence[str],
    shards: int,
    why: str,
    members: tuple[str, ...],
    *,
    fixed: bool,
) -> Recommendation:
    alone = f1[RICHER if members is BEST else CLOSED_FORM]
    figures = f"F1 on held-out nodes is {alone:.3f} with the closed-form members alone"
    if not names:
        return Recommendation(CLOSED_FORM, "hash", 1, members, f1, margin, (f"{figures}.",))
    best = max(names, key=lambda name: f1[name])
    gain = f1[best] - alone
    if gain <= max(_WORTH, margin):
        chance = f", no more than chance could make ({margin:.3f})" if gain > _WORTH else ""
        beside = f"{f1[best]:.3f} with {best} shards beside them: shards add nothing here{chance}"
        reasons = [f"model 'closed-form': {figures} and {beside}."]
        if fixed:
            wanted = "if its shards are wanted for themselves"
            reasons.append(f"keep '{best}' {wanted}, {shards} of them: {why}.")
        return Recommendation(CLOSED_FORM, "hash", 1, members, f1, margin, tuple(reasons))
    chosen = (
        f"model '{best}': {figures}, and its shards add {gain:.3f}.",
        f"{plural(shards, 'shard')}: {why}.",
        "partition 'hash': a node's shard follows from its id alone, so receipts say 'exact'.",
    )
    return Recommendation(best, "hash", shards, members, f1, margin, chosen)


def advised_shards(training: Graph, asked: int | None) -> tuple[int, str]:
    """Return a number of shards, and why."""
    if asked is not None:
        return asked, "as asked for"
    size = max(_MIN_NODES, _NODES_PER_CLASS * training.num_classes)
    shards = int(np.clip(training.num_train // size, 1, _MAX_SHARDS))
    nodes, labelled = (math.ceil(n / shards) for n in (training.num_nodes, training.num_train))
    return shards, (
        f"a request retrains {nodes} of {training.num_nodes} nodes, and a shard still sees "
        f"{labelled // training.num_classes} of each class on average"
    )


def margin_of(f1: float, count: int) -> float:
    """The gap between two F1 on so many nodes that chance alone could make."""
    return 2 * math.sqrt(2 * max(f1 * (1 - f1), 0.01) / count)


def held_out_nodes(training: Graph, seed: int) -> NDArray[np.int64]:
    """Positions of a fifth of the training nodes, to judge on; context nodes have no label."""
    if training.num_train < 5:
        raise PartitionError(
            f"a recommendation needs 5 training nodes (found {training.num_train})."
        )
    labelled = np.flatnonzero(training.y != UNLABELLED)
    order = generator(seed, "guideline").permutation(len(labelled))
    return np.sort(labelled[order[: max(1, int(_HELD_OUT * len(labelled)))]])


def _split(training: Graph, held_out: NDArray[np.int64]) -> Graph:
    role = training.role.copy()
    role[held_out] = TEST
    return training.with_fields(role=role)


def _measured(
    graph: Graph,
    held_out: NDArray[np.int64],
    members: tuple[str, ...],
    name: str,
    model: Model,
    num_shards: int,
    epochs: int,
    seed: int,
    engine: str,
    device: str,
) -> dict[str, float]:
    """F1 of the pool with this model's shards, and of the shards alone."""
    partition = partition_graph(graph, "hash", num_shards=num_shards, seed=seed)
    config = TrainingConfig(model, epochs)
    trainer = resolve_engine(engine, config, device)
    shards = {
        int(shard): trainer.train(
            ShardTask(
                int(shard),
                graph.trained_subgraph(partition.members(int(shard))),
                derive(seed, "guideline", "train", int(shard)),
            ),
            config,
        )
        for shard in partition.shard_ids
    }
    ensemble = Ensemble(graph, partition, shards, model, seed)
    return {
        name: _f1(PooledAggregator(members), ensemble, held_out),
        f"{name} shards": _f1(PooledAggregator(()), ensemble, held_out),
    }


def _f1(aggregator: PooledAggregator, ensemble: Ensemble, held_out: NDArray[np.int64]) -> float:
    posteriors = aggregator.fit(ensemble).predict_proba(ensemble, held_out)
    return float((posteriors.argmax(axis=1) == ensemble.graph.y[held_out]).mean())
