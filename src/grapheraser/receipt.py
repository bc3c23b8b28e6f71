"""Receipts: what was done, in a form that anyone can check.

This module needs the standard library alone, so that an auditor can check receipts without torch.
A receipt holds digests, counts, versions and timings; no features, labels, edges or node ids.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from grapheraser.errors import VerificationError

FORMAT = "grapheraser-receipt-1"
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
        action: "unlearn" or "insert".
        sequence: 1, 2, 3, ... within the run.
        previous: digest of the receipt before, None for the first.
        request: SHA-256 of the request in canonical form.
        counts: how many nodes, edges and feature rows it named (after merging), and how many of
            them no shard was trained on.
        graph_before, graph_after: fingerprints.
        shards: one record per shard that was trained again, or emptied.
        aggregation: its name, digests of what it holds before and after, and whether it was
            learned again.
        configuration: digest of everything that the run was set to.
        engine, device, versions: what did the work.
        exactness: the statement, the partition's method and which data went into it, in words.
        timings: seconds per step, and in total.
        completed_at: UTC, ISO 8601.
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

    @property
    def statement(self) -> str:
        """``exact`` or ``exact given partition``."""
        return str(self.exactness["statement"])

    @property
    def retrained(self) -> tuple[int, ...]:
        """Ids of the shards that were trained again."""
        return tuple(s.shard for s in self.shards if s.after is not None)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, ASCII."""
        return canonical_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        """Read a receipt back; anything else is a `VerificationError`."""
        try:
            fields = json.loads(text)
            if fields.get("format") != FORMAT:
                raise VerificationError(
                    f"not a receipt of this version (found format {fields.get('format')!r})."
                )
            fields["shards"] = tuple(ShardRecord(**record) for record in fields["shards"])
            return cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise VerificationError(f"not a readable receipt ({error}).") from error


def canonical_json(value: object) -> str:
    """JSON with one spelling: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(value: object) -> str:
    """SHA-256 of the canonical JSON of a value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def check_chain(receipts: Sequence[Receipt], *, graph: str | None = None) -> None:
    """Check that the receipts follow one another without a gap.

    Args:
        receipts: in order.
        graph: fingerprint of the run's current graph, which the last receipt must have led to.
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
