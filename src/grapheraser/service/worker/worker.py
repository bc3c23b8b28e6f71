"""The worker: finish what a crash left, gather waiting requests, and carry them out."""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta

from grapheraser.eraser import load_eraser
from grapheraser.errors import GraphEraserError, RunBusyError, ServiceError
from grapheraser.service.queue.batches import Batch, Batches, PublishedLog
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.requests import State
from grapheraser.service.queue.tombstones import Tombstones
from grapheraser.service.served.serving import Model, Served
from grapheraser.service.settings import Settings, is_time
from grapheraser.service.worker.carrier import Carrier, trouble_of
from grapheraser.store import load_receipts, locked
from grapheraser.store.keys import KeyFolder

_LOG = logging.getLogger(__name__)
_CLEANUP_SECONDS = 60.0
_MAX_TROUBLE_SECONDS = 30.0  # until a worker in trouble tries again


class Worker:
    """Carries out the requests of one queue, in a thread of its own or round by round.

    Any number of workers may share a queue: the holder of the run's lock works.

    Args:
        keys: the folder of the keys, for tombstones.
        reached: called after every step; for tests.
        troubled: called whenever `trouble` changes.
        monotonic: a monotonic clock.

    Attributes:
        trouble: the reason why the worker can't work, for the operator; None: it can.
    """

    def __init__(
        self,
        queue: Queue,
        served: Served,
        settings: Settings,
        keys: KeyFolder,
        *,
        reached: Callable[[str], None] = lambda step: None,
        troubled: Callable[[str | None], None] = lambda trouble: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue, self._served, self._settings = queue, served, settings
        self._tombstones = Tombstones(queue, keys)
        self._batches, self._log = Batches(queue, self._tombstones), PublishedLog(queue)
        self._carrier = Carrier(queue, self._batches, served, settings, reached)
        self._monotonic, self._troubled = monotonic, troubled
        self.trouble: str | None = None
        self._model: Model | None = None  # the state that the next batch starts from
        self._since: float | None = None  # when something was first seen to wait
        self._last = queue.clock()  # when the last batch was begun, by the clock of people
        self._resting: dict[str, tuple[int, float]] = {}
        self._cleaned = float("-inf")
        self._alerted: set[tuple[str, bool]] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    # -- as a thread ---------------------------------------------------------------------------

    def start(self, *, follow: bool = False) -> None:
        """Work in a thread until `stop`; or only ``follow`` what other processes publish."""
        self._stopping.clear()
        work = self.follow if follow else self.run
        self._thread = threading.Thread(target=work, name="grapheraser-worker", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Announce new work."""
        self._queue.woken.set()

    def stop(self, timeout: float | None = None) -> None:
        """Finish the current batch, then stop."""
        self._stopping.set()
        self.wake()
        if self._thread is not None:
            self._thread.join(timeout)

    @property
    def is_alive(self) -> bool:
        """Tell whether the thread works."""
        return self._thread is not None and self._thread.is_alive()

    def run(self) -> None:
        """Work until `stop` is called; errors are waited out."""
        failures = 0
        while not self._stopping.is_set():
            try:
                self.clean_up()
                worked, failures = self.round(), 0
                self._set_trouble(None)
            except RunBusyError as error:
                worked = False
                self._set_trouble(trouble_of(error))
            except Exception as error:
                worked, failures = False, failures + 1
                self._set_trouble(trouble_of(error))
                _LOG.warning("the worker waits: %s", self.trouble)
                rest = self._settings.rest(failures).total_seconds()
                self._stopping.wait(min(rest, _MAX_TROUBLE_SECONDS))
            if not worked:
                self._refresh()
                self._wait()

    def _set_trouble(self, trouble: str | None) -> None:
        """Set `trouble`, and announce a change of it."""
        changed, self.trouble = trouble != self.trouble, trouble
        if changed:
            self._troubled(trouble)

    def follow(self) -> None:
        """Serve what other processes publish until `stop` is called."""
        while not self._stopping.wait(self._settings.poll_seconds):
            self._refresh()

    def _refresh(self) -> None:
        """Serve what another process has published, if one has."""
        try:
            self._served.refresh()
        except GraphEraserError as error:
            _LOG.warning("the run can't be read: %s", trouble_of(error))

    def _wait(self) -> None:
        """Wait for something to do."""
        poll = self._settings.poll_seconds
        if self._since is None:
            self._queue.woken.wait(poll)
            self._queue.woken.clear()
        else:
            left = self._since + self._settings.window - self._monotonic()
            self._stopping.wait(min(poll, left) if left > 0 else poll)

    # -- one round -----------------------------------------------------------------------------

    def round(self) -> bool:
        """Finish what a crash left, then carry out a batch if one is due; tell whether it did."""
        if not self._batches.unfinished() and not self.is_due():
            return False
        worked = False
        with locked(self._served.path) as lock:
            model, self._model = self._current(), None
            for batch in self._batches.unfinished():
                worked |= self._recover(batch, model)
            self._served.publish(model)
            if self.is_due():
                self._since, self._last = None, self._queue.clock()
                resting = self._resting_now()
                claimed = self._batches.claim(self._settings.batch, resting)
                if claimed is not None:
                    self._carrier.carry_out(claimed, model, lock)
                    worked = True
            self._model = model
        return worked

    def is_due(self) -> bool:
        """Tell whether something waits, and should not wait any longer."""
        waiting = self._batches.waiting(self._resting_now())
        if waiting is None:
            self._since = None
            return False
        (count, deadline), now = waiting, self._queue.clock()
        self._since = self._monotonic() if self._since is None else self._since
        self._last = min(self._last, now)  # the clock may have been set back
        if deadline - now <= self._settings.alert:
            return True
        gathered = self._monotonic() - self._since >= self._settings.window
        return (gathered or count >= self._settings.batch) and is_time(
            self._settings.times, self._last, now
        )

    def _resting_now(self) -> list[str]:
        """List failed requests that still rest, counted from when this worker first saw them."""
        now, seen = self._monotonic(), self._batches.failed()
        kept = {}
        for name, attempts in seen.items():
            known = self._resting.get(name)
            until = now + self._settings.rest(attempts).total_seconds()
            kept[name] = known if known and known[0] == attempts else (attempts, until)
        self._resting = kept
        return [name for name, (_, until) in kept.items() if until > now]

    def _current(self) -> Model:
        """Return the state in the folder, as a model to go on from."""
        receipts, ends = load_receipts(self._served.path)
        if ends.run != self._queue.run:
            raise ServiceError(
                "the folder holds another run than the one that this queue is for.",
                hint="stop the service, and start it for the run that is there now.",
            )
        self._check_log(ends.receipts, receipts.digest)
        for model in (self._model, self._served.now.model):
            if model is not None and _is_at(model, ends.receipts, ends.head):
                return copy.copy(model)
        return load_eraser(self._served.path, **self._served.own)

    def _check_log(self, size: int, digest: Callable[[int], str]) -> None:
        """Refuse a run whose log is not what was published; note what others have added to it."""
        known, last = self._log.latest()
        if known > size or (known and last != digest(known)):
            raise ServiceError(
                "the log of the run does not hold what was published: "
                f"{known} receipts are known, and it has {size}.",
                hint="an old copy of the run was put in its place? Use `grapheraser restore`.",
            )
        if known < size:
            receipts, _ = load_receipts(self._served.path)
            with self._queue.database.writing() as connection:
                self._log.note(connection, receipts[known:])

    def _recover(self, batch: Batch, model: Model) -> bool:
        """Finish a batch that was interrupted; tell whether that was possible."""
        version = (batch.size or 0) + 1
        begun, published = batch.in_state(State.RETRAINING), batch.in_state(State.PUBLISHED)
        back = batch.in_state(State.PLANNED)
        if _holds(model, version, batch.receipt):
            published += begun
        else:
            back, begun = [*back, *begun], []
        if back:
            self._batches.abandon(batch, back)
        if begun:
            self._carrier.publish(begun, version, model)
        if published:
            self._carrier.erase(published, version)
        return self._carrier.finish(batch) or bool(back or published)

    # -- cleaning up ---------------------------------------------------------------------------

    def clean_up(self) -> None:
        """Every minute, destroy expired receipts and old keys, and raise alerts."""
        now = self._monotonic()
        if now - self._cleaned < _CLEANUP_SECONDS:
            return
        self._cleaned = now
        self._batches.destroy_expired()
        self._queue.database.purge()  # a reader may have been in the way the last time
        self._tombstones.destroy_old_keys(timedelta(days=self._settings.backup_days))
        for request in self._queue.due(self._settings.alert):
            late = request.is_late(self._queue.clock())
            if (request.id, late) not in self._alerted:
                self._alerted.add((request.id, late))
                _LOG.warning(
                    "request %s is %s and %s its deadline, %s",
                    request.id,
                    request.state,
                    "past" if late else "close to",
                    request.deadline.isoformat(timespec="seconds"),
                )


def _holds(model: Model, size: int, digest: str | None) -> bool:
    """Tell whether the log of a model has this receipt at this place."""
    receipts = model.receipts_
    return digest is not None and len(receipts) >= size and receipts[size - 1].digest == digest


def _is_at(model: Model, size: int, head: str | None) -> bool:
    """Tell whether the log of a model ends with this receipt at this place."""
    return len(model.receipts_) == size and (size == 0 or _holds(model, size, head))
