"""Receipts: what was done, in a form that anyone can check with the standard library alone."""

from grapheraser.receipts.receipt import (
    EXACT,
    EXACT_GIVEN_PARTITION,
    Ends,
    Receipt,
    ShardRecord,
    canonical_json,
    check_chain,
    digest_of,
    last_records,
)

__all__ = [
    "EXACT",
    "EXACT_GIVEN_PARTITION",
    "Ends",
    "Receipt",
    "ShardRecord",
    "canonical_json",
    "check_chain",
    "digest_of",
    "last_records",
]
