"""Receipts as a sequence: lazy, immutable, and checked from the last one back."""

from __future__ import annotations

import pickle

import pytest

from grapheraser.errors import VerificationError
from grapheraser.receipts import Details, Receipt, Receipts, Stored, check_chain
from tests.receipts.examples import chain, example, hashed


class Shelf:
    """Receipts by number and digest; notes what is read."""

    def __init__(self, receipts: list[Receipt]) -> None:
        self.receipts = {(receipt.sequence, receipt.digest): receipt for receipt in receipts}
        self.read: list[int] = []

    def __call__(self, number: int, digest: str) -> Receipt:
        self.read.append(number)
        return self.receipts[number, digest]


def shelved(length: int = 4) -> tuple[Shelf, Receipts]:
    receipts = chain(length)
    shelf = Shelf(receipts)
    return shelf, Receipts(stored=Stored(length, receipts[-1].digest, shelf))


def test_it_is_a_sequence_like_the_tuple_of_the_same_receipts() -> None:
    expected = tuple(chain(6))
    _, stored = shelved()
    receipts = stored.then(expected[4]).then(expected[5])
    assert (len(stored), len(receipts)) == (4, 6)
    for at in range(-6, 6):
        assert receipts[at] == expected[at]
    for part in (slice(1, 3), slice(None), slice(None, None, -2), slice(5, 9), slice(3, 3)):
        assert receipts[part] == expected[part]
    for at in (6, -7):
        with pytest.raises(IndexError):
            receipts[at]
    assert tuple(receipts) == expected
    assert expected[2] in receipts
    assert receipts.index(expected[2]) == 2
    assert receipts == expected
    assert expected == receipts
    assert receipts == Receipts(expected)
    assert receipts != expected[:5]
    assert receipts != (*expected[:5], expected[0])
    assert Receipts() == ()
    assert not Receipts()
    assert Receipts.of(receipts) is receipts
    check_chain(receipts, state=hashed("state 6"))
    assert [receipts.digest(number) for number in range(1, 7)] == [r.digest for r in expected]


def test_only_the_last_tells_what_is_not_kept() -> None:
    first, second = chain(2)
    details = Details(untrained=3)
    told = Receipts().then(first.telling(details, tuple)).then(second.telling(details, tuple))
    assert [receipt.is_redacted for receipt in told] == [True, False]
    assert [receipt.details for receipt in told] == [Details(), details]
    assert told[-1].parts == ()
    kept = told.redacted()
    assert [receipt.is_redacted for receipt in kept] == [True, True]
    assert kept.redacted() is kept
    assert [receipt.to_json() for receipt in kept] == [first.to_json(), second.to_json()]
    assert kept == told == (first, second)


def test_a_receipt_is_read_when_it_is_asked_for() -> None:
    shelf, receipts = shelved(9)
    longer = receipts.then(example(10, receipts.digest(9)))
    assert shelf.read == [9], "the last, and that when the run is read"
    assert longer[-2].sequence == 9
    assert longer[-1].sequence == 10
    assert shelf.read == [9]
    assert longer[6].sequence == 7
    assert shelf.read == [9, 8, 7], "back from the last"
    assert receipts[7].sequence == 8
    assert shelf.read == [9, 8, 7, 8]
    shelf.read.clear()
    assert len(list(longer)) == 10
    assert shelf.read == [8, 7, 6, 5, 4, 3, 2, 1]


def test_digests_are_known_by_the_receipt_that_follows() -> None:
    shelf, receipts = shelved(5)
    assert receipts.digest(5) == chain(5)[4].digest
    assert receipts.digest(4) == chain(5)[3].digest
    assert shelf.read == [5]
    assert receipts.digest(1) == chain(5)[0].digest
    assert receipts.digest(3) == chain(5)[2].digest
    assert shelf.read == [5, 4, 3, 2]


def test_a_chain_that_ends_too_early_is_noticed() -> None:
    receipts = chain(2)
    shelf = Shelf(receipts)
    shelf.receipts[3, receipts[1].digest] = receipts[0]  # it says that it is the first
    broken = Receipts(stored=Stored(3, receipts[1].digest, shelf))
    with pytest.raises(VerificationError, match="does not follow"):
        list(broken)
    with pytest.raises(VerificationError, match="does not follow"):
        broken.digest(1)


def test_a_sequence_survives_a_process() -> None:
    _, receipts = shelved()
    longer = receipts.then(example(5, receipts.digest(4)))
    assert pickle.loads(pickle.dumps(longer)) == tuple(chain(5))
    assert repr(longer) == "Receipts(5)"
