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


def valid_checkpoints(
    checkpoints: tuple[Checkpoint, ...], before: ShardTask, after: ShardTask
) -> tuple[Checkpoint, ...]:
    """Those checkpoints of a shard whose phases saw nothing of what has changed in it since."""
    slices = len(checkpoints) + 1
    return checkpoints[: _first_phase_that_differs(before.graph, after.graph, slices, after.seed)]


def _first_phase_that_differs(before: Graph, after: Graph, slices: int, seed: int) -> int:
    """The lowest phase whose training data is not the same in both graphs; else ``slices``.

    A node is first seen in its slice, an edge in the later slice of its ends.
    """
    ids = np.union1d(before.ids, after.ids)
    assigned = slice_of(ids, slices, seed)
    differs = ~(np.isin(ids, before.ids) & np.isin(ids, after.ids))
    both = ids[~differs]
    old, new = before.positions(both), after.positions(both)
    changed = before.y[old] != after.y[new]
    changed[(before.x[old] - after.x[new]).nonzero()[0]] = True
    differs[~differs] = changed

    def edges_of(graph: Graph) -> NDArray[np.int64]:
        u, v = np.searchsorted(ids, graph.edges).T
        return u * len(ids) + v

    edges = np.setxor1d(edges_of(before), edges_of(after), assume_unique=True)
    seen = np.maximum(assigned[edges // len(ids)], assigned[edges % len(ids)])
    return int(min([slices, *assigned[differs].tolist(), *seen.tolist()]))
