"""Witnesses cosign logs that only grow, to the letter of C2SP's tlog-witness and tlog-cosignature.

The oracle below is written from the specifications with the standard library and `cryptography`.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from grapheraser.errors import RunBusyError, VerificationError
from grapheraser.receipts.keys import Checkpoint, PublicKey, SigningKey, verifier_key
from grapheraser.receipts.tree import consistency_proof, root_of
from grapheraser.receipts.witness import (
    SIZE_TYPE,
    TrustedLog,
    Witness,
    WitnessKey,
    check_cosigned,
    cosign,
    request_body,
)
from grapheraser.store.witness import held_by_witness

ORIGIN, NAME, NOW = "example.com/log", "witness.example/w1", 1_700_000_000
LEAVES = [hashlib.sha256(bytes([0, n])).digest() for n in range(40)]
FORKED = [*LEAVES[:5], *(hashlib.sha256(bytes([9, n])).digest() for n in range(35))]


class InMemory(dict[str, str]):
    """What a witness has cosigned, by origin."""

    def put(self, origin: str, note: str) -> None:
        self[origin] = note


@pytest.fixture(scope="module")
def log_key() -> SigningKey:
    return SigningKey(Ed25519PrivateKey.generate())


@pytest.fixture(scope="module")
def own_key() -> SigningKey:
    return SigningKey(Ed25519PrivateKey.generate())


@pytest.fixture
def witness(log_key: SigningKey, own_key: SigningKey) -> Witness:
    logs = [TrustedLog(PublicKey(log_key.public), ORIGIN)]
    return Witness(NAME, own_key, logs, InMemory(), clock=lambda: NOW)


def note_of(leaves: list[bytes], key: SigningKey, origin: str = ORIGIN) -> str:
    return Checkpoint(origin, len(leaves), root_of(leaves)).signed_by(key)


def body(old: int, size: int, key: SigningKey, leaves: list[bytes] = LEAVES) -> bytes:
    proof = consistency_proof(leaves[:size], old) if 0 < old < size else []
    return request_body(old, proof, note_of(leaves[:size], key))


# -- an independent reading of the specifications ------------------------------------------------


def cosigned_at(line: str, note: str, name: str, public: bytes) -> int:
    """The time of a cosignature line; raises unless it is one of this key under the note."""
    dash, found, encoded = line.rstrip("\n").split(" ")
    assert (dash, found) == ("—", name)
    raw = base64.b64decode(encoded, validate=True)
    assert raw[:4] == hashlib.sha256(name.encode() + b"\n\x04" + public).digest()[:4]
    seconds = int.from_bytes(raw[4:12], "big")
    text = note[: note.rindex("\n\n") + 1]
    message = f"cosignature/v1\ntime {seconds}\n{text}".encode()
    Ed25519PublicKey.from_public_bytes(public).verify(raw[12:], message)
    return seconds


def test_a_cosignature_is_what_the_specification_says(
    witness: Witness, log_key: SigningKey, own_key: SigningKey
) -> None:
    answer = witness.add_checkpoint(body(0, 7, log_key))
    assert (answer.status, answer.body[-1]) == (200, "\n")
    note = note_of(LEAVES[:7], log_key)
    assert cosigned_at(answer.body, note, NAME, own_key.public) == NOW
    with pytest.raises(InvalidSignature):
        cosigned_at(answer.body, note_of(LEAVES[:8], log_key), NAME, own_key.public)


def test_the_example_of_the_specification_is_read_as_meant() -> None:
    """The checkpoint and the witness's line of tlog-cosignature: name, key id and time."""
    line = (
        "— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJs"
        "X3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n"
    )
    from grapheraser.receipts.keys import signatures_of

    text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    ((name, raw),) = signatures_of(f"{text}\n{line}")
    assert (name, raw[:4].hex(), len(raw)) == ("witness.example.com/w1", "8d66cf3f", 76)
    assert int.from_bytes(raw[4:12], "big") == 1_679_315_147


def test_the_key_of_a_witness_is_a_verifier_key_of_type_4(own_key: SigningKey) -> None:
    key = WitnessKey(NAME, PublicKey(own_key.public))
    name, identity, encoded = key.line.split("+", 2)
    raw = base64.b64decode(encoded)
    assert (name, raw) == (NAME, b"\x04" + own_key.public)
    assert identity == hashlib.sha256(NAME.encode() + b"\n" + raw).digest()[:4].hex()
    assert WitnessKey.read(key.line) == key
    with pytest.raises(VerificationError, match="witness"):
        WitnessKey.read(verifier_key(NAME, own_key.public))  # of a log


