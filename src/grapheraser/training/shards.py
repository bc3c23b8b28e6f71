"""Train many shards: hand them to an executor, alone or in stacks, and collect their weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from grapheraser.errors import TrainingError
from grapheraser.execution import Executor, SlottedExecutor
from grapheraser.progress import progress
from grapheraser.training.engine import Engine, StackingEngine
from grapheraser.training.task import ShardTask, ShardWeights, TrainingConfig


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
        return {shard: trained[shard] for shard in shards}
    train = partial(engine.train, config=config)
    with progress("training shards", len(tasks)) as tick:
        weights = executor.map(train, tasks, names=shards, tick=tick)
    return dict(zip(shards, weights, strict=True))


def _train_stacks(
    tasks: Sequence[ShardTask], engine: StackingEngine, executor: Executor, config: TrainingConfig
) -> dict[int, ShardWeights]:
    slots = min(1, len(tasks))
    if len(tasks) > 1 and isinstance(executor, SlottedExecutor):
        slots = min(executor.slots(), len(tasks))
    stacks = [tasks[slot::slots] for slot in range(slots)]
    train = partial(engine.train_stack, config=config)
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
