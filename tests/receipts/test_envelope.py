"""DSSE envelopes: the published encoding, round trips, forgeries."""

from __future__ import annotations

import base64
import json

import pytest

from grapheraser.errors import VerificationError
from grapheraser.receipts.envelope import contents, encoded, is_signed, seal, unseal

pytest.importorskip("cryptography", reason="needs the extra 'sign'")
from grapheraser.receipts.keys import PublicKey
from tests.receipts.test_notes import a_key

KIND, PAYLOAD = "application/vnd.in-toto+json", b'{"claim":"exact"}'


def test_the_published_encoding() -> None:
    assert encoded("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_round_trip() -> None:
    envelope = seal(KIND, PAYLOAD, {a_key().id: a_key()})
    assert unseal(envelope, KIND, PublicKey(a_key().public)) == PAYLOAD
    assert is_signed(envelope, KIND)


def test_an_unsigned_envelope_says_so() -> None:
    envelope = seal(KIND, PAYLOAD, {})
    assert contents(envelope, KIND) == PAYLOAD
    assert not is_signed(envelope, KIND)
    with pytest.raises(VerificationError, match="unsigned"):
        unseal(envelope, KIND, PublicKey(a_key().public))


def edited(**changes: object) -> str:
    fields = json.loads(seal(KIND, PAYLOAD, {a_key().id: a_key()})) | changes
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
        unseal(envelope, KIND, PublicKey(a_key().public))


def test_another_key() -> None:
    with pytest.raises(VerificationError, match="not signed by this key"):
        unseal(seal(KIND, PAYLOAD, {"x": a_key(2)}), KIND, PublicKey(a_key().public))
