"""Callbacks of OpenDSR: a controller is told of every status of its request, until it says so.

What is to be told lies in the database, so that a crash loses none of it. A callback that fails is
tried again, later and later, and in the end given up and counted.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import sqlalchemy as sa

from grapheraser.errors import GraphEraserError, UnknownRequestError
from grapheraser.service.api.metrics import Metrics
from grapheraser.service.api.outgoing import Rules, post
from grapheraser.service.api.signatures import Processor
from grapheraser.service.database.callbacks import CALLBACKS
from grapheraser.service.queue import Queue
from grapheraser.service.requests import FINAL, Event, State, spelled

__all__ = ["Callbacks", "Rules", "status_of", "statuses"]

PENDING, IN_PROGRESS, COMPLETED, CANCELLED = "pending", "in_progress", "completed", "cancelled"
_STATUS = {
    State.RECEIVED: PENDING,
    State.FAILED: PENDING,  # waits for the next attempt, and can be cancelled
    State.COMPLETED: COMPLETED,
    State.CANCELLED: CANCELLED,
}
_LONGEST = 86_400.0  # seconds between two attempts at the most
_BEING_SENT = 60.0  # for how long nobody else tries a callback that is being sent
_STOP_SECONDS = 20.0  # that a callback which is being sent has to come to an end
_AT_ONCE = 100
_log = logging.getLogger("grapheraser.service")

# Sends a body to a URL with headers; raises OSError unless it was taken.
Send = Callable[[str, bytes, dict[str, str]], None]


def status_of(state: State) -> str:
    """A state as OpenDSR calls it."""
    return _STATUS.get(state, IN_PROGRESS)


def statuses(history: Sequence[Event]) -> list[str]:
    """The statuses that a request has had, one after the other."""
    found: list[str] = []
    for event in history:
        status = status_of(event.state)
        if found[-1:] != [status]:
            found.append(status)
    return found


class Callbacks:
    """Tells controllers what became of their requests.

    Args:
        queue: of the requests.
        processor: what callbacks are signed with.
        rules: where they may go, and how often.
        metrics: where they are counted.
        send: how they are sent.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        queue: Queue,
        processor: Processor,
        rules: Rules,
        metrics: Metrics,
        *,
        send: Send | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._queue, self._database = queue, queue.database
        self._processor, self._rules, self._metrics = processor, rules, metrics
        self._send: Send = send or partial(post, rules=rules)
        self._clock = clock
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, request: str, urls: Sequence[str], called: str) -> None:
        """Note whom to tell about a request that the controller calls by a name of its own."""
        rows = [
            {
                "request": request,
                "sealed": self._queue.vault.seal({"url": url, "called": called}, request),
                "next_at": self._clock(),
            }
            for url in dict.fromkeys(urls)
        ]
        with self._database.writing() as connection:
            there = sa.select(CALLBACKS.c.number).where(CALLBACKS.c.request == request)
            if rows and connection.execute(there).first() is None:
                connection.execute(sa.insert(CALLBACKS), rows)

    def start(self) -> None:
        """Begin to send in the background."""
        self._thread = threading.Thread(target=self._run, name="callbacks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop sending; what was not sent is sent after the next start."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                sent = self.send_due()
            except GraphEraserError as error:  # the database is away for a moment
                _log.warning("callbacks wait: %s", type(error).__name__)
                sent = 0
            self._stopped.wait(0.05 if sent else 0.5)

    def send_due(self) -> int:
        """Send what is due; returns how many callbacks were tried."""
        now = self._clock()
        query = sa.select(CALLBACKS).where(CALLBACKS.c.next_at <= now)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(CALLBACKS.c.next_at).limit(_AT_ONCE)).all()
        return sum(self._tell(row) for row in rows)

    def _tell(self, row: Any) -> int:
        """Tell the next status of one request to one URL, if there is one; 1 if that was tried."""
        try:
            request = self._queue.get(row.request)
            known = statuses(self._queue.history(row.request))
        except UnknownRequestError:  # of another run in the same database
            return 0
        if row.told >= len(known):
            return 0
        if not self._claimed(row):
            return 0
        opened = self._queue.vault.unseal(row.sealed, row.request)
        status, is_last = known[row.told], row.told + 1 == len(known) and request.state in FINAL
        told = _Told(opened["url"], opened["called"], status)
        body = told.body(request.owner or "", spelled(request.deadline))
        try:
            self._send(told.url, body, self._processor.headers(body))
        except OSError:
            self._failed(row)
        else:
            self._metrics.callbacks.labels("delivered").inc()
            self._set(row, None if is_last else {"told": row.told + 1, "attempts": 0})
        return 1

    def _claimed(self, row: Any) -> bool:
        """Keep others from sending the same at the same time."""
        mine = (CALLBACKS.c.number == row.number) & (CALLBACKS.c.next_at == row.next_at)
        with self._database.writing() as connection:
            later = sa.update(CALLBACKS).where(mine).values(next_at=self._clock() + _BEING_SENT)
            return connection.execute(later).rowcount == 1

    def _failed(self, row: Any) -> None:
        attempts = row.attempts + 1
        if attempts >= self._rules.attempts:
            self._metrics.callbacks.labels("given up").inc()
            _log.error("a callback about request %s was given up", row.request)
            self._set(row, None)
            return
        self._metrics.callbacks.labels("retried").inc()
        wait = min(_LONGEST, self._rules.first_delay * 2.0 ** (attempts - 1))
        self._set(row, {"attempts": attempts}, wait)

    def _set(self, row: Any, values: dict[str, int] | None, wait: float = 0.0) -> None:
        """Note what came of a callback; None: it is done with."""
        mine = CALLBACKS.c.number == row.number
        with self._database.writing() as connection:
            if values is None:
                connection.execute(sa.delete(CALLBACKS).where(mine))
            else:
                new = {**values, "next_at": self._clock() + wait}
                connection.execute(sa.update(CALLBACKS).where(mine).values(new))


@dataclass(frozen=True)
class _Told:
    """What is told to whom."""

    url: str
    called: str
    status: str
    extensions: dict[str, Any] = field(default_factory=dict)

    def body(self, controller: str, expected: str) -> bytes:
        found = {
            "controller_id": controller,
            "expected_completion_time": expected,
            "status_callback_url": self.url,
            "subject_request_id": self.called,
            "request_status": self.status,
        }
        return json.dumps(found).encode()
