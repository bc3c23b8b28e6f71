"""Receipts that no run has issued, for tests of the form alone."""

from __future__ import annotations

import hashlib

from grapheraser.receipts import EXACT, Ends, Receipt


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def example(sequence: int, previous: str | None) -> Receipt:
    return Receipt(
        action="unlearn",
        sequence=sequence,
        previous=previous,
        run="grapheraser/example",
        request=hashed(f"request {sequence}"),
        requests=1,
        counts={"nodes": 1, "edges": 0, "features": 0, "labels": 0},
        before=hashed(f"state {sequence - 1}"),
        after=hashed(f"state {sequence}"),
        register_before=hashed(f"register {sequence - 1}"),
        register_after=hashed(f"register {sequence}"),
        aggregation={"name": "mean", "notes": []},
        configuration=hashed("configured"),
        seed="18446744073709551615",
        engine="cpu",
        device="cpu",
        versions={"torch": "2.13.0"},
        exactness={"statement": EXACT, "reason": "so", "partition": "hash", "partition_inputs": []},
        completed_at="2026-01-01T00:00:00+00:00",
    )


def chain(length: int = 4) -> list[Receipt]:
    receipts: list[Receipt] = []
    for number in range(1, length + 1):
        receipts.append(example(number, receipts[-1].digest if receipts else None))
    return receipts


def ends_of(receipts: list[Receipt]) -> Ends:
    fitted = hashed("state 0")
    ends = Ends("grapheraser/example", fitted, hashed("configured"), fitted)
    for receipt in receipts:
        ends = ends.then(receipt)
    return ends
