"""Training a shard in slices, so that forgetting need not start at the first epoch.

Every node of a shard has a slice, a keyed hash of its id. Training has one phase per slice: phase
j trains on the nodes of slices 0 to j and the edges between them, and starts from where phase
j - 1 ended. The epochs are divided evenly among the phases. After every phase but the last a
checkpoint is kept. A change of the data leaves all checkpoints valid whose phases did not see it:
training goes on from the last of them, and ends in the bits of training from the start.

Feature columns that a phase is the first to see have the initial weights that they would have had
from the start, and no moments yet. A phase without nodes trains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.graph.csr import slices_of
from grapheraser.models import ModelSpec
from grapheraser.seeding import derive, keyed_hash
from grapheraser.training.engine import Engine, SlicingEngine
from grapheraser.training.task import Checkpoint, Phase, ShardTask, ShardWeights, TrainingConfig


@dataclass(frozen=True, eq=False)
class SlicedTask:
    """A shard to train in slices.

    Attributes:
        task: the whole shard.
        slices: how many.
        kept: valid checkpoints of the first phases. They spare work; the result is the same
            without them.
    """

    task: ShardTask
    slices: int
    kept: tuple[Checkpoint, ...] = ()


def check_slices(slices: int, config: TrainingConfig, engine: Engine) -> None:
    """Refuse a number of slices that makes no sense, or that the engine can't train in."""
    whole = isinstance(slices, int | np.integer) and not isinstance(slices, bool)
    if not whole or not 1 <= slices <= config.epochs:
        constraint = f"an int in [1, {config.epochs}] (at most one slice per epoch)"
        raise ParameterError.of("slices", "GraphEraser", constraint, slices)
    if slices > 1 and isinstance(config.model, ModelSpec) and config.model.closed_form:
        raise ParameterError(
            f"model '{config.model.kind}' is solved for, not trained: there is nothing to slice. "
            f"'slices' of GraphEraser is {slices}."
        )
    if slices > 1 and not isinstance(engine, SlicingEngine):
        raise ParameterError(
            f"engine '{engine.name}' can't train in slices. 'slices' of GraphEraser is {slices}.",
            hint="use engine='cpu' with a built-in model, or slices=1.",
        )


def slice_of(ids: NDArray[np.int64], slices: int, seed: int) -> NDArray[np.int64]:
    """The slice of every node; each depends on its own id and the shard's seed alone."""
    return (keyed_hash(ids, derive(seed, "slices")) % np.uint64(slices)).astype(np.int64)


def epochs_of(phase: int, slices: int, epochs: int) -> range:
    """The epochs of one phase; where they don't divide evenly, some later phases have one more."""
    return range(epochs * phase // slices, epochs * (phase + 1) // slices)


def train_sliced(
    sliced: SlicedTask, *, engine: SlicingEngine, config: TrainingConfig
) -> ShardWeights:
    """Train one shard phase by phase, from the last checkpoint that was kept."""
    task, slices, kept = sliced.task, sliced.slices, sliced.kept
    assigned = slice_of(task.graph.ids, slices, task.seed)
    phases = []
    for phase in range(len(kept), slices):
        seen = assigned <= phase
        graph = task.graph if seen.all() else task.graph.subgraph(task.graph.ids[seen])
        epochs = epochs_of(phase, slices, config.epochs)
        phases.append(Phase(replace(task, graph=graph), epochs))
    weights = engine.train_phases(phases, config, kept[-1] if kept else None)
    return replace(weights, checkpoints=(*kept, *weights.checkpoints))


@dataclass(frozen=True, eq=False)
class ShardData:
    """What one shard was, or is, trained on.

    Attributes:
        graph: the whole graph.
        members: sorted ids of the shard's nodes.
    """

    graph: Graph
    members: NDArray[np.int64]


def valid_checkpoints(
    checkpoints: tuple[Checkpoint, ...],
    before: ShardData,
    after: ShardData,
    *,
    touched: NDArray[np.int64],
    seed: int,
) -> tuple[Checkpoint, ...]:
    """Those checkpoints of a shard whose phases saw nothing of what has changed in it since.

    A node is first seen in its slice, an edge in the later slice of its ends.

    Args:
        checkpoints: all of the shard's, as made from ``before``.
        before: the shard as it was then.
        after: the shard as it is now.
        touched: sorted ids of all nodes that differ in neighbours or features.
        seed: the shard's.
    """
    slices = len(checkpoints) + 1
    came_or_went = np.setxor1d(before.members, after.members, assume_unique=True)
    stayed = np.intersect1d(np.intersect1d(touched, before.members), after.members)
    other_rows = stayed[_rows_differ(before.graph, after.graph, stayed)]
    nodes = slice_of(np.concatenate([came_or_went, other_rows]), slices, seed)
    ends = slice_of(_other_edges(before, after, stayed), slices, seed).max(axis=1, initial=0)
    return checkpoints[: min([slices, *nodes.tolist(), *ends.tolist()])]


def _rows_differ(before: Graph, after: Graph, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each node has other features or another label in one graph than in the other."""
    old, new = before.positions(nodes), after.positions(nodes)
    lengths = np.diff(before.x.indptr)[old]
    differs = (lengths != np.diff(after.x.indptr)[new]) | (before.y[old] != after.y[new])
    same = np.flatnonzero(~differs)
    here = slices_of(before.x.indptr.astype(np.int64), old[same])
    there = slices_of(after.x.indptr.astype(np.int64), new[same])
    unequal = before.x.indices[here] != after.x.indices[there]
    unequal |= before.x.data[here] != after.x.data[there]
    differs[np.repeat(same, lengths[same])[unequal]] = True
    return differs


def _other_edges(
    before: ShardData, after: ShardData, nodes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Pairs ``[m, 2]`` of ids: edges inside of the shard that only one of both graphs has.

    Edges of ``nodes`` that is, seen from these; all others are the same or go with a node.
    """
    members = np.union1d(before.members, after.members)

    def edges_of(graph: Graph) -> NDArray[np.int64]:
        rows = graph.positions(nodes)
        owners = np.repeat(np.arange(len(nodes)), graph.degree[rows])
        others = graph.ids[graph.indices[slices_of(graph.indptr, rows)]]
        places = np.minimum(np.searchsorted(members, others), len(members) - 1)
        inside = members[places] == others
        return owners[inside] * len(members) + places[inside]

    found = np.setxor1d(edges_of(before.graph), edges_of(after.graph), assume_unique=True)
    return np.stack([nodes[found // len(members)], members[found % len(members)]], axis=1)
