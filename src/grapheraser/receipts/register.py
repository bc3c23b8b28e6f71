"""Proofs about a run's register, which says who is in the run without giving anyone away.

Every node has a slot, 64 bits of a keyed hash of its id, and in it a commitment to the id that
nobody can work out without the node's own nonce. `graph.proof.register` keeps the slots; the root
of the tree over them is in every receipt. A person's opening shows that a slot was theirs in one
state, and a proof that it is empty in the next. Once the nonce is gone, neither the commitment nor
any root that held it can be worked out again.

    commitment  SHA-256(2, nonce, id)
    bin         SHA-256(0, slot and commitment of each node whose slot begins with the same digits)
    node        SHA-256(1, two bytes that say which branches are there, their digests)
    root        SHA-256(3, the number of digits that lead to a bin, the digest of the top node)

Standard library alone.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grapheraser.errors import VerificationError
from grapheraser.receipts.tree import LEVELS, Step, root_above

KEY_SIZE, NONCE_SIZE = 32, 16
COMMITMENT = b"\x02"
_BIN, _ROOT = b"\x00", b"\x03"


def slot_of(key: bytes, node: int) -> int:
    """The slot of a node under the key of a run."""
    return int.from_bytes(hashlib.sha256(key + struct.pack("<q", node)).digest()[:8], "big")


def commitment_of(nonce: bytes, node: int) -> bytes:
    """Return the commitment that a slot holds."""
    return hashlib.sha256(COMMITMENT + nonce + struct.pack("<q", node)).digest()


def bin_digest(content: bytes) -> bytes:
    """The digest of a bin, from the slots (big-endian) and commitments in it."""
    return hashlib.sha256(_BIN + content).digest()


def register_root(digits: int, top: bytes) -> str:
    """The root of a register, as receipts name it."""
    return hashlib.sha256(_ROOT + bytes([digits]) + top).hexdigest()


@dataclass(frozen=True)
class SlotProof:
    """All that is in one bin of a register, or that there is nothing."""

    digits: int  # how many of a slot lead to a bin
    entries: tuple[tuple[int, bytes], ...]  # the slots in the bin, ascending, and their commitments
    # From the root down, to the bin or to the empty branch on the way to it.
    steps: tuple[Step, ...]

    def root(self, slot: int) -> str:
        """The root of the register for which this is the bin of a slot."""
        shift = 4 * (LEVELS - self.digits)
        slots = [entry[0] for entry in self.entries]
        if slots != sorted(set(slots)) or any(other >> shift != slot >> shift for other in slots):
            raise VerificationError("the proof shows another part of the register.")
        content = b"".join(other.to_bytes(8, "big") + held for other, held in self.entries)
        leaf = bin_digest(content) if content else None
        try:
            top = root_above(slot, self.digits, leaf, self.steps)
        except ValueError as error:
            raise VerificationError(f"the register: {error}.") from error
        return register_root(self.digits, top)

    def held(self, slot: int) -> bytes | None:
        """The commitment in a slot of this bin; None where it is empty."""
        return dict(self.entries).get(slot)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; numbers that may be large as text."""
        return {
            "digits": self.digits,
            "entries": [[str(slot), held.hex()] for slot, held in self.entries],
            "steps": [[s.branches, [digest.hex() for digest in s.digests]] for s in self.steps],
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> SlotProof:
        """Read it back; anything else is a `VerificationError`."""
        try:
            entries = tuple((_number(slot), _digest(held)) for slot, held in fields["entries"])
            steps = tuple(Step(int(mask), _digests(held)) for mask, held in fields["steps"])
            proof = cls(int(fields["digits"]), entries, steps)
            fits = 1 <= proof.digits <= LEVELS and all(0 <= s.branches < 2**16 for s in steps)
        except (KeyError, TypeError, ValueError) as error:
            raise VerificationError("not a proof about a slot.") from error
        if not fits or proof.to_dict() != fields:
            raise VerificationError("not a proof about a slot.")
        return proof


@dataclass(frozen=True)
class Opening:
    """The proof that a person is given about their node, and the operator then forgets."""

    node: int  # its id
    slot: int  # where it was
    nonce: bytes  # what hid it there
    # before, after: the bin of the slot in both states.
    before: SlotProof
    after: SlotProof

    def check(self, before: str, after: str) -> None:
        """Raise `VerificationError` unless the slot was this node's, and then was empty.

        ``before`` and ``after`` are the roots of the register in both states.
        """
        if self.before.root(self.slot) != before:
            raise VerificationError("the slot is not in the register of the state before.")
        if self.before.held(self.slot) != commitment_of(self.nonce, self.node):
            raise VerificationError("the slot held somebody else in the state before.")
        if self.after.root(self.slot) != after:
            raise VerificationError("the slot is not in the register of the state after.")
        if self.after.held(self.slot) is not None:
            raise VerificationError("the slot is not empty in the state after.")

    def to_dict(self) -> dict[str, Any]:
        return {
            "node": str(self.node),
            "slot": str(self.slot),
            "nonce": self.nonce.hex(),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Opening:
        """Read it back; anything else is a `VerificationError`."""
        try:
            node, slot = int(fields["node"]), _number(fields["slot"])
            nonce = bytes.fromhex(fields["nonce"])
            struct.pack("<q", node)
            proofs = [SlotProof.from_dict(fields[name]) for name in ("before", "after")]
        except (KeyError, TypeError, ValueError, struct.error) as error:
            raise VerificationError("not an opening of a slot.") from error
        opening = cls(node, slot, nonce, *proofs)
        if len(nonce) != NONCE_SIZE or opening.to_dict() != fields:
            raise VerificationError("not an opening of a slot.")
        return opening


def _number(text: str) -> int:
    number = int(text)
    if not 0 <= number < 2**64:
        raise ValueError("not a slot")
    return number


def _digest(text: str) -> bytes:
    digest = bytes.fromhex(text)
    if len(digest) != hashlib.sha256().digest_size:
        raise ValueError("not a digest")
    return digest


def _digests(texts: Iterable[str] | Sequence[str]) -> tuple[bytes, ...]:
    return tuple(map(_digest, texts))
