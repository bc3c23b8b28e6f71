"""Requests that come at once share a transaction, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from grapheraser.errors import ConflictError, DatabaseError, ParameterError, UnknownSubjectError
from grapheraser.service.queue.intake import Submitted
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.requests import Request, RequestContent


@contextmanager
def held(queue: Queue, waiting: int) -> Iterator[tuple[threading.Event, list[int]]]:
    """Hold the first transaction back until so many others wait.

    Yields an event, set once that transaction has taken its requests, and the sizes of all.
    """
    intake: Any = queue.intake
    written: list[int] = []
    first = threading.Event()
    original = intake._write

    def write(tickets: Any) -> None:
        if not first.is_set():
            first.set()
            while len(tickets) + len(intake._waiting) <= waiting:
                threading.Event().wait(0.001)
        written.append(len(tickets))
        original(tickets)

    intake._write = write
    yield first, written
    del intake._write


def test_those_who_come_at_once_share_a_transaction(queue: Queue) -> None:
    def submit(node: int) -> Submitted:
        return queue.submit(RequestContent(nodes=(node,)))

    with held(queue, 19) as (begun, written), ThreadPoolExecutor(20) as pool:
        alone = pool.submit(submit, 0)
        assert begun.wait(60)
        found = [*pool.map(submit, range(1, 20)), alone.result()]
    assert written == [1, 19]
    assert all(submitted.is_new for submitted in found)
    numbers = [submitted.request.number for submitted in found]
    assert sorted(numbers) == list(range(1, 21))
    assert {request.id for request in queue.list().requests} == {
        submitted.request.id for submitted in found
    }
    assert [event.number for event in queue.events_after(0)] == list(range(1, 21))


def test_what_is_returned_is_what_is_stored(queue: Queue) -> None:
    request = queue.submit(RequestContent(nodes=(1,)), key="a", owner="desk").request
    assert queue.get(request.id) == request


def test_one_refusal_is_nobody_elses(queue: Queue) -> None:
    queue.submit(RequestContent(nodes=(1,)), key="taken")

    def submit(n: int) -> Any:
        try:
            if n == 3:
                return queue.submit(RequestContent(nodes=(2,)), key="taken")
            return queue.submit(
                RequestContent(subject="nobody") if n == 5 else RequestContent(nodes=(n,))
            )
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
        found = list(
            pool.map(lambda _: queue.submit(RequestContent(nodes=(1,)), key="a"), range(10))
        )
    assert len({submitted.request.id for submitted in found}) == 1
    assert sum(submitted.is_new for submitted in found) == 1
    assert len(queue.list().requests) == 1


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "9999-12-31T23:59:59.999999+00:00",  # rounded up where it is stored
    ],
)
def test_a_deadline_that_can_not_be_stored_is_refused_before_others_are_there(
    queue: Queue, text: str
) -> None:
    with pytest.raises(ParameterError, match="deadline"):
        queue.submit(RequestContent(nodes=(1,)), deadline=datetime.fromisoformat(text))
    assert queue.list().requests == ()


@pytest.mark.parametrize("error", [ValueError, OverflowError, DatabaseError, RecursionError])
def test_whatever_one_request_raises_is_its_own(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """In every place where a request is looked at within the transaction."""
    known, read = queue.subjects.known, Request.from_row

    def odd_subject(connection: Any, subject: str) -> None:
        if subject == "odd":
            raise error("of one")

    def odd_row(row: Any) -> Request:
        if row["number"] and row["owner"] == "odd":
            raise error("of one")
        return read(row)

    monkeypatch.setattr(queue.subjects, "known", odd_subject)
    monkeypatch.setattr(Request, "from_row", odd_row)

    def submit(n: int) -> Any:
        try:
            return queue.submit(
                RequestContent(subject="odd" if n == 3 else f"person {n}"),
                owner="odd" if n == 5 else "desk",
            )
        except error as found:
            return found

    with held(queue, 9), ThreadPoolExecutor(10) as pool:
        found = list(pool.map(submit, range(10)))
    assert [n for n, one in enumerate(found) if isinstance(one, Exception)] == [3, 5]
    monkeypatch.setattr(queue.subjects, "known", known)
    monkeypatch.setattr(Request, "from_row", read)
    stored = {request.id for request in queue.list().requests}
    assert stored == {one.request.id for one in found if isinstance(one, Submitted)}


def test_a_transaction_that_fails_is_told_to_all_who_shared_it(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise DatabaseError("the disk is full.")

    monkeypatch.setattr(queue, "record", fails)

    def submit(n: int) -> bool:
        try:
            queue.submit(RequestContent(nodes=(n,)))
        except DatabaseError:
            return False
        return True

    with held(queue, 9), ThreadPoolExecutor(10) as pool:
        assert not any(pool.map(submit, range(10)))
    monkeypatch.undo()
    assert queue.list().requests == ()
    assert queue.submit(RequestContent(nodes=(1,))).is_new
