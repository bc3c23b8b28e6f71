"""Carry out a batch: from its requests to the published run without what they name.

Every step is recorded:

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

from grapheraser import errors
from grapheraser.errors import NothingToForgetError, StoreError
from grapheraser.graph.changes.kinds import changes_of, items_along, requests_for
from grapheraser.graph.changes.requests import SKIP
from grapheraser.kinds import EDGES, LABELS, Item, forgotten_item
from grapheraser.receipts import Part, Receipt
from grapheraser.service.queue.batches import Batch, Batches
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.requests import ERASE, UPDATE
from grapheraser.service.served.serving import Model, Served
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
    """Carries out batches on one run under its lock; ``reached`` is called after every step."""

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
        """Carry out a batch from its beginning, on the current state, under the lock of the run.

        ``model`` goes on to the next state. After an error it may be ahead of the folder, and must
        not be used any more.
        """
        self._reached("claimed")
        if batch.kind == ERASE:
            items = self._items(batch, model)
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

    def _items(self, batch: Batch, model: Model) -> dict[str, list[Item]]:
        """List what each request names, itself and by its subject, and what goes along."""
        found = {}
        with self._queue.database.reading() as connection:
            for name, content in batch.contents.items():
                found[name] = content.items
                if content.subject is not None:
                    found[name] += self._queue.subjects.found(connection, content.subject)
                found[name] += items_along(model.graph_, found[name], content.cascade)
        return found

    def _planned(self, batch: Batch, items: Mapping[str, list[Item]], model: Model) -> list[str]:
        """Begin the requests that name something in the graph, and answer the rest; return ids."""
        refused = self._refused(batch, items, model)
        left = {name: set(named) for name, named in items.items() if name not in refused}
        try:
            known = model.items_in(requests_for(set().union(*left.values())))
        except NothingToForgetError:
            known = set()
        version = len(model.receipts_)
        nothing = {name: NOTHING_THERE for name, named in left.items() if not named & known}
        if nothing:
            self._batches.erase(list(nothing), version, nothing)
        self._reached("planned")
        names = [name for name in left if name not in nothing]
        if names:
            remarks = {
                name: some_missing(missing, len(left[name]))
                for name in names
                if (missing := len(left[name] - known))
            }
            self._batches.begin(batch, names, version, remarks)
        return names

    def _refused(self, batch: Batch, items: Mapping[str, list[Item]], model: Model) -> list[str]:
        """Fail the requests that can't be about this run; return their ids."""
        named, kinds = model.graph_.named, model.task.kinds
        typed, classes = model.graph_.types is not None, model.graph_.label_kind.is_classes
        parted = [kind for kind, there in ((EDGES, typed), (LABELS, not classes)) if there]
        unfit: dict[str, list[str]] = {NO_NAMES: [], OTHER_KIND: []}
        for name, its in items.items():
            texts = any(isinstance(node, str) for node in batch.contents[name].node_ids)
            if texts and not named:
                unfit[NO_NAMES].append(name)
            elif any(i.kind.name not in kinds or (i.more and i.kind not in parted) for i in its):
                unfit[OTHER_KIND].append(name)
        for reason, names in unfit.items():
            if names:
                self._batches.fail(batch, names, reason, None)
        return [name for names in unfit.values() for name in names]

    # -- working ------------------------------------------------------------------------------

    def _computed(
        self, batch: Batch, names: Sequence[str], items: Mapping[str, list[Item]], model: Model
    ) -> Receipt:
        if batch.kind == ERASE:
            wanted = requests_for({item for name in names for item in items[name]})
            return model.unlearn(wanted, missing=SKIP, refresh=self._settings.refresh)
        columns = model.graph_.num_features
        lines = [line for name in names for line in batch.contents[name].changes]
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
        """Complete all requests of a batch that are erased; return False where that has to wait."""
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
    """Assign the parts of a receipt to the requests that they answer; one may answer several."""
    if not items:  # an update, alone
        return {name: list(receipt.parts) for name in names}
    asking: dict[Item, list[str]] = {}
    for name in names:
        for item in set(items[name]):
            asking.setdefault(item, []).append(name)
    found: dict[str, list[Part]] = {name: [] for name in names}
    for part in receipt.parts:
        forgotten = forgotten_item(part.about)
        for name in asking.get(forgotten, ()) if forgotten is not None else ():
            found[name].append(part)
    return found


# Reasons why a request failed name nobody: they are kept for good.
_WORDS: dict[type[BaseException], str] = {
    errors.EmptyEnsembleError: "it would leave nothing to learn from; delete the run instead",
    errors.UnknownNodeError: "it changes nodes or graphs that are not in the run",
    errors.UnknownEdgeError: "it changes edges that are not in the graph",
    errors.InputError: "it does not fit the run",
    errors.StorageFullError: "the disk is full",
    errors.StoreError: "the run can't be written",
    errors.DatabaseError: "the database can't be used",
    errors.TrainingError: "training failed",
    errors.MissingExtraError: "a package is not installed",
    MemoryError: "there was not enough memory",
}
NOTHING_THERE = "nothing of it is in the run: it never was, or it has been forgotten already"
OTHER_KIND = "it names a kind of data that a run of this task does not have"
NO_NAMES = "it names nodes by name, and those of this run have none"


def reason_of(error: BaseException) -> str:
    """Describe an error by its kind, without its values."""
    for kind in type(error).__mro__:
        if kind in _WORDS:
            return f"{_WORDS[kind]} ({type(error).__name__})"
    known = isinstance(error, errors.GraphEraserError)
    return f"{'it failed' if known else 'something unexpected happened'} ({type(error).__name__})"


def is_final(error: BaseException, kind: str) -> bool:
    """Tell whether a request is to blame, and would fail again.

    Of an erasure it is known that what it names is there, so if its input is refused, something
    else is missing, such as the device that the run was fitted on.
    """
    refused = isinstance(error, errors.InputError) and kind == UPDATE
    return refused or isinstance(error, errors.EmptyEnsembleError)


def trouble_of(error: BaseException) -> str:
    """Describe an error that keeps the worker from working to the operator.

    Messages of the service, the store and the database name files and rows, and nobody.
    """
    if isinstance(error, errors.ServiceError | errors.StoreError):
        return error.message
    return reason_of(error)


def some_missing(missing: int, named: int) -> str:
    """Describe a request that names some things that are not there."""
    return f"{missing} of {named} things that it names were not in the run"
