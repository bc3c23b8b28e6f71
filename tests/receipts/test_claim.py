"""How much a receipt claims: no more than holds, in words that add up."""

from __future__ import annotations

import pytest

from grapheraser.receipts import EXACT, EXACT_GIVEN_PARTITION, NOT_EXACT
from grapheraser.receipts.claim import DIFFERENT, SAME, UNTRIED, exactness, same_claim


@pytest.mark.parametrize(
    ("inputs", "schema", "replay", "statement"),
    [
        ([], [], None, EXACT),
        (["nodes"], [], None, EXACT_GIVEN_PARTITION),
        ([], ["classes"], None, "exact given schema"),
        (["edges"], ["classes"], None, "exact given partition and schema"),
        ([], [], SAME, "exact as replayed"),
        (["edges"], ["classes"], SAME, "exact as replayed given partition and schema"),
        ([], [], DIFFERENT, NOT_EXACT),
        (["edges"], ["classes"], UNTRIED, NOT_EXACT),
    ],
)
def test_a_statement_is_as_weak_as_all_that_weakens_it(
    inputs: list[str], schema: list[str], replay: str | None, statement: str
) -> None:
    found = exactness("blpa", inputs, schema, replay)
    assert found["statement"] == statement
    assert ("the classes" in found["reason"]) == bool(schema)
    assert ("what training on the remaining data alone gives" in found["reason"]) == (
        statement != NOT_EXACT
    )


def test_an_older_receipt_is_held_to_what_it_says() -> None:
    now = exactness("hash", [], ["classes"])
    older = {"statement": "exact", "reason": "so", "partition": "hash", "partition_inputs": []}
    assert same_claim(older, now)
    assert not same_claim({**older, "partition": "blpa"}, now)
    assert not same_claim({**exactness("hash", [])}, now)
