"""Train many shards: hand them to an executor, alone or in stacks, and collect their weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from grapheraser.errors import TrainingError
from grapheraser.execution import Executor, SlottedExecutor, held
from grapheraser.models import ModelSpec
from grapheraser.progress import progress
from grapheraser.training.engine import Engine, StackingEngine
from grapheraser.training.task import ShardTask, ShardWeights, TrainingConfig

# Weights of a built-in model that have grown beyond this have nothing to do with the data any more.
LARGEST_WEIGHT = 1e12


def train_shards(
    tasks: Sequence[ShardTask], engine: Engine, executor: Executor, config: TrainingConfig
) -> dict[int, ShardWeights]:
    """Train every task; returns the weights by shard id, in the tasks' order.

    The executor gets one task a shard, or from an engine that stacks shards one stack per slot.
    How they are spread has no part in the bits. A failure is a `TrainingError` that names each
    shard without weights.
    """
    shards = [task.shard for task in tasks]
    if isinstance(engine, StackingEngine):
        trained = _train_stacks(tasks, engine, executor, config)
    else:
        train = partial(engine.train, config=config)
        with progress("training shards", len(tasks)) as tick:
            weights = executor.map(train, tasks, names=shards, tick=tick)
        trained = dict(zip(shards, weights, strict=True))
    _refuse_diverged(trained, config)
    return {shard: trained[shard] for shard in shards}


def train_groups(
    groups: Iterable[Sequence[ShardTask]],
    engine: Engine,
    executor: Executor,
    config: TrainingConfig,
) -> dict[int, ShardWeights]:
    """Train one group of tasks after the other; one `TrainingError` names what failed in any."""
    trained: dict[int, ShardWeights] = {}
    failures: dict[int, BaseException] = {}
    hint: str | None = None
    for tasks in groups:
        try:
            trained |= train_shards(tasks, engine, executor, config)
        except TrainingError as error:
            failures |= error.failures
            hint = hint or error.hint
    if failures:
        raise TrainingError(failures, hint=hint)
    return trained


def _refuse_diverged(trained: Mapping[int, ShardWeights], config: TrainingConfig) -> None:
    """Weights that are not finite, or nearly so, would answer NaN for every node."""
    bound = LARGEST_WEIGHT if isinstance(config.model, ModelSpec) else math.inf
    failures: dict[int, BaseException] = {
        shard: FloatingPointError(f"diverged: {found} after {config.epochs} epochs")
        for shard, weights in sorted(trained.items())
        if (found := _diverged(weights, bound))
    }
    if failures:
        hint = (
            "lower the learning rate (training=ge.Training(learning_rate=...)), scale the "
            "features to about 1, or train for fewer epochs."
        )
        raise TrainingError(failures, hint=hint)


def _diverged(weights: ShardWeights, bound: float) -> str | None:
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
    """Every shard of a stack that failed has no weights; an engine may say more exactly why."""
    found: dict[int, BaseException] = {}
    for slot, error in failures.items():
        if isinstance(error, TrainingError):
            found |= error.failures
        else:
            found |= dict.fromkeys((task.shard for task in stacks[slot]), error)
    return dict(sorted(found.items()))
