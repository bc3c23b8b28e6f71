"""Signed notes and checkpoints, against the note of Go's documentation and against forgeries."""

from __future__ import annotations

import base64

import pytest

from grapheraser.errors import VerificationError
from grapheraser.receipts.keys import (
    Checkpoint,
    check_note,
    read_verifier_key,
    sign_note,
    verifier_key,
)
from grapheraser.receipts.tree import leaf_hash

pytest.importorskip("cryptography", reason="needs the extra 'sign'")
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from grapheraser.receipts.keys import PublicKey, SigningKey

NOTE = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
    "\n"
    "\u2014 PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdn"
    "gotpRZb6KE6RyyBwJnAM=\n"
)
VERIFIER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
SECRET = base64.b64decode("AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz")[1:]


def a_key(seed: int = 1) -> SigningKey:
    return SigningKey(Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


def test_the_published_note() -> None:
    name, public = read_verifier_key(VERIFIER)
    text = check_note(NOTE, name, PublicKey(public))
    signer = SigningKey(Ed25519PrivateKey.from_private_bytes(SECRET))
    assert signer.public == public
    assert sign_note(text, name, signer) == NOTE
    assert verifier_key(name, public) == VERIFIER


CHECKPOINT = Checkpoint("example.org/runs/1", 17, leaf_hash(b"root"))


def test_a_checkpoint_comes_back() -> None:
    note = CHECKPOINT.signed_by(a_key())
    assert Checkpoint.opened(note, PublicKey(a_key().public)) == CHECKPOINT


@pytest.mark.parametrize(
    "forge",
    [
        lambda note: note.replace("\n17\n", "\n18\n"),
        lambda note: note.replace("runs/1", "runs/2"),
        lambda note: note[:-8] + "AAAAAA=\n",
        lambda note: note.split("\n\n")[0] + "\n\n",
        lambda note: note[: len(note) // 2],
        lambda note: note.replace("\n17\n", "\n017\n"),
        lambda note: note.replace("\n17\n", "\n-1\n"),
        lambda note: note.replace("\n", "\r\n"),
        lambda note: "",
        lambda note: note * 10_000,
    ],
)
def test_forged_checkpoints(forge) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(VerificationError):
        Checkpoint.opened(forge(CHECKPOINT.signed_by(a_key())), PublicKey(a_key().public))


def test_another_key() -> None:
    with pytest.raises(VerificationError, match="not signed by"):
        Checkpoint.opened(CHECKPOINT.signed_by(a_key(2)), PublicKey(a_key().public))


def test_other_signatures_beside_it_are_passed_over() -> None:
    text = CHECKPOINT.signed_by(a_key())
    other = sign_note(text.split("\n\n")[0] + "\n", "witness", a_key(2)).split("\n\n")[1]
    assert Checkpoint.opened(text + other, PublicKey(a_key().public)) == CHECKPOINT


@pytest.mark.parametrize(
    "line", ["", "a+b", VERIFIER.replace("c74f20a3", "c74f20a4"), VERIFIER[:-4], "x+00+AA=="]
)
def test_bad_verifier_keys(line: str) -> None:
    with pytest.raises(VerificationError):
        read_verifier_key(line)


@pytest.mark.parametrize("origin", ["", "with space", "a+b"])
def test_names_that_no_key_can_have(origin: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        Checkpoint(origin, 1, leaf_hash(b"")).signed_by(a_key())
