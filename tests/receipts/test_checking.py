"""What is said of a receipt that somebody brings."""

from __future__ import annotations

import pytest

import grapheraser as ge
from grapheraser.errors import VerificationError
from grapheraser.receipts import Part
from grapheraser.receipts.checking import check_part
from grapheraser.receipts.keys import PublicKey
from grapheraser.store.keys import known_keys


@pytest.fixture(scope="module")
def part(small: ge.Graph) -> Part:
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(small)
    return eraser.unlearn(ge.Nodes([small.train_nodes[0]])).parts[0]


def test_the_key_that_signed_is_found_among_others(part: Part) -> None:
    stranger, keys = PublicKey(bytes(range(32))), known_keys()
    found = check_part(part, [stranger, *keys])
    assert found.key == keys[0].id
    assert found.lines == (
        f"signed by {keys[0].id}",
        "entry 1 of 1 in the log",
        "answers this request alone",
        "the node was in the run before and is not after",
    )


def test_without_the_key_that_signed_a_receipt_is_refused(part: Part) -> None:
    with pytest.raises(VerificationError, match="no public key here"):
        check_part(part, [])
    with pytest.raises(VerificationError, match="not signed by this key"):
        check_part(part, [PublicKey(bytes(range(32)))])
