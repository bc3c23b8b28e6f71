"""Base class of all erasers: a snapshot at a time, and the verbs that every task has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

from grapheraser.aggregation import Aggregator
from grapheraser.checks import one_of
from grapheraser.engines import ShardWeights, Training
from grapheraser.eraser.change import NONE
from grapheraser.eraser.conventions import Estimator, Turn
from grapheraser.eraser.fit import fit
from grapheraser.eraser.load import ERASERS, load
from grapheraser.eraser.plan import Plan
from grapheraser.eraser.save import save
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.state import claim_of
from grapheraser.eraser.task import Classifier, Collector, Task
from grapheraser.eraser.unlearn import plan_request, unlearn
from grapheraser.eraser.update import plan_changes, update
from grapheraser.eraser.verify import Verification, check_loaded, verify
from grapheraser.errors import NotFittedError
from grapheraser.execution import Executor
from grapheraser.graph import Graph, GraphChange, Request, as_changes
from grapheraser.graph.changes.parts import CollectionChange, CollectionRequest, Rewritten
from grapheraser.graph.changes.requests import as_tuple
from grapheraser.graph.changes.sides import SideChange, SideRequest
from grapheraser.kinds import Item
from grapheraser.models import Model, ModuleFactory
from grapheraser.partition import Partition, Partitioner
from grapheraser.partition.partitioning import PartitionFunction
from grapheraser.receipts import Receipt
from grapheraser.receipts.keys import PublicKey
from grapheraser.store import RunLock

AnyRequest: TypeAlias = Request | SideRequest | CollectionRequest
AnyChange: TypeAlias = GraphChange | SideChange | CollectionChange


class Eraser(Estimator):
    """An estimator of one task, whose fitted state is one snapshot at a time.

    A subclass has a constructor that only stores its arguments, the task, and the questions that
    can be asked.
    """

    task: ClassVar[Task]
    _turn: Turn  # requests from several threads are carried out one by one
    _fitted: Snapshot

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Return an eraser with a turn of its own, whatever its constructor stores."""
        made = super().__new__(cls)
        made._turn = Turn()
        return made

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "task" in cls.__dict__:
            ERASERS[cls.task.name] = cls

    @property
    def graph_(self) -> Graph:
        return self._snapshot.state.graph

    @property
    def partition_(self) -> Partition:
        return self._snapshot.state.partition

    @property
    def shards_(self) -> Mapping[int, ShardWeights]:
        return self._snapshot.state.shards

    @property
    def receipts_(self) -> Sequence[Receipt]:
        return self._snapshot.receipts

    @property
    def log_name_(self) -> str:
        return self._snapshot.ends.run

    @property
    def engine_(self) -> str:
        return self._snapshot.settings.engine.name

    @property
    def classifier(self) -> Classifier | None:
        """The eraser as something to ask about classes of nodes; None where its task has none."""
        return None

    @property
    def collector(self) -> Collector | None:
        """The eraser as something to ask about whole graphs; None where its task has none."""
        return None

    @property
    def exactness_(self) -> dict[str, Any]:
        """Claim of this run's receipts: ``statement``, ``reason``, and what they follow from."""
        now = self._snapshot
        return claim_of(now.settings, now.state)

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in self.__dict__

    @property
    def _snapshot(self) -> Snapshot:
        """The current snapshot. Read it once per call: another thread may replace it."""
        fitted: Snapshot | None = self.__dict__.get("_fitted")
        if fitted is None:
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet.",
                hint="call fit(graph) first, or load a run.",
            )
        return fitted

    def _sound(self) -> Snapshot:
        """The snapshot to change, once it is known to be what its last receipt describes."""
        checked = check_loaded(self._snapshot)
        if checked.state is self._snapshot.state:  # else it was replayed here, for this change
            self._fitted = checked
        return checked

    def _publish(self, snapshot: Snapshot) -> Receipt:
        """Go on from a snapshot; return the receipt that led to it, with all that is not stored."""
        self._fitted = snapshot.redacted()
        return snapshot.receipts[-1]

    def fit(self, graph: Any) -> Self:
        """Learn from whatever the task makes its graph of."""
        return self._fit(graph)

    def _fit(self, world: Any, partition: Partition | None = None) -> Self:
        """Fit whatever the task makes its graph of; see `fit`."""
        snapshot = fit(self.task, self.get_params(), world, partition)
        with self._turn:
            self._fitted = snapshot
        return self

    def plan(
        self,
        changes: AnyChange | Sequence[AnyChange],
        *,
        missing: str = "raise",
    ) -> Plan:
        """Work out what `unlearn` or `update` would do, without doing it.

        Args:
            changes: a request or changes, or a list of them.
            missing: as in `unlearn`; a list with changes in it takes ``"raise"`` alone.
        """
        now = self._snapshot
        parts = as_changes(self.task.changes_of(now, as_tuple(changes)))
        requests = [part for part in parts if isinstance(part, Request | Rewritten)]
        if len(requests) == len(parts):
            return plan_request(now, requests, missing=missing)
        one_of("missing", "plan of changes", missing, ("raise",))
        return plan_changes(now, parts)[0]

    def unlearn(
        self,
        request: AnyRequest | Sequence[AnyRequest],
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
            return self._publish(unlearn(self._sound(), request, missing=missing, refresh=refresh))

    def update(self, changes: AnyChange | Sequence[AnyChange]) -> Receipt:
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
            return self._publish(update(self._sound(), changes))

    def items_in(self, requests: Sequence[Any]) -> set[Item]:
        """Return what requests name and the run has, one by one.

        Args:
            requests: as for `unlearn`.
        """
        return self.task.items_in(self._snapshot, requests)

    def begin_log(self) -> None:
        """Begin a new log under a new name: the state as if it had just been fitted, no receipts.

        For a run that comes from a backup: going on from there under the old name would make a
        second log with the same name.
        """
        with self._turn:
            now = self._sound()
            parts = (now.arguments, now.settings, now.state, now.configuration, now.seals.versions)
            self._fitted = Snapshot.first(self.task, *parts)

    def verify(self, keys: Sequence[PublicKey] | None = None) -> Verification:
        """Learn from the remaining data alone and compare every tensor bit for bit.

        A data-free partition is computed afresh too. The receipts must follow one another from the
        graph that was fitted to this one, and agree with the state that they led to. Signatures are
        a verdict of their own.

        Args:
            keys: public keys of the operator: each receipt, and the log's checkpoint, must be
                signed by one of them. None: those of this machine; where there are none, signatures
                are not checked.
        """
        return verify(self._snapshot, keys)

    def save(self, path: str | Path, *, lock: RunLock | None = None, replace: bool = False) -> None:
        """Write the run to a folder, all or nothing; what was forgotten leaves it.

        Refuses a folder that holds another run, or this one with receipts that it lacks here,
        unless ``replace``.
        """
        save(self._snapshot, Path(path), lock=lock, replace=replace)

    @classmethod
    def load(
        cls, path: str | Path, *, executor: str | Executor = "local", device: str | None = None
    ) -> Self:
        """Read a run back.

        Args:
            path: its folder.
            executor: as in the constructor; it has no part in the results.
            device: where to train, instead of where the run was fitted.
        """
        return cls._load(path, executor, device)

    @classmethod
    def _load(
        cls, path: str | Path, executor: str | Executor, device: str | None, **own: Any
    ) -> Self:
        """Read a run back, with the parts of the user's own that it was fitted with."""
        names = cls._parameter_names()
        changes = {"executor": executor, "device": device}
        changes = {name: changes[name] for name in changes if name in names}
        if device is None:
            changes.pop("device", None)
        snapshot = load(cls.task, Path(path), names, own, changes)
        eraser = cls(**snapshot.arguments)
        eraser._fitted = snapshot
        return eraser


class ShardedEraser(Eraser):
    """Base class of erasers whose shards, or what combines them, may be the user's own."""

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        model: Model | ModuleFactory | None = None,
        partition: Partitioner | PartitionFunction | None = None,
        aggregation: Aggregator | None = None,
        training: Training | None = None,
        executor: str | Executor = "local",
        device: str | None = None,
    ) -> Self:
        """Read a run back.

        Args:
            path: its folder.
            model: the module factory, where the run was fitted with the user's own.
            partition: the partitioner, where it was the user's own; needed only to partition, or
                to place nodes under a data-free partition.
            aggregation: the aggregator, where it was the user's own.
            training: where its optimiser or loss is a function of the user's own.
            executor: as in the constructor; it has no part in the results.
            device: where to train, instead of where the run was fitted. On a device of another
                kind, or on a machine without it, the run predicts but can't retrain a shard.
        """
        own = {"model": model, "partition": partition, "aggregation": aggregation}
        return cls._load(path, executor, device, **own, training=training)