# -- what is cosigned, and what is not -----------------------------------------------------------


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6))
def test_a_log_that_grows_is_cosigned_at_every_size(
    sizes: list[int], log_key: SigningKey, own_key: SigningKey
) -> None:
    logs = [TrustedLog(PublicKey(log_key.public), ORIGIN)]
    witness, old = Witness(NAME, own_key, logs, InMemory(), clock=lambda: NOW), 0
    for size in sorted(sizes):
        answer = witness.add_checkpoint(body(old, size, log_key))
        assert answer.status == 200
        cosigned_at(answer.body, note_of(LEAVES[:size], log_key), NAME, own_key.public)
        old = size


@given(seen=st.integers(6, 39), size=st.integers(6, 40))
def test_a_fork_is_refused_whatever_its_sizes(
    seen: int, size: int, log_key: SigningKey, own_key: SigningKey
) -> None:
    states = InMemory()
    logs = [TrustedLog(PublicKey(log_key.public), ORIGIN)]
    witness = Witness(NAME, own_key, logs, states)
    assert witness.add_checkpoint(body(0, seen, log_key)).status == 200
    before = dict(states)
    for old in {0, min(seen, size), 5}:
        assert witness.add_checkpoint(body(old, size, log_key, FORKED)).status in (409, 422)
    assert states == before


def test_every_refusal_has_its_status(
    witness: Witness, log_key: SigningKey, own_key: SigningKey
) -> None:
    assert witness.add_checkpoint(body(0, 8, log_key)).status == 200
    stranger = SigningKey(Ed25519PrivateKey.generate())
    other = request_body(0, [], note_of(LEAVES[:8], log_key, "example.com/other"))
    behind = witness.add_checkpoint(body(3, 9, log_key))
    assert (behind.status, behind.body, behind.media_type) == (409, "8\n", SIZE_TYPE)
    again = witness.add_checkpoint(body(8, 8, log_key))
    assert again.status == 200  # the same once more
    replaced = request_body(8, [], note_of(FORKED[:8], log_key))
    wrong = request_body(8, [LEAVES[0]], note_of(LEAVES[:9], log_key))
    extra = request_body(8, [LEAVES[0]], note_of(LEAVES[:8], log_key))
    expected = {
        404: other,
        403: body(8, 9, stranger),
        400: body(9, 8, log_key),
        409: replaced,
        422: wrong,
    }
    for status, sent in expected.items():
        assert witness.add_checkpoint(sent).status == status
    assert witness.add_checkpoint(extra).status == 422
    assert witness.add_checkpoint(body(8, 12, log_key)).status == 200  # and it goes on


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"old 0",
        b"old 0\n",
        b"old 00\n\n",
        b"old -1\n\n",
        b"old 1_0\n\n",
        b"new 0\n\n",
        b"old 0\nnot base64\n\n",
        b"old 0\nQUJD\n\n",
        b"old 0\n\nno checkpoint",
        b"\xff\xfe",
        "old \u0663\n\n".encode(),
        b"old 0\n" + b"\n".join([base64.b64encode(bytes(32))] * 64) + b"\n\n",
        b"old 0\n\n" + b"x" * 300_000,
    ],
)
def test_what_is_no_request_is_a_bad_request(witness: Witness, odd: bytes) -> None:
    assert witness.add_checkpoint(odd).status == 400


@given(st.binary(max_size=300), st.integers(0, 200))
def test_no_bytes_make_a_witness_fail(noise: bytes, at: int) -> None:
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(32)))
    witness = Witness(NAME, key, [TrustedLog(PublicKey(key.public))], InMemory())
    good = body(0, 3, key)
    for sent in (noise, good[:at] + noise + good[at:], good[: at + len(noise)]):
        assert witness.add_checkpoint(sent).status in (200, 400, 403, 404, 409, 422)


def test_signatures_of_others_are_ignored(
    witness: Witness, log_key: SigningKey, own_key: SigningKey
) -> None:
    stranger = SigningKey(Ed25519PrivateKey.generate())
    note = note_of(LEAVES[:3], log_key)
    text = note[: note.rindex("\n\n") + 2]
    theirs = cosign(note, "other.example", stranger, NOW)
    sent = request_body(0, [], text + theirs + note[len(text) :])
    assert witness.add_checkpoint(sent).status == 200


