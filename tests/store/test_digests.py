"""Columns of digests, and the memory of those that belong to values."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from grapheraser.graph.pages.files import as_bytes
from grapheraser.store.digests import NO_DIGEST, Column, Digests, Memo, differing, unknown


def column(*names: str) -> Digests:
    """The digests of some names; an empty one has none."""
    raw = b"".join(hashlib.sha256(n.encode()).digest() if n else bytes(32) for n in names)
    return np.frombuffer(raw, dtype=NO_DIGEST.dtype).copy()


def test_columns_are_compared_row_by_row() -> None:
    one, other = column("a", "b", "", "d"), column("a", "c", "", "")
    assert differing(one, other).tolist() == [False, True, False, True]
    assert differing(one, other[:3]).tolist() == [True] * 4
    assert unknown(other).tolist() == [False, False, True, True]


@pytest.mark.parametrize("count", [0, 1, 10, 200])
def test_digests_are_found_wherever_they_are(count: int) -> None:
    many = column(*map(str, range(0, 400, 2)))
    wanted = column(*map(str, range(count)))
    assert Column(many).holds(wanted).tolist() == [number % 2 == 0 for number in range(count)]
    assert not Column(many[:0]).holds(wanted).any()


def test_a_column_with_some_rows_replaced_finds_what_it_holds_now() -> None:
    before = Column(column("a", "b", "c"))
    after = before.replaced(column("a", "x", "c"), np.array([1]))
    asked = column("a", "b", "c", "x")
    assert before.holds(asked).tolist() == [True, True, True, False]
    assert after.holds(asked).tolist() == [True, False, True, True]


def test_a_memo_tells_what_belongs_to_each_value_whatever_came_and_went() -> None:
    rng = np.random.default_rng(0)
    memo, values = Memo(), [np.full(8, i) for i in range(50)]
    told: list[bytes] = [b""] * 50
    for step in range(200):
        # Arrays of one size, so that a new one takes the place in memory of one that has gone.
        for at in rng.integers(0, 50, 3).tolist():
            values[at], told[at] = None, b""  # type: ignore[call-overload]
            values[at] = np.full(8, step)
            if rng.random() < 0.7:
                told[at] = memo.put(values[at], hashlib.sha256(f"{step} {at}".encode()).digest())
        found = memo.column("pages", values)
        assert [digest.strip(b"\0") for digest in as_bytes(found)] == [
            digest.strip(b"\0") for digest in told
        ]
        if step % 40 == 39:
            values, told = values[5:] + values[:5], told[5:] + told[:5]
    shorter = memo.column("pages", values[:20])
    assert as_bytes(shorter) == [digest or bytes(32) for digest in told[:20]]
