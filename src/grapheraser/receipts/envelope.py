"""DSSE envelopes: a payload, its type and signatures over both, as one JSON object."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from grapheraser.canonical import canonical_json
from grapheraser.errors import VerificationError
from grapheraser.receipts.notes import Signer, Verifier

_MOST_CHARACTERS = 10_000_000


def encoded(kind: str, payload: bytes) -> bytes:
    """What is signed: the pre-authentication encoding of a payload and its type."""
    of_kind = kind.encode()
    return b"DSSEv1 %d %s %d %s" % (len(of_kind), of_kind, len(payload), payload)


def seal(kind: str, payload: bytes, signers: Mapping[str, Signer]) -> str:
    """An envelope, as canonical JSON.

    Args:
        kind: type of the payload.
        payload: its bytes.
        signers: by the ids of their keys; none for an envelope that says it is unsigned.
    """
    message = encoded(kind, payload)
    signatures = [
        {"keyid": name, "sig": base64.b64encode(signer.sign(message)).decode()}
        for name, signer in signers.items()
    ]
    body = base64.b64encode(payload).decode()
    return canonical_json({"payload": body, "payloadType": kind, "signatures": signatures})


def contents(envelope: str, kind: str) -> bytes:
    """The payload of an envelope, whoever signed it, if anyone."""
    return _opened(envelope, kind)[0]


def is_signed(envelope: str, kind: str) -> bool:
    """Whether an envelope carries any signature at all."""
    return bool(_opened(envelope, kind)[1])


def unseal(envelope: str, kind: str, verifier: Verifier) -> bytes:
    """The payload; raise `VerificationError` unless this key signed it."""
    payload, signatures = _opened(envelope, kind)
    if not signatures:
        raise VerificationError("the receipt is unsigned.")
    message = encoded(kind, payload)
    if not any(verifier.accepts(message, signature) for signature in signatures):
        raise VerificationError("the receipt is not signed by this key, or was edited.")
    return payload


def _opened(envelope: str, kind: str) -> tuple[bytes, list[bytes]]:
    if len(envelope) > _MOST_CHARACTERS:
        raise VerificationError("not a DSSE envelope: it is too long.")
    try:
        fields = json.loads(envelope)
        found, signatures = fields["payloadType"], fields["signatures"]
        if set(fields) != {"payload", "payloadType", "signatures"}:
            raise VerificationError("not a DSSE envelope: it has unknown fields.")
        if canonical_json(fields) != envelope.strip():
            raise VerificationError("the envelope is not spelled canonically.")
        payload = base64.b64decode(fields["payload"], validate=True)
        signed = [base64.b64decode(each["sig"], validate=True) for each in signatures]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise VerificationError("not a DSSE envelope, or a truncated one.") from error
    if found != kind:
        raise VerificationError(f"the envelope holds {str(found)[:80]!r}, not {kind!r}.")
    return payload, signed