def test_any_log_of_a_key_is_known_where_no_origin_was_given(
    log_key: SigningKey, own_key: SigningKey
) -> None:
    witness = Witness(NAME, own_key, [TrustedLog(PublicKey(log_key.public))], InMemory())
    for origin in ("one", "two"):
        sent = request_body(0, [], note_of(LEAVES[:3], log_key, origin))
        assert witness.add_checkpoint(sent).status == 200
    stranger = SigningKey(Ed25519PrivateKey.generate())
    sent = request_body(3, [], note_of(LEAVES[:3], stranger, "one"))
    assert witness.add_checkpoint(sent).status == 403
    sent = request_body(0, [], note_of(LEAVES[:3], stranger, "three"))
    assert witness.add_checkpoint(sent).status == 404


def test_two_requests_at_once_never_take_a_log_back(
    log_key: SigningKey, own_key: SigningKey
) -> None:
    """The race that the specification describes."""
    states, begun = InMemory(), threading.Barrier(2, timeout=60)
    logs = [TrustedLog(PublicKey(log_key.public), ORIGIN)]
    witness = Witness(NAME, own_key, logs, states)
    assert witness.add_checkpoint(body(0, 4, log_key)).status == 200

    def ask(size: int) -> int:
        begun.wait()
        return witness.add_checkpoint(body(4, size, log_key)).status

    with ThreadPoolExecutor(2) as pool:
        found = dict(zip((5, 9), pool.map(ask, (5, 9)), strict=True))
    assert sorted(found.values()) == [200, 409]
    (won,) = [size for size, status in found.items() if status == 200]
    assert Checkpoint.read(states[ORIGIN]).size == won


# -- its folder ----------------------------------------------------------------------------------


def test_a_witness_goes_on_where_it_was(tmp_path: Path, log_key: SigningKey) -> None:
    logs = [TrustedLog(PublicKey(log_key.public), ORIGIN)]
    lines = set()
    for old, size in ((0, 6), (6, 9)):
        with held_by_witness(tmp_path / "w") as folder:
            witness = Witness(NAME, folder.signing_key(), logs, folder)
            lines.add(witness.key.line)
            assert witness.add_checkpoint(body(old, size, log_key)).status == 200
            refused = witness.add_checkpoint(body(0, 9, log_key, FORKED))
            assert (refused.status, refused.body) == (409, f"{size}\n")
    assert len(lines) == 1


def test_a_folder_has_one_witness_at_a_time(tmp_path: Path) -> None:
    with held_by_witness(tmp_path), pytest.raises(RunBusyError), held_by_witness(tmp_path):
        pass


# -- checking ------------------------------------------------------------------------------------


def test_a_quorum_counts_witnesses_not_lines(log_key: SigningKey) -> None:
    keys = [SigningKey(Ed25519PrivateKey.generate()) for _ in range(3)]
    known = [WitnessKey(f"w{n}", PublicKey(key.public)) for n, key in enumerate(keys)]
    note = note_of(LEAVES[:3], log_key)
    signed = note + "".join(cosign(note, f"w{n}", keys[n], NOW) for n in (0, 1))
    assert len(check_cosigned(signed, known, 2)) == 2
    assert check_cosigned(signed, known[:1]) == ["cosigned by w0, 2023-11-14T22:13:20+00:00"]
    with pytest.raises(VerificationError, match="2 of 3 witnesses"):
        check_cosigned(signed, known)
    twice = note + cosign(note, "w0", keys[0], NOW) + cosign(note, "w0", keys[0], NOW + 1)
    for given_keys in (known, [known[0], known[0], known[1]]):
        with pytest.raises(VerificationError, match="1 of"):
            check_cosigned(twice, given_keys, 2)
    aliases = [WitnessKey("w0", known[0].key), WitnessKey("alias", known[0].key)]
    both = note + cosign(note, "w0", keys[0], NOW) + cosign(note, "alias", keys[0], NOW)
    with pytest.raises(VerificationError):
        check_cosigned(both, aliases, 2)  # one key under two names is one witness


def test_a_cosignature_of_another_checkpoint_or_time_does_not_fit(
    log_key: SigningKey, own_key: SigningKey
) -> None:
    key = WitnessKey(NAME, PublicKey(own_key.public))
    note, other = note_of(LEAVES[:3], log_key), note_of(LEAVES[:4], log_key)
    with pytest.raises(VerificationError, match="does not fit"):
        check_cosigned(note + cosign(other, NAME, own_key, NOW), [key])
    line = cosign(note, NAME, own_key, NOW)
    raw = bytearray(base64.b64decode(line.split(" ")[2]))
    raw[11] ^= 1
    moved = f"— {NAME} {base64.b64encode(raw).decode()}\n"
    with pytest.raises(VerificationError, match="does not fit"):
        check_cosigned(note + moved, [key])
