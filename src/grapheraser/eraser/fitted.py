"""What everything that forgets has in common once it is fitted: a snapshot, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic

from grapheraser.eraser.conventions import Estimator, Turn
from grapheraser.eraser.plan import Plan
from grapheraser.eraser.save import save
from grapheraser.eraser.snapshot import AnySnapshot
from grapheraser.eraser.verify import Verification, verify
from grapheraser.errors import NotFittedError
from grapheraser.graph import Graph, Request
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
        """Go on from a snapshot; returns the receipt that led to it."""
        self._fitted = snapshot
        return snapshot.receipts[-1]

    def plan(self, request: Request | Sequence[Request]) -> Plan:
        """What `unlearn` would do, without doing it."""
        return self._now.plan(request)

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
