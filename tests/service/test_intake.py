"""Requests that come at once share a transaction, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from grapheraser.errors import ConflictError, DatabaseError, UnknownSubjectError
from grapheraser.service.queue import Queue
from grapheraser.service.requests import Asked


@contextmanager
def held(queue: Queue, waiting: int) -> Iterator[list[int]]:
    """Hold the first transaction back until so many others wait; counts transactions."""
    intake: Any = queue.intake
    written, first = [], threading.Event()
    original = intake._write

    def write(tickets: Any) -> None:
        if not first.is_set():
            first.set()
            while len(intake._waiting) < waiting:
                threading.Event().wait(0.001)
        written.append(len(tickets))
        original(tickets)

    intake._write = write
    yield written
    del intake._write


def test_those_who_come_at_once_share_a_transaction(queue: Queue) -> None:
    with held(queue, 19) as written, ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda n: queue.submit(Asked(nodes=(n,))), range(20)))
    assert sum(written) == 20
    assert len(written) == 2
    assert all(submitted.is_new for submitted in found)
    numbers = [submitted.request.number for submitted in found]
    assert sorted(numbers) == list(range(1, 21))
    assert {request.id for request in queue.list().requests} == {
        submitted.request.id for submitted in found
    }
    assert [event.number for event in queue.events_after(0)] == list(range(1, 21))


def test_what_is_returned_is_what_is_stored(queue: Queue) -> None:
    request = queue.submit(Asked(nodes=(1,)), key="a", owner="desk").request
    assert queue.get(request.id) == request


def test_one_refusal_is_nobody_elses(queue: Queue) -> None:
    queue.submit(Asked(nodes=(1,)), key="taken")

    def submit(n: int) -> Any:
        try:
            if n == 3:
                return queue.submit(Asked(nodes=(2,)), key="taken")
            return queue.submit(Asked(subject="nobody") if n == 5 else Asked(nodes=(n,)))
        except (ConflictError, UnknownSubjectError) as error:
            return error

    with held(queue, 9), ThreadPoolExecutor(10) as pool:
        found = list(pool.map(submit, range(10)))
    assert isinstance(found[3], ConflictError)
    assert isinstance(found[5], UnknownSubjectError)
    assert sum(not isinstance(one, Exception) for one in found) == 8
    assert len(queue.list().requests) == 9


def test_the_same_key_at_once_is_one_request(queue: Queue) -> None:
    with held(queue, 9), ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda _: queue.submit(Asked(nodes=(1,)), key="a"), range(10)))
    assert len({submitted.request.id for submitted in found}) == 1
    assert sum(submitted.is_new for submitted in found) == 1
    assert len(queue.list().requests) == 1


def test_a_transaction_that_fails_is_told_to_all_who_shared_it(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise DatabaseError("the disk is full.")

    monkeypatch.setattr(queue, "record", fails)

    def submit(n: int) -> bool:
        try:
            queue.submit(Asked(nodes=(n,)))
        except DatabaseError:
            return False
        return True

    with held(queue, 9), ThreadPoolExecutor(10) as pool:
        assert not any(pool.map(submit, range(10)))
    monkeypatch.undo()
    assert queue.list().requests == ()
    assert queue.submit(Asked(nodes=(1,))).is_new
