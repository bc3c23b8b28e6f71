"""Receipts: what was done, in a form that anyone can check with the standard library alone."""

from grapheraser.canonical import canonical_json, digest_of
from grapheraser.receipts.chain import Ends, check_against, check_chain
from grapheraser.receipts.log import Receipts, Stored
from grapheraser.receipts.part import Part
from grapheraser.receipts.receipt import (
    EXACT,
    EXACT_GIVEN_PARTITION,
    Details,
    Receipt,
    ShardRecord,
)

__all__ = [
    "EXACT",
    "EXACT_GIVEN_PARTITION",
    "Details",
    "Ends",
    "Part",
    "Receipt",
    "Receipts",
    "ShardRecord",
    "Stored",
    "canonical_json",
    "check_against",
    "check_chain",
    "digest_of",
]
