"""The queue: what is accepted stays, in order, and nobody is named in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from grapheraser.errors import ConflictError, ParameterError, UnknownRequestError
from grapheraser.service.database import Database
from grapheraser.service.database.tables import METADATA
from grapheraser.service.queue.intake import Submission
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.requests import RequestContent, State
from grapheraser.service.queue.vault import Vault

LATER = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


def test_a_request_is_received_and_found_again(queue: Queue) -> None:
    request, is_new = queue.submit(RequestContent(nodes=(12, 99)), deadline=LATER, owner="k1")
    assert is_new
    assert queue.get(request.id) == request
    assert (request.state, request.kind, request.deadline) == (State.RECEIVED, "erase", LATER)
    assert request.counts == {"nodes": 2}
    assert "12" not in str(request.counts)


def test_the_default_deadline_is_thirty_days(queue: Queue) -> None:
    request = queue.submit(RequestContent(nodes=(1,))).request
    assert request.deadline - request.received == timedelta(days=30)


def test_a_repeated_key_gives_the_same_request(queue: Queue) -> None:
    first = queue.submit(RequestContent(nodes=(1,)), key="a", owner="k1")
    again = queue.submit(RequestContent(nodes=(1,)), key="a", owner="k1")
    assert (first.is_new, again.is_new) == (True, False)
    assert again.request == first.request
    with pytest.raises(ConflictError):
        queue.submit(RequestContent(nodes=(2,)), key="a", owner="k1")
    assert queue.submit(
        RequestContent(nodes=(2,)), key="a", owner="k2"
    ).is_new  # keys are each owner's
    assert queue.counts()[State.RECEIVED] == 2


def test_many_keep_their_order(queue: Queue) -> None:
    contents = [RequestContent(nodes=(n,)) for n in range(300)]
    waiting = [queue.intake.submit(Submission(content)) for content in contents]
    made = [written.result() for written in waiting]
    numbers = [submitted.request.number for submitted in made]
    assert numbers == sorted(numbers)
    assert [event.request for event in queue.events_after(0)] == [one.request.id for one in made]


def test_lists_are_filtered_and_paged_newest_first(queue: Queue) -> None:
    made = [
        queue.submit(RequestContent(nodes=(n,)), owner=f"k{n % 2}").request.id for n in range(5)
    ]
    queue.submit(RequestContent(changes=({"add_edges": {"pairs": [[1, 2]]}},)))
    first = queue.list(kind="erase", limit=3)
    assert [r.id for r in first.requests] == made[:1:-1]
    rest = queue.list(kind="erase", limit=3, cursor=first.cursor)
    assert [r.id for r in rest.requests] == made[1::-1]
    assert rest.cursor is None
    assert [r.id for r in queue.list(owner="k1").requests] == [made[3], made[1]]
    assert queue.list(states=[State.COMPLETED]).requests == ()
    with pytest.raises(ParameterError, match="limit"):
        queue.list(limit=0)


def test_order_does_not_depend_on_the_clock(database: Database, vault: Vault) -> None:
    times = iter([LATER - timedelta(days=n) for n in range(50)])
    queue = Queue(database, "run-1", vault, clock=lambda: next(times))
    made = [queue.submit(RequestContent(nodes=(n,))).request.id for n in range(4)]
    assert [r.id for r in queue.list().requests] == made[::-1]
    assert [e.request for e in queue.events_after(0)] == made


def test_what_waits_can_be_cancelled_and_is_destroyed(queue: Queue) -> None:
    request = queue.submit(RequestContent(nodes=(1,)), owner="k1").request
    with pytest.raises(UnknownRequestError):
        queue.cancel(request.id, owner="k2")
    assert queue.cancel(request.id, owner="k1").state is State.CANCELLED
    with pytest.raises(ConflictError, match="cancelled"):
        queue.cancel(request.id)
    with queue.database.reading() as connection:
        row = connection.execute(sa.text("SELECT sealed, mark FROM requests")).one()
    assert tuple(row) == (None, None)


def test_every_transition_is_an_event_in_order(queue: Queue) -> None:
    a = queue.submit(RequestContent(nodes=(1,))).request.id
    b = queue.submit(RequestContent(nodes=(2,))).request.id
    seen = queue.last_event()
    queue.cancel(a)
    assert [(e.request, e.state) for e in queue.events_after(0)] == [
        (a, State.RECEIVED),
        (b, State.RECEIVED),
        (a, State.CANCELLED),
    ]
    assert [e.request for e in queue.events_after(seen)] == [a]
    assert [e.state for e in queue.history(a)] == [State.RECEIVED, State.CANCELLED]


def test_runs_of_one_database_are_apart(database: Database, vault: Vault, queue: Queue) -> None:
    other = Queue(database, "run-2", vault)
    request = queue.submit(RequestContent(nodes=(1,)), key="a").request
    assert other.submit(RequestContent(nodes=(7,)), key="a").is_new
    with pytest.raises(UnknownRequestError):
        other.get(request.id)
    assert {e.run for e in other.events_after(0)} == {"run-2"}


def test_late_requests_are_found(database: Database, vault: Vault) -> None:
    now = [LATER]
    queue = Queue(database, "run-1", vault, clock=lambda: now[0])
    soon = queue.submit(RequestContent(nodes=(1,)), deadline=LATER + timedelta(hours=1)).request
    queue.submit(RequestContent(nodes=(2,)))
    assert queue.due() == []
    assert [r.id for r in queue.due(timedelta(days=1))] == [soon.id]
    now[0] += timedelta(hours=2)
    assert [r.id for r in queue.list(late=True).requests] == [soon.id]
    assert queue.get(soon.id).is_late(now[0])


def test_nothing_in_the_database_names_anybody(queue: Queue) -> None:
    named = ("zoe-quist", "no-99-is-zoe")  # no word below may come about in a hexadecimal id
    queue.subjects.load([RequestContent(subject="zoe@example.org", nodes=named[:1])])
    queue.submit(RequestContent(subject="zoe@example.org", nodes=named), key="zoe-7")
    rows = []
    with queue.database.reading() as connection:
        for table in METADATA.sorted_tables:
            rows += [str(tuple(row)) for row in connection.execute(sa.select(table))]
    assert rows
    for word in ("zoe", "quist", "no-99"):
        assert not any(word in row for row in rows)
