"""The receipts of a run as a chain and a log: nothing left out, moved or written anew.

Each receipt names the digest of the one before, and starts from the state that that one led to. All
of them are the entries of a log (see `receipts.tree`), whose signed checkpoint can be kept
elsewhere. Standard library alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from grapheraser.errors import VerificationError
from grapheraser.receipts.notes import Checkpoint, Signer, Verifier
from grapheraser.receipts.receipt import Receipt
from grapheraser.receipts.tree import HASH_SIZE, Growing, root_of

_NAME = re.compile(r"[!-*,-~]{1,200}")  # what can be the name of a key; see `receipts.notes`


@dataclass(frozen=True)
class Ends:
    """Where a run's receipts begin and how far they have come; kept apart from them.

    Attributes:
        run: the name of the run's log, chosen at random when it is fitted.
        fitted: digest of the document of the state that was fitted.
        configuration: digest of the settings that it was fitted with.
        state: digest of the document of the current state.
        receipts: how many there are.
        head: digest of the last, None where there is none.
        log: roots of the complete subtrees of the log, largest first.
        checkpoint: of the log as it is now; None where it is empty or nothing is signed.
    """

    run: str
    fitted: str
    configuration: str
    state: str
    receipts: int = 0
    head: str | None = None
    log: tuple[str, ...] = ()
    checkpoint: str | None = None

    @property
    def tree(self) -> Growing:
        """The log, ready to grow."""
        return Growing(size=self.receipts, roots=[bytes.fromhex(root) for root in self.log])

    def then(self, receipt: Receipt, signer: Signer | None = None) -> Ends:
        """The ends with one receipt more."""
        tree = self.tree
        tree.add(receipt.leaf)
        checkpoint = Checkpoint(self.run, tree.size, tree.root)
        return replace(
            self,
            configuration=receipt.configuration,
            state=receipt.after,
            receipts=tree.size,
            head=receipt.digest,
            log=tuple(root.hex() for root in tree.roots),
            checkpoint=None if signer is None else checkpoint.signed_by(signer),
        )

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "log": list(self.log)}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Ends:
        """Read them back; anything else is a `VerificationError`."""
        try:
            texts = ("run", "fitted", "configuration", "state")
            ends = cls(**{**found, "log": tuple(found["log"])})
            fits = found.keys() == {f.name for f in fields(cls)}
            fits = fits and all(isinstance(getattr(ends, name), str) for name in texts)
            fits = fits and type(ends.receipts) is int and ends.receipts >= 0
            fits = fits and _NAME.fullmatch(ends.run) is not None
            fits = fits and all(
                isinstance(text, str | None) for text in (ends.head, ends.checkpoint)
            )
            fits = fits and all(len(root) == HASH_SIZE for root in ends.tree.roots)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise VerificationError("the ends of the receipts are not readable.") from error
        if not fits:
            raise VerificationError("the ends of the receipts are not readable.")
        return ends


def check_chain(
    receipts: Sequence[Receipt], *, state: str | None = None, ends: Ends | None = None
) -> None:
    """Check that the receipts follow one another without a gap.

    Args:
        receipts: in order.
        state: digest of the run's current state, which the last receipt must have led to.
        ends: what the run says of them; else nothing is known of the last receipt but its state.
    """
    previous: Receipt | None = None
    for number, receipt in enumerate(receipts, start=1):
        if receipt.sequence != number:
            raise VerificationError(f"receipt {number} carries number {receipt.sequence}.")
        if receipt.previous != (previous.digest if previous else None):
            raise VerificationError(f"receipt {number} does not follow from the one before it.")
        if previous is not None:
            if receipt.before != previous.after:
                raise VerificationError(f"receipt {number} starts from another state.")
            if receipt.register_before != previous.register_after:
                raise VerificationError(f"receipt {number} starts from another register.")
            if receipt.run != previous.run:
                raise VerificationError(f"receipt {number} is of another run.")
        previous = receipt
    if previous is not None and state is not None and previous.after != state:
        raise VerificationError("the last receipt did not lead to the run's current state.")
    if ends is not None:
        _check_ends(receipts, ends, state)


def _check_ends(receipts: Sequence[Receipt], ends: Ends, state: str | None) -> None:
    if len(receipts) != ends.receipts:
        raise VerificationError(
            f"there should be {ends.receipts} receipts (found {len(receipts)})."
        )
    last = receipts[-1] if len(receipts) else None
    if (last.digest if last else None) != ends.head:
        raise VerificationError("the last receipt is not the one that was written.")
    if last is not None and last.run != ends.run:
        raise VerificationError("the receipts are of another run.")
    first = receipts[0].before if last is not None else state
    if first is not None and first != ends.fitted:
        raise VerificationError("the receipts do not start from the state that was fitted.")
    leaves = [receipt.leaf for receipt in receipts]
    if ends.tree.root != root_of(leaves):
        raise VerificationError("the log does not hold these receipts.")
    if ends.checkpoint is not None:
        found = Checkpoint.read(ends.checkpoint)
        if found != Checkpoint(ends.run, len(leaves), root_of(leaves)):
            raise VerificationError("the checkpoint is not that of these receipts.")


def check_against(receipts: Sequence[Receipt], note: str, verifier: Verifier) -> Checkpoint:
    """Check that the log of these receipts begins as a checkpoint says that was kept elsewhere.

    Args:
        receipts: all of the run, in order.
        note: the checkpoint.
        verifier: the key that must have signed it.
    """
    kept = Checkpoint.opened(note, verifier)
    if len(receipts) and receipts[0].run != kept.origin:
        raise VerificationError(
            f"the checkpoint is of another run ({kept.origin}, not {receipts[0].run})."
        )
    if kept.size > len(receipts):
        raise VerificationError(
            f"receipts were dropped: there were {kept.size} (found {len(receipts)})."
        )
    if root_of([receipt.leaf for receipt in receipts[: kept.size]]) != kept.root:
        raise VerificationError("the log was rewritten: it does not begin as it did.")
    return kept
