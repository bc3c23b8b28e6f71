"""The register: who is there and who is not, shown without showing anyone else."""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapheraser.errors import VerificationError
from grapheraser.graph.proof.register import Register, RegisterPage
from grapheraser.receipts.register import Opening, SlotProof, slot_of

NONE = np.zeros(0, dtype=np.int64)


def root_by_hand(register: Register) -> str:
    """The root from the definition: a bin for all slots that begin with the same digits."""
    digits = register.digits + 2
    level: dict[str, bytes] = {}
    bins: dict[str, list[tuple[int, bytes]]] = {}
    for slot, nonce, node in register.entries.tolist():
        held = hashlib.sha256(b"\x02" + bytes(nonce) + struct.pack("<q", node)).digest()
        bins.setdefault(f"{slot:016x}"[:digits], []).append((slot, held))
    for digit, entries in bins.items():
        content = b"".join(slot.to_bytes(8, "big") + held for slot, held in sorted(entries))
        level[digit] = hashlib.sha256(b"\x00" + content).digest()
    for length in range(digits - 1, -1, -1):
        above: dict[str, bytes] = {}
        for start in {name[:length] for name in level}:
            there = [n for n in range(16) if f"{start}{n:x}" in level]
            mask = sum(1 << n for n in there).to_bytes(2, "little")
            content = b"".join(level[f"{start}{n:x}"] for n in there)
            above[start] = hashlib.sha256(b"\x01" + mask + content).digest()
        level = above
    top = level.get("", hashlib.sha256(b"\x01\x00\x00").digest())
    return hashlib.sha256(b"\x03" + bytes([digits]) + top).hexdigest()


@pytest.mark.parametrize("count", [0, 1, 300, 3000])
def test_the_root_is_what_its_definition_says(count: int) -> None:
    register = Register.of(np.arange(count) * 7)
    assert register.root == root_by_hand(register)
    changed = register.changed(np.arange(0, count, 5) * 7, np.array([10**15, 10**16]))
    assert changed.root == root_by_hand(changed)
    assert changed.is_of(np.sort(changed.entries["node"]).astype(np.int64))


