"""A receipt: what one change of a run did, in a form that anyone can check.

This module needs the standard library alone, so that an auditor can check receipts without torch. A
receipt holds commitments, counts and versions. No id, feature, label or edge can be guessed from
it: whatever depends on them is hidden by a nonce, which is destroyed with the data. What would help
to guess (which shards were retrained, how long that took) is said only to whoever made the request,
in `Receipt.details`, and not kept.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from grapheraser.errors import VerificationError
from grapheraser.kinds import forgotten_counts
from grapheraser.receipts.envelope import (
    PAYLOAD,
    Signature,
    check_fields,
    encoded,
    fields_of,
    opened,
    spelled,
    statement_of,
)
from grapheraser.receipts.keys import SigningKey
from grapheraser.receipts.tree import leaf_hash

if TYPE_CHECKING:
    from grapheraser.receipts.part import Part

# The strongest and the weakest statement; `receipts.claim` has those between.
EXACT, NOT_EXACT = "exact", "retrained, not exact"
EXACT_GIVEN_PARTITION = "exact given partition"


@dataclass(frozen=True)
class ShardRecord:
    """The change of one shard.

    Attributes:
        shard: its id.
        seed: what its training was seeded with.
        nodes: how many nodes it has now.
        before, after: digests of the files of its weights; None where there was or is none.
    """

    shard: int
    seed: int
    nodes: int
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Details:
    """The part of a receipt that only whoever made the request is told.

    Attributes:
        shards: one record per shard that was retrained or emptied.
        relearned: names of the aggregator's tensors that have changed.
        context: how many of the nodes were in a shard without a label to learn from.
        untrained: how much of the request no shard was trained on.
        timings: seconds per step, and in total.
        skipped: requests for what was not there.
        notes: what else to know of the shards.
        changed: ids of the rows that moved, or their names, of an embedding run.
    """

    shards: tuple[ShardRecord, ...] = ()
    relearned: tuple[str, ...] = ()
    context: int = 0
    untrained: int = 0
    timings: dict[str, float] = field(default_factory=dict)
    skipped: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()
    changed: tuple[int | str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, but what was skipped and what moved.

        Seeds as text, since they may exceed 2**53.
        """
        shards = [{**record.__dict__, "seed": str(record.seed)} for record in self.shards]
        return {
            "shards": shards,
            "relearned": list(self.relearned),
            "context": self.context,
            "untrained": self.untrained,
            "timings": dict(self.timings),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Receipt:
    """One change of a fitted run.

    Attributes:
        action: "unlearn", "update", "insert" or "reshard".
        sequence: 1, 2, 3, ... within the run.
        previous: digest of the receipt before, None for the first.
        run: the name of the run's log.
        request: root of the tree over the parts of the request; see `receipts.part`.
        requests: how many parts there are.
        counts: how many nodes, edges, feature rows and labels it named, after merging; of an
            update, how many of them were added or set; and how much was skipped, if anything.
        before, after: digests of the documents of both states; see `eraser.document`.
        register_before, register_after: roots of the register; see `receipts.register`.
        aggregation: its name and members, and what the operator should know.
        configuration: digest of everything that the run was set to.
        seed: of the run, as text.
        engine, device, versions: what did the work.
        exactness: the statement and what it follows from, also in words; see `receipts.claim`.
        completed_at: UTC, ISO 8601.
        signatures: over the statement; none where the receipt is unsigned.
        details: of the receipt that a change returns; empty for one that was kept.
    """

    action: str
    sequence: int
    previous: str | None
    run: str
    request: str
    requests: int
    counts: dict[str, int]
    before: str
    after: str
    register_before: str
    register_after: str
    aggregation: dict[str, Any]
    configuration: str
    seed: str
    engine: str
    device: str
    versions: dict[str, str]
    exactness: dict[str, Any]
    completed_at: str
    signatures: tuple[Signature, ...] = ()
    details: Details = field(default_factory=Details, compare=False, repr=False)
    _open: Callable[[], tuple[Part, ...]] | None = field(default=None, compare=False, repr=False)

    @property
    def statement(self) -> str:
        """The claim, such as ``exact given schema``; see `receipts.claim`."""
        return str(self.exactness["statement"])

    @property
    def forgotten(self) -> dict[str, int]:
        """Counts of what went, by kind; `counts` has what came as well."""
        return forgotten_counts(self.counts)

    @property
    def is_signed(self) -> bool:
        return bool(self.signatures)

    @property
    def shards(self) -> tuple[ShardRecord, ...]:
        """One record per shard that was retrained or emptied; empty for a receipt that was kept."""
        return self.details.shards

    @property
    def retrained(self) -> tuple[int, ...]:
        """Ids of the shards that were retrained; empty for a receipt that was kept."""
        return tuple(s.shard for s in self.shards if s.after is not None)

    @property
    def timings(self) -> dict[str, float]:
        """Seconds per step, and in total; empty for a receipt that was kept."""
        return self.details.timings

    @property
    def skipped(self) -> tuple[Any, ...]:
        """Requests for what was not there; empty for a receipt that was kept."""
        return self.details.skipped

    @property
    def changed(self) -> tuple[int | str, ...]:
        """Rows of an embedding that moved, by id or name as `Changes.ids`; empty once kept."""
        return self.details.changed

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """A receipt for each node, edge, feature row and label that was named.

        Only the receipt that a change returns has them: what they are made of is kept nowhere else.
        """
        return self._open() if self._open is not None else ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the envelope."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @cached_property
    def leaf(self) -> bytes:
        """Its hash in the log."""
        return leaf_hash(self.to_json().encode())

    def to_dict(self) -> dict[str, Any]:
        """Return what the statement says, and the details where they are known."""
        known = self.details != Details()
        return _fields(self) | ({"details": self.details.to_dict()} if known else {})

    def to_json(self) -> str:
        """The envelope: canonical JSON."""
        return self._text

    @cached_property
    def _text(self) -> str:
        return spelled(PAYLOAD, self.payload, self.signatures)

    @cached_property
    def payload(self) -> bytes:
        """The statement that is signed."""
        return statement_of(_fields(self))

    def signed_by(self, signer: SigningKey, name: str) -> Receipt:
        """The receipt with one signature more; ``name`` is the id of the key."""
        signature = base64.b64encode(signer.sign(encoded(PAYLOAD, self.payload))).decode()
        signed = replace(self, signatures=(*self.signatures, Signature(name, signature)))
        signed.__dict__["payload"] = self.payload
        return signed

    @property
    def is_redacted(self) -> bool:
        """Tell whether it tells nothing but what is kept."""
        return self._open is None and self.details == Details()

    def redacted(self) -> Receipt:
        """Return the receipt without what is not stored."""
        return self.telling(Details(), None)

    def telling(self, details: Details, opened: Callable[[], tuple[Part, ...]] | None) -> Receipt:
        """Return the receipt with other details, and parts that are opened like this."""
        made = object.__new__(Receipt)
        made.__dict__.update(self.__dict__, details=details, _open=opened)
        made.__dict__.pop("parts", None)
        return made

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        """Read a receipt back; anything else, or another spelling, is a `VerificationError`."""
        payload, signatures = opened(text.removesuffix("\n"), PAYLOAD)
        found = fields_of(payload)
        if found.keys() != set(_NAMES):
            odd = ", ".join(sorted(map(str, found.keys() ^ set(_NAMES))))
            raise VerificationError(f"not a readable receipt (missing or unknown: {odd}).")
        check_fields(found)
        return cls(**found, signatures=signatures)


_NAMES = tuple(f.name for f in fields(Receipt) if f.name not in ("signatures", "details", "_open"))


def _fields(receipt: Receipt) -> dict[str, Any]:
    return {name: _copied(getattr(receipt, name)) for name in _NAMES}


def _copied(value: Any) -> Any:
    """Plain values with dictionaries and lists of their own."""
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, list) else value
