"""Receipts: what was done, in a form that anyone can check with the standard library alone."""

from grapheraser.canonical import canonical_json, digest_of
from grapheraser.receipts.log import Receipts, Stored
from grapheraser.receipts.receipt import (
    EXACT,
    EXACT_GIVEN_PARTITION,
    Ends,
    Receipt,
    ShardRecord,
    check_chain,
    last_records,
)

__all__ = [
    "EXACT",
    "EXACT_GIVEN_PARTITION",
    "Ends",
    "Receipt",
    "Receipts",
    "ShardRecord",
    "Stored",
    "canonical_json",
    "check_chain",
    "digest_of",
    "last_records",
]