@pytest.mark.parametrize("count", [20, 3000])
def test_the_root_is_the_same_however_nodes_left(count: int) -> None:
    register = Register.of(np.arange(count))
    for node in range(0, count, max(1, count // 18)):
        register = register.changed(np.array([node]), NONE)
        assert register.root == root_by_hand(register)
        assert len(register) == len(register.entries)
    again = Register.restored(
        register.key, [RegisterPage(p.entries, p.digits) for p in register.pages]
    )
    assert again.root == register.root


@given(st.data())
def test_a_change_gives_the_nodes_that_are_left(data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=40, unique=True))
    gone = data.draw(st.lists(st.sampled_from(ids), unique=True))
    new = data.draw(st.lists(st.integers(0, 2**63 - 1).filter(lambda i: i not in ids), unique=True))
    before = Register.of(np.array(ids))
    after = before.changed(np.array(gone, dtype=np.int64), np.array(new, dtype=np.int64))
    left = np.array(sorted({*ids, *new} - {*gone}), dtype=np.int64)
    assert after.is_of(left)
    assert not len(left) or not after.is_of(left[1:])
    assert before.is_of(np.array(sorted(ids)))
    assert after.root == root_by_hand(after)


def test_pages_are_cut_again_when_a_register_has_grown_or_shrunk() -> None:
    small = Register.of(np.arange(900))
    assert small.digits == 0
    grown = small.changed(NONE, np.arange(1000, 4000))
    assert grown.digits == 1
    shrunk = grown.changed(np.arange(1000, 3990), np.array([5000]))
    assert shrunk.changed(np.arange(20, 900), NONE).digits == 0
    for register in (grown, shrunk):
        assert register.root == root_by_hand(register)


def opening(count: int = 3000, node: int = 42) -> tuple[Opening, str, str]:
    before = Register.of(np.arange(count))
    after = before.changed(np.array([node, node + 1]), NONE)
    slot = slot_of(before.key, node)
    proofs = before.proof(slot), after.proof(slot)
    return Opening(node, slot, before.nonce(node), *proofs), before.root, after.root


@pytest.mark.parametrize("count", [50, 3000, 20_000])
def test_a_person_sees_that_their_slot_was_theirs_and_is_empty(count: int) -> None:
    mine, before, after = opening(count)
    mine.check(before, after)
    read = Opening.from_dict(mine.to_dict())
    assert read == mine
    read.check(before, after)
    assert isinstance(mine.to_dict()["slot"], str), "it may exceed 2**53"


def test_nobody_else_is_shown() -> None:
    """What others hold is shown as digests of their slots under a key, hidden by nonces."""
    register = Register.of(np.arange(3000))
    shown = str(register.proof(slot_of(register.key, 42)).to_dict())
    nonces = {bytes(nonce).hex() for nonce in register.entries["nonce"].tolist()}
    assert not any(nonce in shown for nonce in nonces)


FORGED: dict[str, Callable[[Opening], Opening]] = {
    "another node": lambda o: dataclasses.replace(o, node=41),
    "another nonce": lambda o: dataclasses.replace(o, nonce=bytes(16)),
    "another slot": lambda o: dataclasses.replace(o, slot=o.slot ^ 1),
    "a far slot": lambda o: dataclasses.replace(o, slot=o.slot ^ 2**63),
    "still there": lambda o: dataclasses.replace(o, after=o.before),
    "never there": lambda o: dataclasses.replace(o, before=o.after),
    "an emptied bin": lambda o: dataclasses.replace(
        o, after=dataclasses.replace(o.before, entries=())
    ),
    "a bin without the slot": lambda o: dataclasses.replace(
        o,
        after=dataclasses.replace(
            o.before, entries=tuple(e for e in o.before.entries if e[0] != o.slot)
        ),
    ),
    "a shorter way": lambda o: dataclasses.replace(
        o, after=dataclasses.replace(o.after, steps=o.after.steps[:1], entries=())
    ),
    "fewer digits": lambda o: dataclasses.replace(
        o, after=dataclasses.replace(o.after, digits=o.after.digits - 1)
    ),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_opening_is_refused(case: str) -> None:
    mine, before, after = opening()
    with pytest.raises(VerificationError):
        FORGED[case](mine).check(before, after)


@pytest.mark.parametrize(
    "change",
    [
        {"node": 42},
        {"node": "x"},
        {"slot": str(2**64)},
        {"nonce": "00"},
        {"before": None},
        {"after": {}},
        {"extra": 1},
    ],
)
def test_what_is_no_opening_is_refused(change: dict[str, Any]) -> None:
    mine, _, _ = opening()
    with pytest.raises(VerificationError):
        Opening.from_dict({**mine.to_dict(), **change})


@pytest.mark.parametrize(
    "change",
    [
        {"digits": 17},
        {"digits": 0},
        {"steps": [[2**16, []]]},
        {"steps": [["1", []]]},
        {"steps": [[1, ["00"]]]},
        {"entries": [["5", "zz"]]},
        {"entries": 3},
    ],
)
def test_what_is_no_proof_is_refused(change: dict[str, Any]) -> None:
    proof = opening()[0].after
    with pytest.raises(VerificationError):
        SlotProof.from_dict({**proof.to_dict(), **change})


def test_nothing_of_a_node_that_left_stays_in_memory() -> None:
    before = Register.of(np.arange(3000))
    nonce = before.nonce(42)
    after = before.changed(np.array([42]), NONE)
    del before
    for page in after.pages:
        base = page.entries if page.entries.base is None else page.entries.base
        assert nonce not in bytes(np.ascontiguousarray(base).tobytes())
