"""The worker: finishes what a crash has left, gathers what waits, and carries it out."""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from grapheraser.errors import GraphEraserError, RunBusyError, ServiceError
from grapheraser.links.loading import load_eraser
from grapheraser.service.batches import Batches
from grapheraser.service.carry_out import STEPS, Carrier
from grapheraser.service.claims import Batch
from grapheraser.service.log import Log
from grapheraser.service.reasons import trouble_of
from grapheraser.service.requests import State
from grapheraser.service.settings import Settings, is_time
from grapheraser.service.tombstones import Tombstones
from grapheraser.store import load_receipts, locked

if TYPE_CHECKING:
    from grapheraser.service.queue import Queue
    from grapheraser.service.serving import Model, Served
    from grapheraser.store.keys import KeyFolder

__all__ = ["STEPS", "Worker"]

_LOG = logging.getLogger(__name__)
_HOUSE_SECONDS = 60.0
_MOST_TROUBLE_SECONDS = 30.0  # until it is tried whether the worker can work again


class Worker:
    """Carries out the requests of one queue, in a thread of its own or round by round.

    Any number of workers may share a queue: whoever has the lock of the run works.

    Args:
        queue: of the run.
        served: the run; new versions are published there.
        settings: of the service.
        keys: the folder of the keys, for tombstones.
        reached: is told of every step when it is done; for tests.
        troubled: is told whenever `trouble` changes.
        monotonic: a clock that nobody sets.

    Attributes:
        trouble: what keeps the thread from working, in words for the operator; None: nothing.
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
        self._batches, self._log = Batches(queue, self._tombstones), Log(queue)
        self._carrier = Carrier(queue, self._batches, served, settings, reached)
        self._monotonic, self._troubled = monotonic, troubled
        self.trouble: str | None = None
        self._model: Model | None = None  # the state that the next batch starts from
        self._since: float | None = None  # when something was first seen to wait
        self._last = queue.clock()  # when the last batch was begun, by the clock of people
        self._resting: dict[str, tuple[int, float]] = {}
        self._housekept = float("-inf")
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
        """Say that there is something new to do."""
        self._queue.woken.set()

    def stop(self, timeout: float | None = None) -> None:
        """Finish the batch that is being carried out, then work no more."""
        self._stopping.set()
        self.wake()
        if self._thread is not None:
            self._thread.join(timeout)

    @property
    def is_alive(self) -> bool:
        """Whether the thread works."""
        return self._thread is not None and self._thread.is_alive()

    def run(self) -> None:
        """Work until `stop` is called; errors are waited out."""
        failures = 0
        while not self._stopping.is_set():
            try:
                self.keep_house()
                worked, failures = self.round(), 0
                self._tell(None)
            except RunBusyError as error:
                worked = False
                self._tell(trouble_of(error))
            except Exception as error:
                worked, failures = False, failures + 1
                self._tell(trouble_of(error))
                _LOG.warning("the worker waits: %s", self.trouble)
                rest = self._settings.rest(failures).total_seconds()
                self._stopping.wait(min(rest, _MOST_TROUBLE_SECONDS))
            if not worked:
                self._look()
                self._wait()

    def _tell(self, trouble: str | None) -> None:
        """Say what keeps the worker from working; None: nothing."""
        changed, self.trouble = trouble != self.trouble, trouble
        if changed:
            self._troubled(trouble)

    def follow(self) -> None:
        """Serve what other processes publish until `stop` is called."""
        while not self._stopping.wait(self._settings.poll_seconds):
            self._look()

    def _look(self) -> None:
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
        """Finish what a crash has left, then carry out one batch if it is due; says if it did."""
        if not self._batches.unfinished() and not self.is_due():
            return False
        worked = False
        with locked(self._served.path) as lock:
            model, self._model = self._current(), None
            for batch in self._batches.unfinished():
                worked |= self._recovered(batch, model)
            self._served.publish(model)
            if self.is_due():
                self._since, self._last = None, self._queue.clock()
                resting = self._rest()
                claimed = self._batches.claim(self._settings.batch, resting)
                if claimed is not None:
                    self._carrier.carry_out(claimed, model, lock)
                    worked = True
            self._model = model
        return worked

    def is_due(self) -> bool:
        """Whether something waits, and should not wait any longer."""
        waiting = self._batches.waiting(self._rest())
        if waiting is None:
            self._since = None
            return False
        now = self._queue.clock()
        self._since = self._monotonic() if self._since is None else self._since
        self._last = min(self._last, now)  # the clock may have been set back
        if waiting.deadline - now <= self._settings.alert:
            return True
        gathered = self._monotonic() - self._since >= self._settings.window
        return (gathered or waiting.count >= self._settings.batch) and is_time(
            self._settings.times, self._last, now
        )

    def _rest(self) -> list[str]:
        """Failed requests whose time has not come; counted from when this worker first saw it."""
        now, seen = self._monotonic(), self._batches.failed()
        kept = {}
        for name, attempts in seen.items():
            known = self._resting.get(name)
            until = now + self._settings.rest(attempts).total_seconds()
            kept[name] = known if known and known[0] == attempts else (attempts, until)
        self._resting = kept
        return [name for name, (_, until) in kept.items() if until > now]

    def _current(self) -> Model:
        """The state in the folder, as a model to go on from."""
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
        known = self._log.size()
        if known > size or (known and self._log.digest(known) != digest(known)):
            raise ServiceError(
                "the log of the run does not hold what was published: "
                f"{known} receipts are known, and it has {size}.",
                hint="an old copy of the run was put in its place? Use `grapheraser restore`.",
            )
        if known < size:
            receipts, _ = load_receipts(self._served.path)
            self._log.add(receipts[known:])

    def _recovered(self, batch: Batch, model: Model) -> bool:
        """Finish a batch that was interrupted; says whether that was possible."""
        version = (batch.size or 0) + 1
        begun, published = batch.those(State.RETRAINING), batch.those(State.PUBLISHED)
        back = batch.those(State.PLANNED)
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

    # -- keeping house -------------------------------------------------------------------------

    def keep_house(self) -> None:
        """Now and then: destroy what was not collected in time and old keys; raise alerts."""
        now = self._monotonic()
        if now - self._housekept < _HOUSE_SECONDS:
            return
        self._housekept = now
        self._batches.destroy_expired()
        self._queue.database.purge()  # a reader may have been in the way the last time
        self._tombstones.destroy_old_keys(self._settings.backups_kept)
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
    """Whether the log of a model has this receipt at this place."""
    receipts = model.receipts_
    return digest is not None and len(receipts) >= size and receipts[size - 1].digest == digest


def _is_at(model: Model, size: int, head: str | None) -> bool:
    """Whether the log of a model ends with this receipt at this place."""
    return len(model.receipts_) == size and (size == 0 or _holds(model, size, head))
