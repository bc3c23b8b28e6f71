"""From a batch to the published run without what it names, one recorded step after the other.

    claimed      the requests are this batch's
    planned      it is known what they name, and whether it is there
    retraining   the size of the log is noted
    computed     the next state is in memory
    sealed       the digest of the receipt and its parts are in the database
    saved        the folder of the run has been switched, and old files are gone
    published    the new version is served
    erased       what the requests named is destroyed, and tombstones are set
    completed    nothing is left in the files of the database either

Up to ``sealed`` a crash changes nothing: the requests go back to the queue. From then on the log of
the run says whether the batch is in it, by the digest of the receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from grapheraser.errors import NothingToForgetError, StoreError
from grapheraser.graph import coalesce
from grapheraser.graph.lines import changes_of
from grapheraser.graph.requests import SKIP
from grapheraser.links import LinkEraser
from grapheraser.service.items import (
    LABEL,
    Item,
    as_requests,
    by_name,
    forgotten_by,
    items_of,
    there,
)
from grapheraser.service.reasons import (
    NO_LABELS,
    NO_NAMES,
    NOTHING_THERE,
    is_final,
    reason_of,
    some_missing,
)
from grapheraser.service.requests import ERASE

if TYPE_CHECKING:
    from grapheraser.receipts import Part, Receipt
    from grapheraser.service.batches import Batches
    from grapheraser.service.claims import Batch
    from grapheraser.service.queue import Queue
    from grapheraser.service.serving import Model, Served
    from grapheraser.service.settings import Settings
    from grapheraser.store import RunLock

STEPS = (
    "claimed",
    "planned",
    "retraining",
    "computed",
    "sealed",
    "saved",
    "published",
    "erased",
    "completed",
)


class Carrier:
    """Carries out batches on one run while somebody holds its lock.

    Args:
        queue: of the run.
        batches: of the queue.
        served: where new versions are published.
        settings: of the service.
        reached: is told of every step when it is done.
    """

    def __init__(
        self,
        queue: Queue,
        batches: Batches,
        served: Served,
        settings: Settings,
        reached: Callable[[str], None],
    ) -> None:
        self._queue, self._batches, self._served = queue, batches, served
        self._settings, self._reached = settings, reached

    def carry_out(self, batch: Batch, model: Model, lock: RunLock) -> None:
        """Carry out a batch from its beginning.

        Args:
            batch: whose requests are planned.
            model: the current state; it goes on to the next. After an error it may be ahead of the
                folder, and must not be used any more.
            lock: of the run.
        """
        self._reached("claimed")
        if batch.kind == ERASE:
            items = self._items(batch)
            names = self._planned(batch, items, model)
        else:
            items, names = {}, list(batch.states)
            self._batches.begin(batch, names, len(model.receipts_), {})
        if not names:
            self.finish(batch)
            return
        self._reached("retraining")
        try:
            receipt = self._computed(batch, names, items, model)
        except StoreError as error:  # of the signing key: nothing that the requests could help
            self.fail(batch, names, error)
            raise
        except Exception as error:
            self._split(batch, names, error, model, lock)
        else:
            self._reached("computed")
            self._save(batch, names, items, receipt, model, lock)

    # -- planning -----------------------------------------------------------------------------

    def _items(self, batch: Batch) -> dict[str, list[Item]]:
        """What each request names, itself and by its subject."""
        found = {}
        with self._queue.database.reading() as connection:
            for name, asked in batch.asked.items():
                found[name] = items_of(asked)
                if asked.subject is not None:
                    found[name] += self._queue.subjects.found(connection, asked.subject)
        return found

    def _planned(self, batch: Batch, items: Mapping[str, list[Item]], model: Model) -> list[str]:
        """Begin what there is something to do for, and see to the rest; returns the ids."""
        refused = self._refused(batch, items, model)
        left = {name: set(named) for name, named in items.items() if name not in refused}
        try:
            asked = as_requests(set().union(*left.values()))
            known = there(coalesce(model.graph_, asked, missing=SKIP))
        except NothingToForgetError:
            known = frozenset()
        version = len(model.receipts_)
        nothing = {name: NOTHING_THERE for name, named in left.items() if not named & known}
        if nothing:
            self._batches.erase(list(nothing), version, nothing)
        self._reached("planned")
        names = [name for name in left if name not in nothing]
        if names:
            missing = {name: len(left[name] - known) for name in names}
            reasons = {
                name: some_missing(count, len(left[name]))
                for name, count in missing.items()
                if count
            }
            self._batches.begin(batch, names, version, reasons)
        return names

    def _refused(self, batch: Batch, items: Mapping[str, list[Item]], model: Model) -> list[str]:
        """Fail the requests that can't be about this run; returns the ids."""
        named, links = model.graph_.named, isinstance(model, LinkEraser)
        reasons = {
            NO_NAMES: [n for n, asked in batch.asked.items() if by_name(asked) and not named],
            NO_LABELS: [
                n for n, its in items.items() if links and any(i.kind == LABEL for i in its)
            ],
        }
        refused: list[str] = []
        for reason, names in reasons.items():
            if some := [name for name in names if name not in refused]:
                self._batches.fail(batch, some, reason, None)
                refused += some
        return refused

    # -- working ------------------------------------------------------------------------------

    def _computed(
        self, batch: Batch, names: Sequence[str], items: Mapping[str, list[Item]], model: Model
    ) -> Receipt:
        if batch.kind == ERASE:
            asked = as_requests({item for name in names for item in items[name]})
            return model.unlearn(asked, missing=SKIP, refresh=self._settings.refresh)
        columns = model.graph_.num_features
        lines = [line for name in names for line in batch.asked[name].changes]
        return model.update([change for line in lines for change in changes_of(line, columns)])

    def _save(
        self,
        batch: Batch,
        names: Sequence[str],
        items: Mapping[str, list[Item]],
        receipt: Receipt,
        model: Model,
        lock: RunLock,
    ) -> None:
        until = self._queue.clock() + timedelta(days=self._settings.receipt_days)
        self._batches.seal(batch, receipt, _answers(names, items, receipt), until)
        self._reached("sealed")
        try:
            model.save(self._served.path, lock=lock)
        except StoreError as error:
            if self._served.size_on_disk() < receipt.sequence:
                self.fail(batch, names, error)
            raise  # where the folder was switched already, the next round does the rest
        self._reached("saved")
        self.publish(names, receipt.sequence, model)
        self.erase(names, receipt.sequence)
        self.finish(batch)

    def publish(self, names: Sequence[str], version: int, model: Model) -> None:
        """Serve a state that has been saved, and note that it is."""
        self._served.publish(model)
        self._batches.publish(names, version, model.receipts_[version - 1])
        self._reached("published")

    def erase(self, names: Sequence[str], version: int) -> None:
        """Destroy what the requests of a published batch named."""
        self._batches.erase(names, version, {})
        self._reached("erased")

    def finish(self, batch: Batch) -> bool:
        """Complete all requests of a batch that are erased; False where that has to wait."""
        done = self._batches.complete(batch)
        if done:
            self._reached("completed")
        return done

    # -- when it can't be done ------------------------------------------------------------------

    def fail(self, batch: Batch, names: Sequence[str], error: BaseException) -> None:
        """Say why requests failed, and when they are tried again."""
        final = is_final(error, batch.kind)
        wait = None if final else self._settings.rest(self._batches.attempts(names))
        self._batches.fail(batch, names, reason_of(error), wait)

    def _split(
        self, batch: Batch, names: Sequence[str], error: Exception, model: Model, lock: RunLock
    ) -> None:
        """Try halves, so that a request that can't be carried out fails alone."""
        if len(names) == 1:
            self.fail(batch, names, error)
            return
        for half in self._batches.halves(batch, names):
            self.carry_out(half, model, lock)


def _answers(
    names: Sequence[str], items: Mapping[str, list[Item]], receipt: Receipt
) -> dict[str, list[Part]]:
    """The parts of a receipt by the requests that they answer; one may answer several."""
    if not items:  # an update, alone
        return {name: list(receipt.parts) for name in names}
    asking: dict[Item, list[str]] = {}
    for name in names:
        for item in set(items[name]):
            asking.setdefault(item, []).append(name)
    found: dict[str, list[Part]] = {name: [] for name in names}
    for part in receipt.parts:
        about = forgotten_by(part.about)
        for name in asking.get(about, ()) if about is not None else ():
            found[name].append(part)
    return found
