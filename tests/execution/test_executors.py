"""Executors: the tasks' order, every failure, and the same results wherever they run."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from grapheraser.errors import GraphError, ParameterError, TrainingError
from grapheraser.execution import (
    EXECUTORS,
    Executor,
    LocalExecutor,
    ProcessExecutor,
    RayExecutor,
    held,
    streamed,
)
from grapheraser.execution import resolve_executor as resolve

HERE = [LocalExecutor(1), LocalExecutor(3)]


def square(value: int) -> int:
    return value * value


def odd_ones_fail(value: int) -> int:
    if value % 2:
        raise GraphError(f"{value} is odd", hint="add one")
    return value


def process_id(value: int) -> tuple[int, int]:
    return value, os.getpid()


class Plain:
    """An executor that can do no more than it has to."""

    name = "plain"

    def map(self, function: Any, tasks: Any, *, names: Any, tick: Any = None) -> list[Any]:
        return [function(task) for task in tasks]


class Heavy:
    """A function that counts how often it is pickled."""

    def __init__(self) -> None:
        self.pickled = 0

    def __call__(self, task: int) -> int:
        return task

    def __reduce__(self) -> tuple[Any, ...]:
        self.pickled += 1
        return Heavy, ()


@pytest.mark.parametrize("executor", HERE)
def test_results_come_in_the_order_of_the_tasks(executor: Executor) -> None:
    ticks: list[None] = []
    found = executor.map(square, range(10), names=list(range(10)), tick=lambda: ticks.append(None))
    assert found == [n * n for n in range(10)]
    assert len(ticks) == 10


@pytest.mark.parametrize("executor", HERE)
def test_every_failure_is_reported_under_its_name(executor: Executor) -> None:
    with pytest.raises(TrainingError) as caught:
        executor.map(odd_ones_fail, [0, 1, 2, 3], names=[10, 11, 12, 13])
    assert list(caught.value.failures) == [11, 13]
    assert isinstance(caught.value.failures[11], GraphError)


@pytest.mark.parametrize("executor", [*HERE, ProcessExecutor(2)])
def test_no_tasks_are_no_results(executor: Executor) -> None:
    assert executor.map(square, [], names=[]) == []


def test_one_worker_stays_on_this_thread() -> None:
    threads = LocalExecutor(1).map(lambda _: threading.get_ident(), [1, 2, 3], names=[1, 2, 3])
    assert set(threads) == {threading.get_ident()}


@pytest.mark.slow
def test_processes_return_results_and_failures_whole() -> None:
    executor = ProcessExecutor(2)
    found = executor.map(process_id, list(range(4)), names=list(range(4)))
    assert [value for value, _ in found] == [0, 1, 2, 3]
    assert os.getpid() not in {pid for _, pid in found}
    with pytest.raises(TrainingError) as caught:
        executor.map(odd_ones_fail, [1, 2], names=[7, 8])
    failure = caught.value.failures[7]
    assert isinstance(failure, GraphError)
    assert failure.hint == "add one"


def ends_its_process(value: int) -> int:
    os._exit(value)


@pytest.mark.slow
def test_a_block_keeps_its_processes_and_replaces_dead_ones() -> None:
    executor = ProcessExecutor(1)
    with executor:
        first, again = (executor.map(process_id, [0], names=[0]) for _ in range(2))
        assert first == again
        with pytest.raises(TrainingError) as caught:
            executor.map(ends_its_process, [3, 4], names=[7, 8])
        assert list(caught.value.failures) == [7, 8]
        assert executor.map(square, [3, 4], names=[7, 8]) == [9, 16]
    assert executor.map(process_id, [0], names=[0]) != first


def test_names_and_objects_are_resolved() -> None:
    assert set(EXECUTORS) >= {"local", "process", "ray"}
    assert resolve("local") == LocalExecutor()
    assert resolve("process") == ProcessExecutor()
    assert resolve("ray") == RayExecutor()
    assert resolve(HERE[1]) is HERE[1]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("cloud", "Choose from: local, process, ray"),
        (3, "a name or an Executor"),
        (LocalExecutor, "a name or an Executor"),
    ],
)
def test_anything_else_is_refused(bad: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        resolve(bad)


def test_an_interrupt_leaves_what_has_not_begun() -> None:
    begun = []

    def work(task: int) -> int:
        begun.append(task)
        time.sleep(0.01)
        return task

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LocalExecutor(workers=2).map(work, range(200), names=range(200), tick=interrupt)
    assert len(begun) < 100


@pytest.mark.parametrize(
    ("executor", "room"), [(LocalExecutor(1), 1), (LocalExecutor(2), 4), (Plain(), 0)]
)
def test_tasks_are_made_when_there_is_room_and_results_handed_over_one_by_one(
    executor: Executor, room: int
) -> None:
    made: list[int] = []

    class Tasks(Sequence[int]):
        def __len__(self) -> int:
            return 20

        def __getitem__(self, place: Any) -> Any:
            if place >= 20:
                raise IndexError
            made.append(place)
            return -place

    finished: dict[int, Any] = {}
    for place, outcome in streamed(executor, abs, Tasks()):
        assert not room or len(made) - len(finished) <= room
        finished[place] = outcome
    assert finished == {place: place for place in range(20)}


@pytest.mark.slow
def test_what_a_process_runs_is_sent_once_and_may_fail_to_be() -> None:
    heavy = Heavy()
    assert ProcessExecutor(1).map(heavy, [1, 2, 3], names=[1, 2, 3]) == [1, 2, 3]
    assert heavy.pickled == 1
    with pytest.raises(TrainingError) as caught:
        ProcessExecutor(1).map(lambda task: task, [1, 2], names=[7, 8])
    assert list(caught.value.failures) == [7, 8]


@pytest.mark.slow
def test_a_block_inside_another_keeps_its_processes() -> None:
    executor = ProcessExecutor(1)
    with executor:
        (first,) = executor.map(process_id, [0], names=[0])
        with held(executor):
            assert executor.map(process_id, [0], names=[0]) == [first]
        assert executor.map(process_id, [0], names=[0]) == [first]
    with held(LocalExecutor()):
        pass


def test_workers_must_be_positive() -> None:
    with pytest.raises(ParameterError, match="'workers' of Executor"):
        LocalExecutor(0).map(square, [1], names=[1])
