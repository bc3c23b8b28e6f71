"""Training many shards: the same weights however an executor spreads them, and every failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

import grapheraser as ge
from grapheraser.engines import Engine, ShardTask, ShardWeights, TrainingConfig, resolve_engine
from grapheraser.engines.shards import train_shards
from grapheraser.errors import GraphError, TrainingError
from grapheraser.execution import Executor, LocalExecutor, ProcessExecutor
from grapheraser.models import PRESETS
from grapheraser.seeding import derive

CONFIG = TrainingConfig(PRESETS["gcn"], epochs=2)
CPU = resolve_engine("cpu", CONFIG, "cpu")
SHARDS = [7, 1, 4, 2, 9]


@dataclass(frozen=True)
class Stacking:
    """An engine that takes many shards at once and notes which; some may be beyond it."""

    beyond: frozenset[int] = frozenset()
    says_which: bool = False
    stacks: list[list[int]] = field(default_factory=list)
    name: str = "stacking"
    depends_on: tuple[str, ...] = ()

    def train(self, task: ShardTask, config: TrainingConfig) -> ShardWeights:
        raise NotImplementedError("shards are handed out in stacks")

    def train_stack(self, tasks: Sequence[ShardTask], config: TrainingConfig) -> list[ShardWeights]:
        shards = [task.shard for task in tasks]
        self.stacks.append(shards)
        failed = self.beyond & set(shards)
        if failed and self.says_which:
            raise TrainingError({shard: GraphError("too large") for shard in failed})
        if failed:
            raise GraphError("the stack is too large")
        return [CPU.train(task, config) for task in tasks]


class TwoSlots(LocalExecutor):
    def slots(self) -> int:
        return 2


@pytest.fixture(scope="module")
def tasks(small: ge.Graph) -> list[ShardTask]:
    partition = ge.partition_graph(small, "hash", num_shards=len(SHARDS))
    return [
        ShardTask(shard, small.subgraph(partition.members(i)), derive(0, "train", shard))
        for i, shard in enumerate(SHARDS)
    ]


@pytest.fixture(scope="module")
def expected(tasks: list[ShardTask]) -> dict[int, str]:
    return {task.shard: CPU.train(task, CONFIG).digest for task in tasks}


def digests(tasks: list[ShardTask], engine: Engine, executor: Executor) -> dict[int, str]:
    trained = train_shards([tasks], engine, executor, CONFIG)
    assert list(trained) == [task.shard for task in tasks], "in the tasks' order"
    return {shard: weights.digest for shard, weights in trained.items()}


@pytest.mark.parametrize("engine", [CPU, Stacking()], ids=["alone", "stacked"])
@pytest.mark.parametrize("executor", [LocalExecutor(1), LocalExecutor(3), TwoSlots()])
def test_how_shards_are_spread_changes_no_bit(
    tasks: list[ShardTask], expected: dict[int, str], engine: Engine, executor: Executor
) -> None:
    assert digests(tasks, engine, executor) == expected
    assert train_shards([[]], engine, executor, CONFIG) == {}


@pytest.mark.parametrize(
    ("executor", "stacks"), [(LocalExecutor(), [SHARDS]), (TwoSlots(1), [[7, 4, 9], [1, 2]])]
)
def test_an_executor_gets_one_stack_per_slot(
    tasks: list[ShardTask], executor: Executor, stacks: list[list[int]]
) -> None:
    engine = Stacking()
    train_shards([tasks], engine, executor, CONFIG)
    assert engine.stacks == stacks


def test_no_more_stacks_than_shards(tasks: list[ShardTask]) -> None:
    engine = Stacking()
    train_shards([tasks[:1]], engine, TwoSlots(), CONFIG)
    assert engine.stacks == [[7]]


@pytest.mark.slow
def test_stacks_go_through_processes(tasks: list[ShardTask], expected: dict[int, str]) -> None:
    engine = Stacking()
    assert digests(tasks, engine, ProcessExecutor(2)) == expected
    assert not engine.stacks, "nothing was trained here"


@pytest.mark.parametrize(("says_which", "failed"), [(False, [4, 7, 9]), (True, [4])])
def test_a_failed_stack_is_reported_by_its_shards(
    tasks: list[ShardTask], says_which: bool, failed: list[int]
) -> None:
    engine = Stacking(beyond=frozenset({4}), says_which=says_which)
    with pytest.raises(TrainingError, match="shard 4: GraphError") as caught:
        train_shards([tasks], engine, TwoSlots(1), CONFIG)
    assert list(caught.value.failures) == failed
    assert engine.stacks == [[7, 4, 9], [1, 2]], "the other stack was trained all the same"


def test_every_failure_of_single_shards_is_reported(tasks: list[ShardTask]) -> None:
    class Failing:
        name = "failing"
        depends_on: tuple[str, ...] = ()

        def train(self, task: ShardTask, config: TrainingConfig) -> ShardWeights:
            if task.shard in (1, 9):
                raise GraphError("no")
            return CPU.train(task, config)

    with pytest.raises(TrainingError) as caught:
        train_shards([tasks], Failing(), LocalExecutor(2), CONFIG)
    assert list(caught.value.failures) == [1, 9]


def test_the_failures_of_all_groups_are_reported_together(tasks: list[ShardTask]) -> None:
    """A group that fails keeps none of those after it from being trained."""
    trained = []

    class Failing:
        name = "failing"
        depends_on: tuple[str, ...] = ()

        def train(self, task: ShardTask, config: TrainingConfig) -> ShardWeights:
            trained.append(task.shard)
            if task.shard in (7, 2):
                raise GraphError(f"not {task.shard}")
            return CPU.train(task, config)

    with pytest.raises(TrainingError, match=r"shard 7: .*not 7\n.*shard 2: .*not 2") as caught:
        train_shards([tasks[:2], tasks[2:4], tasks[4:]], Failing(), LocalExecutor(1), CONFIG)
    assert list(caught.value.failures) == [7, 2]
    assert trained == SHARDS
    found = train_shards([tasks[:2], tasks[2:]], CPU, LocalExecutor(1), CONFIG)
    expected = train_shards([tasks], CPU, LocalExecutor(1), CONFIG)
    assert {k: v.digest for k, v in found.items()} == {k: v.digest for k, v in expected.items()}
