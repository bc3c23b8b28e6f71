"""What a request to the service is: what it asks for, and how far it has come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeAlias

from grapheraser.errors import NothingToForgetError, ParameterError

NodeId: TypeAlias = int | str
ERASE, UPDATE = "erase", "update"
# What nothing that the service does reaches; part of every answer about a request.
OUT_OF_SCOPE = (
    "backups, exports and other copies that were made before",
    "predictions that were answered before, and whoever kept them",
    "data about the same person that the run holds under other nodes",
    "logs of other systems, and what a file system or a device keeps of deleted files",
)
_LISTS = ("nodes", "edges", "features", "labels", "changes")
_ID = "an int or a text"


class State(StrEnum):
    """How far a request has come."""

    RECEIVED = "received"
    PLANNED = "planned"
    RETRAINING = "retraining"
    PUBLISHED = "published"
    ERASED = "erased"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


# What may follow each state. A batch that a crash interrupted before it was published begins anew,
# and what names nothing that is there is not published.
NEXT: Mapping[State, frozenset[State]] = {
    State.RECEIVED: frozenset({State.PLANNED, State.CANCELLED}),
    State.PLANNED: frozenset({State.RETRAINING, State.ERASED, State.RECEIVED, State.FAILED}),
    State.RETRAINING: frozenset({State.PUBLISHED, State.PLANNED, State.RECEIVED, State.FAILED}),
    State.PUBLISHED: frozenset({State.ERASED}),
    State.ERASED: frozenset({State.COMPLETED}),
    State.FAILED: frozenset({State.PLANNED, State.CANCELLED, State.RECEIVED}),
    State.COMPLETED: frozenset(),
    State.CANCELLED: frozenset(),
}
FINAL = (State.COMPLETED, State.CANCELLED)
OPEN = tuple(state for state in State if state not in FINAL)
PENDING = (State.RECEIVED, State.FAILED)


@dataclass(frozen=True)
class Asked:
    """What a request names.

    Attributes:
        subject: a person, by whatever identity the subject map was loaded with.
        nodes, features, labels: ids or names of nodes.
        edges: pairs of them.
        changes: lines of changes, as `grapheraser update` reads them; alone.
    """

    subject: str | None = None
    nodes: tuple[NodeId, ...] = ()
    edges: tuple[tuple[NodeId, NodeId], ...] = ()
    features: tuple[NodeId, ...] = ()
    labels: tuple[NodeId, ...] = ()
    changes: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.subject is not None and (not isinstance(self.subject, str) or not self.subject):
            raise ParameterError.of("subject", "Asked", "a text that is not empty", self.subject)
        for name in ("nodes", "features", "labels"):
            object.__setattr__(self, name, _ids(name, getattr(self, name)))
        object.__setattr__(self, "edges", _pairs(self.edges))
        object.__setattr__(self, "changes", _changes(self.changes))
        erases = self.subject is not None or any(getattr(self, name) for name in _LISTS[:-1])
        if self.changes and erases:
            raise ParameterError(
                "'changes' of Asked come alone.", hint="they may forget nodes and edges as well."
            )
        if not erases and not self.changes:
            raise NothingToForgetError(
                "the request names no subject, node, edge, feature row, label or change."
            )

    @property
    def kind(self) -> str:
        """``erase`` or ``update``."""
        return UPDATE if self.changes else ERASE

    @property
    def counts(self) -> dict[str, int]:
        """How much is named, by kind; nothing of what it is."""
        counts = {name: len(getattr(self, name)) for name in _LISTS}
        counts["subjects"] = int(self.subject is not None)
        return {name: count for name, count in counts.items() if count}

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {} if self.subject is None else {"subject": self.subject}
        for name in _LISTS:
            if values := getattr(self, name):
                found[name] = [list(v) if isinstance(v, tuple) else v for v in values]
        return found

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Asked:
        """Read what `to_dict` gave, or what somebody sent; a `ParameterError` if it is not that."""
        odd = [str(name) for name in found if name not in ("subject", *_LISTS)]
        if odd:
            raise ParameterError(
                f"a request has some of the keys subject, {', '.join(_LISTS)} "
                f"(found {', '.join(odd)[:200]})."
            )
        return cls(**found)


def _values(name: str, given: object) -> Sequence[Any]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise ParameterError.of(name, "Asked", "a list", given)
    return given


def _id(name: str, given: object) -> NodeId:
    if isinstance(given, bool) or not isinstance(given, int | str) or given == "":
        raise ParameterError(f"'{name}' of Asked must be made of ids, each {_ID}. Got {given!r}.")
    if isinstance(given, int) and not 0 <= given < 2**63:
        raise ParameterError(f"'{name}' of Asked must be made of ids below 2**63. Got {given!r}.")
    return given


def _ids(name: str, given: object) -> tuple[NodeId, ...]:
    return tuple(dict.fromkeys(_id(name, value) for value in _values(name, given)))


def _pairs(given: object) -> tuple[tuple[NodeId, NodeId], ...]:
    found = []
    for pair in _values("edges", given):
        if len(_values("edges", pair)) != 2:
            raise ParameterError.of("edges", "Asked", "a list of pairs of ids", pair)
        found.append((_id("edges", pair[0]), _id("edges", pair[1])))
    return tuple(dict.fromkeys(found))


def _changes(given: object) -> tuple[Mapping[str, Any], ...]:
    for line in _values("changes", given):
        if not isinstance(line, Mapping) or not line:
            raise ParameterError.of("changes", "Asked", "a list of objects", line)
    return tuple(_values("changes", given))


@dataclass(frozen=True)
class Request:
    """A request and how far it has come. Names nobody.

    Attributes:
        number: its place in the queue; of two requests, the one received first has the lower.
        id: chosen at random; says nothing.
        run: name of the log of the run that it is about.
        kind: ``erase`` or ``update``.
        counts: how much it names, by kind.
        state: how far it has come.
        received: when.
        deadline: until when it has to be completed.
        attempts: how often the worker has begun it.
        reason: why it failed, or what else there is to know.
        retry_at: when a failed request is tried again; None: not before somebody asks for it.
        batch: what it is carried out in.
        version: size of the run's log after its batch; the model's version from then on.
        completed: when, if it is.
        receipts: how many parts of the receipt lie ready to be collected.
        owner: who submitted it, by the id of an API key.
    """

    number: int
    id: str
    run: str
    kind: str
    counts: Mapping[str, int]
    state: State
    received: datetime
    deadline: datetime
    attempts: int = 0
    reason: str | None = None
    retry_at: datetime | None = None
    batch: str | None = None
    version: int | None = None
    completed: datetime | None = None
    receipts: int = 0
    owner: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is something left to do, by the worker or by somebody who is told."""
        return self.state not in FINAL

    def is_late(self, now: datetime) -> bool:
        """Whether its deadline has passed, and it is still open or was completed too late."""
        return (self.completed or now) > self.deadline and self.state is not State.CANCELLED

    def to_dict(self) -> dict[str, Any]:
        found = {**self.__dict__, "counts": dict(self.counts), "state": self.state.value}
        for name in ("received", "deadline", "retry_at", "completed"):
            at: datetime | None = found[name]
            found[name] = None if at is None else spelled(at)
        return {**found, "out_of_scope": list(OUT_OF_SCOPE)}


@dataclass(frozen=True)
class Event:
    """One transition of a request; they are numbered in the order in which they happened.

    Attributes:
        number: 1, 2, 3, ...
        run: name of the run's log.
        request: id.
        state: what it came to.
        at: when, by the clock of whoever wrote it.
        version: of the run, where it was published.
        reason: why, where it failed.
    """

    number: int
    run: str
    request: str
    state: State
    at: datetime
    version: int | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "state": self.state.value, "at": spelled(self.at)}


@dataclass(frozen=True)
class Page:
    """Some requests of a list, and where the next ones begin.

    Attributes:
        requests: newest first.
        cursor: hand it to `Queue.list` for those that follow; None at the end.
    """

    requests: tuple[Request, ...] = field(default_factory=tuple)
    cursor: int | None = None


def spelled(at: datetime) -> str:
    """A time in UTC, ISO 8601."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def when(seconds: float) -> datetime:
    """A time of the database."""
    return datetime.fromtimestamp(seconds, UTC)
