"""DSSE envelopes: the published encoding, round trips, forgeries."""

from __future__ import annotations

import base64
import json

import pytest

from grapheraser.errors import VerificationError
from grapheraser.receipts.envelope import Signature, check_signed, encoded, opened, spelled

pytest.importorskip("cryptography", reason="needs the extra 'sign'")
from grapheraser.receipts.keys import PublicKey
from tests.receipts.test_notes import a_key

KIND, PAYLOAD = "application/vnd.in-toto+json", b'{"claim":"exact"}'


def test_the_published_encoding() -> None:
    assert encoded("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def seal(seed: int | None = 1) -> str:
    """An envelope signed by a key of this seed, or by none."""
    if seed is None:
        return spelled(KIND, PAYLOAD, ())
    key = a_key(seed)
    signature = base64.b64encode(key.sign(encoded(KIND, PAYLOAD))).decode()
    return spelled(KIND, PAYLOAD, [Signature(key.id, signature)])


def unseal(envelope: str, key: PublicKey) -> bytes:
    payload, signatures = opened(envelope, KIND)
    check_signed(KIND, payload, signatures, key)
    return payload


def test_round_trip() -> None:
    assert unseal(seal(), PublicKey(a_key(1).public)) == PAYLOAD


def test_an_unsigned_envelope_says_so() -> None:
    assert opened(seal(None), KIND) == (PAYLOAD, ())
    with pytest.raises(VerificationError, match="unsigned"):
        unseal(seal(None), PublicKey(a_key(1).public))


def edited(**changes: object) -> str:
    fields = json.loads(seal()) | changes
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize(
    "envelope",
    [
        edited(payload=base64.b64encode(b'{"claim":"more"}').decode()),
        edited(payloadType="text/plain"),
        edited(extra=1),
        edited(signatures=[{"keyid": "x", "sig": "!"}]),
        edited(signatures=[{"keyid": "x"}]),
        edited(signatures=3),
        edited(payload=3),
        edited()[:-30],
        edited().replace(":", ": ", 1),
        edited()[:-1] + ',"signatures":[]}',
        "[]",
        "[" * 100_000,
        "",
    ],
)
def test_forged_envelopes(envelope: str) -> None:
    with pytest.raises(VerificationError):
        unseal(envelope, PublicKey(a_key(1).public))


def test_another_key() -> None:
    with pytest.raises(VerificationError, match="not signed by this key"):
        unseal(seal(2), PublicKey(a_key(1).public))
