"""Receipts: what was done, in a form that anyone can check.

This module needs the standard library alone, so that an auditor can check receipts without torch.
A receipt holds digests, counts, versions and timings; no features, labels, edges or node ids in
the clear. A digest hides only what can't be guessed: a receipt of a request for one node gives its
id away to anyone who tries every possible one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from grapheraser.canonical import canonical_json, digest_of
from grapheraser.errors import VerificationError
from grapheraser.receipts.form import check_types

FORMAT = "grapheraser-receipt-1"
# What the receipts of a format consist of, and the records of shards in them. A later format may
# add to it: those that are stored keep their spelling, and with it their digests.
_FIELDS = {
    FORMAT: (
        (
            *("action", "sequence", "previous", "request", "counts", "graph_before", "graph_after"),
            *("shards", "aggregation", "configuration", "engine", "device", "versions"),
            *("exactness", "timings", "completed_at", "format"),
        ),
        ("shard", "seed", "nodes", "before", "after"),
    )
}
EXACT = "exact"
EXACT_GIVEN_PARTITION = "exact given partition"


@dataclass(frozen=True)
class ShardRecord:
    """What happened to one shard.

    Attributes:
        shard: its id.
        seed: what its training was seeded with.
        nodes: how many nodes it has now.
        before, after: digests of its weights; None where there was or is no such shard.
    """

    shard: int
    seed: int
    nodes: int
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Receipt:
    """One change of a fitted run.

    Attributes:
        action: "unlearn", "update" or "insert".
        sequence: 1, 2, 3, ... within the run.
        previous: digest of the receipt before, None for the first.
        request: SHA-256 of the request in canonical form; of an insertion, with its data.
        counts: how many nodes, edges, feature rows and labels it named (after merging), how many
            of the nodes were context (in a shard, without a label to learn from), and how much no
            shard was trained on; of an update, how many of them were added or set; and how much
            was skipped, if anything.
        graph_before, graph_after: fingerprints.
        shards: one record per shard that was retrained or emptied.
        aggregation: its name, digests of what it holds before and after, and whether it was
            learned again.
        configuration: digest of everything that the run was set to.
        engine, device, versions: what did the work.
        exactness: the statement, the partition's method and which data went into it, in words.
        timings: seconds per step, and in total.
        completed_at: UTC, ISO 8601.
        format: says which fields a receipt has when it is written down.
        skipped: requests for what was not there, in a receipt that has just been returned; never
            written down, nor kept.
    """

    action: str
    sequence: int
    previous: str | None
    request: str
    counts: dict[str, int]
    graph_before: str
    graph_after: str
    shards: tuple[ShardRecord, ...]
    aggregation: dict[str, Any]
    configuration: str
    engine: str
    device: str
    versions: dict[str, str]
    exactness: dict[str, Any]
    timings: dict[str, float]
    completed_at: str
    format: str = field(default=FORMAT)
    skipped: ClassVar[tuple[Any, ...]] = ()

    def with_skipped(self, requests: Sequence[Any]) -> Receipt:
        """A copy for the caller alone, who also learns what was not there."""
        copy = replace(self)
        object.__setattr__(copy, "skipped", tuple(requests))
        return copy

    @property
    def statement(self) -> str:
        """``exact`` or ``exact given partition``."""
        return str(self.exactness["statement"])

    @property
    def retrained(self) -> tuple[int, ...]:
        """Ids of the shards that were retrained."""
        return tuple(s.shard for s in self.shards if s.after is not None)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON."""
        return digest_of(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The fields of its format."""
        names, of_shards = _fields_of(self.format)
        shards = [{name: getattr(record, name) for name in of_shards} for record in self.shards]
        values = {name: _copied(getattr(self, name)) for name in names if name != "shards"}
        return {name: shards if name == "shards" else values[name] for name in names}

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, ASCII."""
        return canonical_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        """Read a receipt back; anything else, or another spelling, is a `VerificationError`."""
        try:
            fields = json.loads(text)
            names, of_shards = _fields_of(fields.get("format"))
            _check_names(fields, names)
            for record in fields["shards"]:
                _check_names(record, of_shards)
            check_types(fields)
            fields["shards"] = tuple(ShardRecord(**record) for record in fields["shards"])
            receipt = cls(**fields)
            is_canonical = receipt.to_json() == text.removesuffix("\n")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise VerificationError(f"not a readable receipt ({error}).") from error
        if not is_canonical:
            raise VerificationError("the receipt is not spelled canonically.")
        return receipt


@dataclass(frozen=True)
class Ends:
    """Where a run's receipts begin and how far they have come; kept apart from them.

    Attributes:
        fitted: fingerprint of the graph that the run was fitted on.
        configuration: digest of the settings that it was fitted with.
        receipts: how many there are.
        head: digest of the last, None where there is none.
    """

    fitted: str
    configuration: str
    receipts: int = 0
    head: str | None = None

    def then(self, receipt: Receipt) -> Ends:
        """The ends with one receipt more."""
        return Ends(self.fitted, self.configuration, receipt.sequence, receipt.digest)


def check_chain(
    receipts: Sequence[Receipt], *, graph: str | None = None, ends: Ends | None = None
) -> None:
    """Check that the receipts follow one another without a gap.

    Args:
        receipts: in order.
        graph: fingerprint of the run's current graph, which the last receipt must have led to.
        ends: what the run says of them; else nothing is known of the last receipt but its graph.
    """
    previous: Receipt | None = None
    for number, receipt in enumerate(receipts, start=1):
        if receipt.sequence != number:
            raise VerificationError(f"receipt {number} carries number {receipt.sequence}.")
        if receipt.previous != (previous.digest if previous else None):
            raise VerificationError(f"receipt {number} does not follow from the one before it.")
        if previous is not None and receipt.graph_before != previous.graph_after:
            raise VerificationError(f"receipt {number} starts from another graph.")
        previous = receipt
    if previous is not None and graph is not None and previous.graph_after != graph:
        raise VerificationError("the last receipt did not lead to the run's current graph.")
    if ends is None:
        return
    if len(receipts) != ends.receipts:
        raise VerificationError(
            f"there should be {ends.receipts} receipts (found {len(receipts)})."
        )
    if (previous.digest if previous else None) != ends.head:
        raise VerificationError("the last receipt is not the one that was written.")
    first = receipts[0].graph_before if receipts else graph
    if first is not None and first != ends.fitted:
        raise VerificationError("the receipts do not start from the graph that was fitted.")


def last_records(receipts: Iterable[Receipt]) -> dict[int, ShardRecord]:
    """What the receipts say last about each shard that they name."""
    return {record.shard: record for receipt in receipts for record in receipt.shards}


def _copied(value: Any) -> Any:
    """Plain values with dictionaries and lists of their own."""
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, list) else value


def _fields_of(found: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if found not in _FIELDS:
        raise VerificationError(f"not a receipt of this version (found format {found!r}).")
    return _FIELDS[str(found)]


def _check_names(fields: dict[str, Any], names: Sequence[str]) -> None:
    if fields.keys() != set(names):
        odd = ", ".join(sorted(fields.keys() ^ set(names)))
        raise VerificationError(f"not a readable receipt (missing or unknown: {odd}).")
