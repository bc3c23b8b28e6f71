"""The signatures under the receipts of a run and its checkpoint, checked with public keys alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grapheraser.errors import VerificationError
from grapheraser.receipts.envelope import PAYLOAD, check_signed
from grapheraser.receipts.keys import PublicKey
from grapheraser.receipts.notes import Checkpoint
from grapheraser.receipts.receipt import Receipt


@dataclass(frozen=True)
class Signatures:
    """The result of checking the signatures of a run.

    Attributes:
        verified: how many receipts are signed by one of the keys.
        unsigned: how many receipts are not signed.
        others: how many receipts are signed by other keys alone, so that nothing was checked.
        checkpoint: whether the log's checkpoint is signed by one of the keys.
        keys: ids of the keys that the verified ones are signed with.
        wrong: what is not as it should be, in words.
    """

    verified: int = 0
    unsigned: int = 0
    others: int = 0
    checkpoint: bool = False
    keys: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """``verified``, ``partly verified``, ``not checked``, ``unsigned``, ``none`` or ``wrong``.

        ``none`` where there are no receipts, ``not checked`` where there was no key to check with.
        """
        if self.wrong:
            return "wrong"
        if self.verified:
            return "partly verified" if self.unsigned or self.others else "verified"
        if self.others:
            return "not checked"
        return "unsigned" if self.unsigned else "none"

    @property
    def in_words(self) -> str:
        """The verdict in a line."""
        said = {
            "none": "none, for there are no receipts",
            "unsigned": f"none, {_receipts(self.unsigned)} unsigned",
            "not checked": "NOT CHECKED, for no public key of the operator is here",
            "wrong": "NOT verified",
        }
        if self.verdict in said:
            return said[self.verdict]
        verified = _receipts(self.verified) + " and the checkpoint" * self.checkpoint
        rest = f"; {self.unsigned} unsigned" if self.unsigned else ""
        rest += f"; {self.others} by other keys, not checked" if self.others else ""
        return f"{verified} verified, signed by {', '.join(self.keys)}{rest}"

    def to_dict(self) -> dict[str, Any]:
        lists = {"keys": list(self.keys), "wrong": list(self.wrong)}
        return {"verdict": self.verdict, "words": self.in_words, **self.__dict__, **lists}


def check_signatures(
    receipts: Sequence[Receipt],
    checkpoint: str | None,
    keys: Sequence[PublicKey],
    *,
    required: bool = False,
) -> Signatures:
    """Check the signatures of a log; with no key at all, none is checked.

    One of the operator's keys must have signed the checkpoint of the log as it is now, and every
    receipt too where that is ``required``.
    """
    known = {key.id: key for key in keys}
    used: dict[str, None] = {}
    counts = {"verified": 0, "unsigned": 0, "others": 0}
    wrong = []
    for receipt in receipts:
        signed = [one for one in receipt.signatures if one.key in known]
        number = receipt.sequence
        try:
            for one in signed:
                check_signed(PAYLOAD, receipt.payload, [one], known[one.key])
        except VerificationError:
            wrong.append(f"the signature of receipt {number} does not fit")
            continue
        counts["verified" if signed else "others" if receipt.is_signed else "unsigned"] += 1
        used |= dict.fromkeys(one.key for one in signed)
        if required and not signed:
            theirs = ", ".join(one.key for one in receipt.signatures)
            reason = f"signed by {theirs}, whose key was not given" if theirs else "unsigned"
            wrong.append(f"receipt {number} is {reason}")
    holds = any(is_signed(checkpoint, key) for key in keys)
    if keys and len(receipts) and not holds:
        if checkpoint is not None:
            whose = "that was given" if required else "of this machine"
            wrong.append(f"the checkpoint is not signed by a key {whose}")
        elif required or receipts[-1].is_signed:
            wrong.append("the log has no signed checkpoint")
    return Signatures(**counts, checkpoint=holds, keys=tuple(used), wrong=tuple(wrong))


def is_signed(checkpoint: str | None, key: PublicKey) -> bool:
    """Tell whether a checkpoint is signed by a key."""
    try:
        return checkpoint is not None and bool(Checkpoint.opened(checkpoint, key))
    except VerificationError:
        return False


def _receipts(count: int) -> str:
    return f"{count} receipt{'s' * (count != 1)}"
