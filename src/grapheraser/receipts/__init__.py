"""Receipts: what was done, in a form that anyone can check with the standard library alone."""

from grapheraser.canonical import canonical_json, digest_of
from grapheraser.receipts.chain import Ends, Receipts, Stored, check_against, check_chain
from grapheraser.receipts.checking import Signatures
from grapheraser.receipts.part import Part, read_parts
from grapheraser.receipts.receipt import (
    EXACT,
    EXACT_GIVEN_PARTITION,
    NOT_EXACT,
    Details,
    Receipt,
    ShardRecord,
)

__all__ = [
    "EXACT",
    "EXACT_GIVEN_PARTITION",
    "NOT_EXACT",
    "Details",
    "Ends",
    "Part",
    "Receipt",
    "Receipts",
    "ShardRecord",
    "Signatures",
    "Stored",
    "canonical_json",
    "check_against",
    "check_chain",
    "digest_of",
    "read_parts",
]
