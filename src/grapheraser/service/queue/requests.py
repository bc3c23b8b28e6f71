"""A request to the service: what it names, its state, and every transition between states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeAlias

from grapheraser.errors import NothingToForgetError, ParameterError
from grapheraser.graph.changes.sides import side_node
from grapheraser.graph.ids import one_id
from grapheraser.kinds import EDGES, KINDS, Item, Kind, item_ids

NodeId: TypeAlias = int | str
ERASE, UPDATE = "erase", "update"
# Copies that no erasure reaches; part of every answer about a request.
OUT_OF_SCOPE = (
    "backups, exports and other copies that were made before",
    "predictions that were answered before, and whoever kept them",
    "data about the same person that the run holds under other nodes",
    "logs of other systems, and what a file system or a device keeps of deleted files",
)
_OWNER = "RequestContent"
_TIMES = ("received", "deadline", "retry_at", "completed")


class State(StrEnum):
    """The state of a request."""

    RECEIVED = "received"
    PLANNED = "planned"
    RETRAINING = "retraining"
    PUBLISHED = "published"
    ERASED = "erased"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


# The states that may follow each. A batch that a crash interrupted before it was published starts
# again, and a request that names nothing in the graph is not published.
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


@dataclass(frozen=True, init=False)
class RequestContent:
    """The content of a request, e.g. ``RequestContent(nodes=[12], edges=[(3, 17)])``."""

    subject: str | None  # a person, by the identity that the subject map was loaded with
    # Ids or names of nodes, or pairs of them, by the name of their kind.
    named: Mapping[str, tuple[Any, ...]]
    # Lines of changes, as `grapheraser update` reads them; they come alone.
    changes: tuple[Mapping[str, Any], ...]
    cascade: tuple[str, ...]  # see `Nodes`; nodes of a subject take others along as well

    def __init__(
        self,
        subject: str | None = None,
        *,
        changes: Sequence[Any] = (),
        cascade: Sequence[str] = (),
        **named: Any,
    ) -> None:
        if odd := [name for name in named if name not in KINDS]:
            raise ParameterError(
                f"a request has some of the keys subject, {', '.join(KINDS)}, changes "
                f"(found {', '.join(odd)[:200]})."
            )
        if subject is not None and (not isinstance(subject, str) or not subject):
            raise ParameterError.of("subject", _OWNER, "a text that is not empty", subject)
        checked = {name: _checked(name, named[name]) for name in KINDS if name in named}
        object.__setattr__(self, "subject", subject)
        object.__setattr__(self, "named", {name: ids for name, ids in checked.items() if ids})
        object.__setattr__(self, "changes", _lines(changes))
        object.__setattr__(self, "cascade", tuple(_list("cascade", cascade)))
        erases = self.subject is not None or bool(self.named)
        if self.changes and (erases or self.cascade):
            raise ParameterError(
                f"'changes' of {_OWNER} come alone.",
                hint="they may forget nodes and edges as well.",
            )
        if not erases and not self.changes:
            words = ", ".join(kind.words for kind in KINDS.values())
            raise NothingToForgetError(f"the request names no subject, {words} or change.")

    @property
    def kind(self) -> str:
        """``erase`` or ``update``."""
        return UPDATE if self.changes else ERASE

    @property
    def counts(self) -> dict[str, int]:
        """The number of things named, by kind."""
        counts = {name: len(ids) for name, ids in self.named.items()}
        counts |= {"changes": len(self.changes), "subjects": int(self.subject is not None)}
        return {name: count for name, count in counts.items() if count}

    @property
    def node_ids(self) -> Iterator[NodeId]:
        """Every id or name of a node, the ends of edges among them."""
        for name, ids in self.named.items():
            one = KINDS[name].inside or KINDS[name].targets
            for ends in map(_tuple, ids):
                yield from ends[:1] if one else ends

    @property
    def items(self) -> list[Item]:
        """All that is named, one by one, by id; a subject stands for more."""
        return [
            Item(KINDS[name], item_ids(KINDS[name], list(_nodes(KINDS[name], ends))))
            for name, ids in self.named.items()
            for ends in map(_tuple, ids)
        ]

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {} if self.subject is None else {"subject": self.subject}
        for name, ids in self.named.items():
            found[name] = [list(v) if isinstance(v, tuple) else v for v in ids]
        found |= {"cascade": list(self.cascade)} if self.cascade else {}
        return {**found, "changes": list(self.changes)} if self.changes else found


def _nodes(kind: Kind, given: Sequence[NodeId]) -> Iterator[int]:
    """Yield the ids of the nodes that are given by ids or names, as their kind spells them."""
    ends = [KINDS[name] for name in kind.sides] or [kind] * len(given)
    for end, value in zip(ends, given, strict=True):
        node = one_id(value, kind.name, _OWNER)
        yield int(node if end.side is None else side_node(end, node))


def _checked(name: str, given: object) -> tuple[Any, ...]:
    """Return ids, or tuples of them, each once; refuse anything else."""
    if KINDS[name].ends == 1:
        one = _id_or_target if KINDS[name].targets else _id
        return tuple(dict.fromkeys(one(name, value) for value in _list(name, given)))
    found = []
    for ends in _list(name, given):
        # A relation of a typed graph is named between its ends, and once known by its bit after.
        triple = name == EDGES.name and len(_list(name, ends)) == 3
        if len(_list(name, ends)) != KINDS[name].ends and not triple:
            raise ParameterError.of(name, _OWNER, "a list of pairs of ids", ends)
        found.append(tuple(_id(name, end) for end in ends))
    return tuple(dict.fromkeys(found))


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _id_or_target(name: str, given: object) -> NodeId | tuple[NodeId, NodeId]:
    """Return an id, or an id and the name or number of a target."""
    if not isinstance(given, list | tuple):
        return _id(name, given)
    if len(given) != 2:
        raise ParameterError.of(
            name, _OWNER, "a list of ids, or pairs of an id and a target", given
        )
    return _id(name, given[0]), _id(name, given[1])


def _list(name: str, given: object) -> Sequence[Any]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise ParameterError.of(name, _OWNER, "a list", given)
    return given


def _id(name: str, given: object) -> NodeId:
    message = f"'{name}' of {_OWNER} must be made of ids"
    if isinstance(given, bool) or not isinstance(given, int | str) or given == "":
        raise ParameterError(f"{message}, each an int or a text. Got {given!r}.")
    if isinstance(given, int) and not 0 <= given < 2**63:
        raise ParameterError(f"{message} below 2**63. Got {given!r}.")
    return given


def _lines(given: object) -> tuple[Mapping[str, Any], ...]:
    for line in _list("changes", given):
        if not isinstance(line, Mapping) or not line:
            raise ParameterError.of("changes", _OWNER, "a list of objects", line)
    return tuple(_list("changes", given))


def item_to_json(item: Item) -> list[Any]:
    """Write an item for the subject map and tombstones."""
    return [item.kind.noun, *item.ids]


def item_from_json(found: Sequence[Any]) -> Item:
    """Read what `item_to_json` wrote."""
    noun, *ids = found
    return Item(next(kind for kind in KINDS.values() if kind.noun == noun), tuple(ids))


@dataclass(frozen=True)
class Request:
    """A request in the queue. Names nobody."""

    number: int  # its place in the queue; of two requests, the one received first has the lower
    id: str  # chosen at random; says nothing
    run: str  # name of the log of the run that it is about
    kind: str
    counts: Mapping[str, int]
    state: State
    received: datetime
    deadline: datetime
    attempts: int = 0  # how often the worker has begun it
    reason: str | None = None  # why it failed, or what else there is to know
    # When a failed request is tried again; None: not before somebody asks for it.
    retry_at: datetime | None = None
    batch: str | None = None
    # Size of the run's log after its batch; the model's version from then on.
    version: int | None = None
    completed: datetime | None = None
    receipts: int = 0  # how many parts of the receipt lie ready to be collected
    owner: str | None = None  # who submitted it, by the id of an API key

    @classmethod
    def from_row(cls, row: Mapping[Any, Any]) -> Request:
        """Read a row of the database."""
        found = {field.name: row[field.name] for field in fields(cls) if field.name in row}
        found["state"] = state = State(found["state"])
        for name in _TIMES:
            if found.get(name) is not None:
                found[name] = from_timestamp(found[name])
        if state is not State.COMPLETED:
            found["receipts"] = 0
        return cls(**found)

    @property
    def is_open(self) -> bool:
        """Tell whether the request is neither completed nor cancelled."""
        return self.state not in FINAL

    def is_late(self, now: datetime) -> bool:
        """Tell whether it is open past its deadline, or was completed after it."""
        return (self.completed or now) > self.deadline and self.state is not State.CANCELLED


@dataclass(frozen=True)
class Event:
    """One numbered transition of a request, at a time by the clock of who wrote it."""

    number: int
    run: str
    request: str
    state: State
    at: datetime
    version: int | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "state": self.state.value, "at": utc_text(self.at)}


@dataclass(frozen=True)
class Page:
    """Some requests of a list, newest first; `Queue.list` takes ``cursor`` for the next ones."""

    requests: tuple[Request, ...] = ()
    cursor: int | None = None


def utc_text(at: datetime) -> str:
    """Write a time in UTC, ISO 8601."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_timestamp(seconds: float) -> datetime:
    """Read a time of the database: seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC)
