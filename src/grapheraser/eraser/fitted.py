"""What everything that forgets has in common once it is fitted: a snapshot, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic

from grapheraser.checks import one_of
from grapheraser.eraser.conventions import Estimator, Turn
from grapheraser.eraser.plan import Plan
from grapheraser.eraser.refresh import NONE
from grapheraser.eraser.save import save
from grapheraser.eraser.snapshot import AnySnapshot
from grapheraser.eraser.unlearn import unlearn
from grapheraser.eraser.update import planned, update
from grapheraser.eraser.verify import Verification, verify
from grapheraser.errors import NotFittedError
from grapheraser.graph import Graph, GraphChange, Request, as_changes
from grapheraser.partition import Partition
from grapheraser.receipts import Receipt
from grapheraser.store import RunLock
from grapheraser.training import ShardWeights


class Eraser(Estimator, Generic[AnySnapshot]):
    """An estimator whose fitted state is one snapshot at a time."""

    _turn: Turn  # requests from several threads are carried out one by one
    _fitted: AnySnapshot

    @property
    def graph_(self) -> Graph:
        return self._now.state.graph

    @property
    def partition_(self) -> Partition:
        return self._now.state.partition

    @property
    def shards_(self) -> Mapping[int, ShardWeights]:
        return self._now.state.shards

    @property
    def receipts_(self) -> Sequence[Receipt]:
        return self._now.receipts

    @property
    def log_name_(self) -> str:
        return self._now.ends.run

    @property
    def engine_(self) -> str:
        return self._now.settings.engine.name

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in self.__dict__

    @property
    def _now(self) -> AnySnapshot:
        """The current snapshot. Read it once per call: another thread may replace it."""
        fitted: AnySnapshot | None = self.__dict__.get("_fitted")
        if fitted is None:
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet.",
                hint="call fit(graph) first, or load a run.",
            )
        return fitted

    def _then(self, snapshot: AnySnapshot) -> Receipt:
        """Go on from a snapshot; returns the receipt that led to it, with all that is not kept."""
        self._fitted = snapshot.kept()
        return snapshot.receipts[-1]

    def plan(self, changes: GraphChange | Sequence[GraphChange], *, missing: str = "raise") -> Plan:
        """What `unlearn` or `update` would do, without doing it.

        Args:
            changes: a request or changes, or a list of them.
            missing: as in `unlearn`; a list with changes in it takes ``"raise"`` alone.
        """
        parts = as_changes(changes)
        requests = [part for part in parts if isinstance(part, Request)]
        if len(requests) == len(parts):
            return self._now.plan(requests, missing=missing)
        one_of("missing", "plan of changes", missing, ("raise",))
        return planned(self._now, parts)[0]

    def unlearn(
        self,
        request: Request | Sequence[Request],
        *,
        missing: str = "raise",
        refresh: str = NONE,
    ) -> Receipt:
        """Forget nodes, edges, features or labels, and everything that was learned from them.

        A list of requests is one batch: each touched shard is retrained once. A request that
        fails changes nothing.

        Args:
            request: one, or several.
            missing: what to do about data that the graph does not have: ``"raise"`` an error that
                names all of it, or ``"skip"`` it. What was skipped is in ``skipped`` of the receipt
                that is returned, and nowhere else; the stored receipt counts it.
            refresh: ``"touched"`` trains the touched shards from fresh, recorded seeds, so that
                whoever compares two versions sees less; ``"all"`` all shards; ``"none"`` none.
        """
        with self._turn:
            return self._then(unlearn(self._now, request, missing=missing, refresh=refresh))

    def update(self, changes: GraphChange | Sequence[GraphChange]) -> Receipt:
        """Add nodes and edges, and set features and labels; deletions may be in the list.

        A list is one batch: deletions come first, each touched shard is retrained once, and there
        is one receipt. What is left is what a fresh fit on the changed graph gives, bit for bit,
        with new nodes in the shards that they were placed in: that of most of their neighbours; if
        no shard holds any, or that one is full, the smallest. Under ``hash`` and any other
        data-free partition the id decides. Changes that fail change nothing.

        Args:
            changes: any of `AddNodes`, `AddEdges`, `SetFeatures`, `SetLabels`, `Nodes`, `Edges`,
                `Features` and `Labels`, or a list of them.
        """
        with self._turn:
            return self._then(update(self._now, changes))

    def begin_log(self) -> None:
        """Begin a new log under a new name: the state as if it had just been fitted, no receipts.

        For a run that comes from a backup: going on from there under the old name would make a
        second log with the same name.
        """
        with self._turn:
            now = self._now
            self._fitted = type(now).first(
                now.arguments, now.settings, now.state, now.configuration
            )

    def verify(self) -> Verification:
        """Learn from the remaining data alone and compare every tensor bit for bit.

        A data-free partition is computed afresh too. The receipts must follow one another from the
        graph that was fitted to this one, and agree with the state that they led to.
        """
        return verify(self._now)

    def save(self, path: str | Path, *, lock: RunLock | None = None, replace: bool = False) -> None:
        """Write the run to a folder, all or nothing; what was forgotten leaves it.

        Refuses a folder that holds another run, or this one with receipts that it lacks here,
        unless ``replace``.
        """
        save(self._now, Path(path), lock=lock, replace=replace)
