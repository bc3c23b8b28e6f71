"""Many at once: nobody is missed, nothing is done twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import grapheraser as ge
from grapheraser.errors import ConflictError
from grapheraser.service.database import Database
from grapheraser.service.queue.intake import Submission
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.requests import RequestContent, State
from grapheraser.service.queue.vault import Vault
from tests.service.conftest import Opened
from tests.service.worker.test_worker import submit, work


def at_once(*calls: Callable[[], None]) -> None:
    failures: list[BaseException] = []

    def guarded(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_whoever_follows_the_events_misses_none(url: str, database: Database, vault: Vault) -> None:
    # Each with a connection pool of its own, as if in several processes.
    queues = [Queue(Database(url), "run-1", vault) for _ in range(4)]
    reader, done = Queue(database, "run-1", vault), threading.Event()
    seen: list[int] = []

    def follow() -> None:
        number = 0
        while True:
            finished = done.is_set()
            events = reader.events_after(number, limit=7)
            seen.extend(event.number for event in events)
            number = seen[-1] if seen else 0
            if finished and not events:
                return

    def write() -> None:
        at_once(*(partial(submit_some, queue) for queue in queues))
        done.set()

    def submit_some(queue: Queue) -> None:
        for node in range(15):
            queue.submit(RequestContent(nodes=(node,)))

    at_once(follow, write)
    assert len(seen) == len({*seen}) == 60
    assert seen == sorted(seen)
    for queue in queues:
        queue.database.dispose()


def test_a_key_that_many_submit_at_once_makes_one_request(url: str, vault: Vault) -> None:
    Database.opened(url).dispose()
    queues = [Queue(Database(url), "run-1", vault) for _ in range(4)]
    made: list[tuple[str, bool]] = []

    def submit_all(queue: Queue) -> None:
        for key in ("b", "a", "c"):
            request, is_new = queue.submit(RequestContent(nodes=(1,)), key=key)
            made.append((request.id, is_new))
        content = RequestContent(nodes=(1,))
        waiting = [queue.intake.submit(Submission(content, key)) for key in ("c", "a", "b")]
        made.extend((r.id, n) for r, n in (written.result() for written in waiting))

    at_once(*(partial(submit_all, queue) for queue in queues))
    assert len({name for name, _ in made}) == 3
    assert sum(is_new for _, is_new in made) == 3
    for queue in queues:
        queue.database.dispose()


def test_a_request_is_either_cancelled_or_completed(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    service = opened(nodes_run, batch=2)
    nodes = list(map(int, small.train_nodes[:12]))
    made = [submit(service, nodes=[node]) for node in nodes]
    cancelled: list[int] = []

    def cancel() -> None:
        for node, request in reversed([*zip(nodes, made, strict=True)]):
            try:
                service.queue.cancel(request.id)
                cancelled.append(node)
            except ConflictError:
                pass

    at_once(cancel, lambda: work(service))
    work(service)
    left = service.served.now.model.graph_.contains(nodes).tolist()
    assert left == [node in cancelled for node in nodes]
    counts = service.queue.counts()
    assert counts[State.CANCELLED] == len(cancelled)
    assert counts[State.COMPLETED] == len(nodes) - len(cancelled)
