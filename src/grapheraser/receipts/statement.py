"""The statement that is signed: in-toto, its subject the state that a change led to.

    _type          https://in-toto.io/Statement/v1
    subject        the document of the state after the change; see `eraser.document`
    predicateType  `PREDICATE`
    predicate      the fields of the receipt, and what the claim covers and does not cover

Integers that may exceed 2**53 are text, since many readers of JSON round them. Standard library
alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grapheraser.canonical import canonical_json
from grapheraser.errors import VerificationError
from grapheraser.untrusted import parse_json

PAYLOAD = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:grapheraser:receipt:2"
SUBJECT = "state"
# What a receipt claims something about, and what it says nothing about.
SCOPE = (
    "the graph, the partition, the weights of every shard, the aggregator and all cached "
    "posteriors of the run, in memory and in its folder"
)
OUT_OF_SCOPE = (
    "backups, snapshots and copies of the run or of the data",
    "the sources that the data came from",
    "free disk blocks, swap and the records of the file system",
    "answers, exports and models that were given out before the change",
    "receipts that were handed out, and logs of other systems",
)
_EXTRA = {"scope": SCOPE, "out_of_scope": list(OUT_OF_SCOPE)}


def statement_of(fields: Mapping[str, Any]) -> bytes:
    """The statement of a receipt's fields, as canonical JSON."""
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": SUBJECT, "digest": {"sha256": fields["after"]}}],
        "predicateType": PREDICATE,
        "predicate": {**fields, **_EXTRA},
    }
    return canonical_json(statement).encode()


def fields_of(payload: bytes) -> dict[str, Any]:
    """The fields of the receipt in a statement; anything else is a `VerificationError`."""
    try:
        statement = parse_json(payload)
        fields = dict(statement["predicate"])
        for name in _EXTRA:
            fields.pop(name, None)
        is_canonical = statement_of(fields) == payload
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise VerificationError("not a readable receipt: no statement.") from error
    if statement.get("predicateType") != PREDICATE:
        found = str(statement.get("predicateType"))[:80]
        raise VerificationError(f"not a receipt of this version (found {found!r}).")
    if not is_canonical:
        raise VerificationError("the receipt is not spelled canonically.")
    return fields
