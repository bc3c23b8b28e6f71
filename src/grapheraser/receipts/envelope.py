"""DSSE envelopes (a payload, its type and signatures over both), and the statement in them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from grapheraser.canonical import canonical_json
from grapheraser.errors import VerificationError
from grapheraser.receipts.notes import Verifier
from grapheraser.untrusted import parse_json

# The statement that is signed: in-toto, its subject the state that a change led to.
#
#     _type          https://in-toto.io/Statement/v1
#     subject        the document of the state after the change; see `eraser.document`
#     predicateType  `PREDICATE`
#     predicate      the fields of the receipt, and what the claim covers and does not cover
#
# Integers that may exceed 2**53 are text, since many readers of JSON round them.
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


_MAX_CHARACTERS = 10_000_000


class Signature(NamedTuple):
    """A signature as it stands in an envelope."""

    key: str  # the id of the key
    text: str  # the signature in base64


def encoded(kind: str, payload: bytes) -> bytes:
    """Return what is signed: the pre-authentication encoding of a payload and its type."""
    of_kind = kind.encode()
    return b"DSSEv1 %d %s %d %s" % (len(of_kind), of_kind, len(payload), payload)


def spelled(kind: str, payload: bytes, signatures: Sequence[Signature]) -> str:
    """Write an envelope as canonical JSON; without signatures it says that it is unsigned."""
    body = base64.b64encode(payload).decode()
    signed = [{"keyid": key, "sig": text} for key, text in signatures]
    return canonical_json({"payload": body, "payloadType": kind, "signatures": signed})


def check_signed(
    kind: str, payload: bytes, signatures: Sequence[Signature], verifier: Verifier
) -> None:
    """Raise `VerificationError` unless this key signed the payload."""
    if not signatures:
        raise VerificationError("the receipt is unsigned.")
    message = encoded(kind, payload)
    if not any(verifier.accepts(message, base64.b64decode(text)) for _, text in signatures):
        raise VerificationError("the receipt is not signed by this key, or was edited.")


def opened(envelope: str, kind: str) -> tuple[bytes, tuple[Signature, ...]]:
    """Read the payload of an envelope and the signatures, whoever made them."""
    if len(envelope) > _MAX_CHARACTERS:
        raise VerificationError("not a DSSE envelope: it is too long.")
    try:
        fields = parse_json(envelope)
        found, signatures = fields["payloadType"], fields["signatures"]
        if set(fields) != {"payload", "payloadType", "signatures"}:
            raise VerificationError("not a DSSE envelope: it has unknown fields.")
        if canonical_json(fields) != envelope:
            raise VerificationError("the envelope is not spelled canonically.")
        payload = base64.b64decode(fields["payload"], validate=True)
        signed = tuple(_signature(**each) for each in signatures)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise VerificationError("not a DSSE envelope, or a truncated one.") from error
    if found != kind:
        raise VerificationError(f"the envelope holds {str(found)[:80]!r}, not {kind!r}.")
    if spelled(kind, payload, signed) != envelope:
        raise VerificationError("the envelope is not spelled canonically.")
    return payload, signed


def _signature(keyid: str, sig: str) -> Signature:
    base64.b64decode(sig, validate=True)
    if not isinstance(keyid, str):
        raise TypeError("the id of a key is text")
    return Signature(keyid, sig)
