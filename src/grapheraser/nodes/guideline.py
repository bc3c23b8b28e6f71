"""The paper's guideline: which partition suits shards that stand alone.

Where a network that sees the graph is hardly better than one that doesn't, edges need not stay
inside shards, and the partition need not read any data. Otherwise the partition matters, and the
method that keeps most neighbours together is advised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines import ShardTask, TrainingConfig, resolve_engine
from grapheraser.errors import PartitionError
from grapheraser.graph import Graph
from grapheraser.inference import shard_posteriors
from grapheraser.models import Model, ModuleFactory, resolve_model
from grapheraser.nodes.recommend import advised_shards, held_out_nodes, margin_of
from grapheraser.partition import partition_graph
from grapheraser.seeding import derive

AUTO = "auto"
CANDIDATES = ("blpa", "bekm", "metis")


@dataclass(frozen=True)
class PartitionAdvice:
    """A partition to use, what was measured, and why.

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
    """Advise on a partition for a graph and a model whose shards stand alone.

    One MLP and one model learn from four fifths of the training nodes and are compared on the
    rest; test nodes are never looked at. Arguments as for `recommend`.
    """
    resolved = resolve_model(model)
    if resolved.closed_form:
        raise PartitionError(f"model '{resolved.name}' has no shards to partition into.")
    training = graph.training_graph
    held_out = held_out_nodes(training, seed)
    mlp_f1 = _f1(training, held_out, resolve_model("mlp"), epochs, seed, engine, device)
    model_f1 = _f1(training, held_out, resolved, epochs, seed, engine, device)
    margin = margin_of(model_f1, len(held_out))
    shards, shards_reason = advised_shards(training, num_shards)
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
    config = TrainingConfig(model, epochs)
    weights = resolve_engine(engine, config, device).train(task, config)
    posteriors = shard_posteriors(model, [weights], training, held_out)[0]
    return float((posteriors.argmax(axis=1) == training.y[held_out]).mean())


def _neighbours_kept(training: Graph, num_shards: int, seed: int) -> dict[str, float]:
    kept = {}
    for name in CANDIDATES:
        quality = partition_graph(training, name, num_shards=num_shards, seed=seed).quality
        kept[name] = 0.0 if quality is None else quality.neighbours_kept or 0.0
    return kept
