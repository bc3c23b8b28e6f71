"""Train many shards: hand them to an executor, alone or in stacks, and collect their weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from grapheraser.engines.engine import Engine, StackingEngine
from grapheraser.engines.task import ShardTask, ShardWeights, TrainingConfig
from grapheraser.errors import TrainingError
from grapheraser.execution import Executor, SlottedExecutor, held
from grapheraser.models import ModelSpec
from grapheraser.progress import progress

# Weights of a built-in model that have grown beyond this have nothing to do with the data any more.
LARGEST_WEIGHT = 1e12
_DIVERGED_HINT = (
    "lower the learning rate (training=ge.Training(learning_rate=...)), scale the features to "
    "about 1, or train for fewer epochs."
)


def train_shards(
    groups: Iterable[Sequence[ShardTask]],
    engine: Engine,
    executor: Executor,
    config: TrainingConfig,
) -> dict[int, ShardWeights]:
    """Train one group of tasks after the other; returns weights by shard id, in the tasks' order.

    The executor gets one task a shard, or from an engine that stacks shards one stack per slot.
    How they are spread has no part in the bits. One `TrainingError` names each shard of any group
    that has no weights.
    """
    trained: dict[int, ShardWeights] = {}
    failures: dict[int, BaseException] = {}
    hint: str | None = None
    train = partial(engine.train, config=config)
    for tasks in groups:
        shards = [task.shard for task in tasks]
        try:
            if isinstance(engine, StackingEngine):
                found = _train_stacks(tasks, engine, executor, config)
            else:
                with progress("training shards", len(tasks)) as tick:
                    weights = executor.map(train, tasks, names=shards, tick=tick)
                found = dict(zip(shards, weights, strict=True))
        except TrainingError as error:
            failures |= error.failures
            hint = hint or error.hint
            continue
        if diverged := _diverged(found, config):
            failures |= diverged
            hint = hint or _DIVERGED_HINT
        trained |= {shard: found[shard] for shard in shards}
    if failures:
        raise TrainingError(failures, hint=hint)
    return trained


def _diverged(
    trained: dict[int, ShardWeights], config: TrainingConfig
) -> dict[int, FloatingPointError]:
    """Find weights that are not finite, or nearly so: they would answer NaN for every node."""
    bound = LARGEST_WEIGHT if isinstance(config.model, ModelSpec) else math.inf
    return {
        shard: FloatingPointError(f"diverged: {found} after {config.epochs} epochs")
        for shard, weights in sorted(trained.items())
        if (found := _overgrown(weights, bound))
    }


def _overgrown(weights: ShardWeights, bound: float) -> str | None:
    """Name a tensor that is not finite or beyond the bound, and say so in words."""
    if name := weights.not_finite:
        return f"{name!r} is not finite"
    for name, tensor in weights.tensors.items() if bound < math.inf else ():
        largest = float(np.abs(tensor).max(initial=0)) if "running_" not in name else 0.0
        if largest > bound:
            return f"{name!r} has grown to {largest:g}"
    return None


def _train_stacks(
    tasks: Sequence[ShardTask], engine: StackingEngine, executor: Executor, config: TrainingConfig
) -> dict[int, ShardWeights]:
    """Train tasks in one stack per slot of the executor."""
    slots = min(1, len(tasks))
    train = partial(engine.train_stack, config=config)
    with held(executor):
        if len(tasks) > 1 and isinstance(executor, SlottedExecutor):
            slots = min(executor.slots(), len(tasks))
        stacks = [tasks[slot::slots] for slot in range(slots)]
        try:
            with progress("training stacks of shards", slots) as tick:
                results = executor.map(train, stacks, names=range(slots), tick=tick)
        except TrainingError as error:
            raise TrainingError(_by_shard(stacks, error.failures)) from error
    return {
        task.shard: weights
        for stack, trained in zip(stacks, results, strict=True)
        for task, weights in zip(stack, trained, strict=True)
    }


def _by_shard(
    stacks: Sequence[Sequence[ShardTask]], failures: dict[int, BaseException]
) -> dict[int, BaseException]:
    """Blame a failure on every shard of its stack, unless the engine says which shards failed."""
    found: dict[int, BaseException] = {}
    for slot, error in failures.items():
        if isinstance(error, TrainingError):
            found |= error.failures
        else:
            found |= dict.fromkeys((task.shard for task in stacks[slot]), error)
    return dict(sorted(found.items()))
