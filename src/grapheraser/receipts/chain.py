"""The receipts of a run as a chain and a log: nothing left out, moved or written anew.

Each receipt names the digest of the one before, and starts from the state that that one led to. All
of them are the entries of a log (see `receipts.tree`), whose signed checkpoint can be kept
elsewhere. Receipts in a folder are read when they are asked for. Standard library alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, overload

from grapheraser.errors import VerificationError
from grapheraser.receipts.keys import Checkpoint, PublicKey, SigningKey
from grapheraser.receipts.receipt import Receipt
from grapheraser.receipts.tree import HASH_SIZE, Growing, root_of

_NAME = re.compile(r"[!-*,-~]{1,200}")  # what can be the name of a key; see `receipts.keys`


@dataclass(frozen=True)
class Ends:
    """The beginning and the end of a run's receipts; kept apart from them.

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

    def then(self, receipt: Receipt, signer: SigningKey | None = None) -> Ends:
        """Return the ends with one receipt more."""
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


def check_against(
    receipts: Sequence[Receipt], note: str, verifier: PublicKey, run: str | None = None
) -> Checkpoint:
    """Check that the log of these receipts begins as a checkpoint says that was kept elsewhere.

    Args:
        receipts: all of the run, in order.
        note: the checkpoint.
        verifier: the key that must have signed it.
        run: name of the log; None: the one that the first receipt says.
    """
    kept = Checkpoint.opened(note, verifier)
    run = receipts[0].run if run is None and len(receipts) else run
    if run is not None and run != kept.origin:
        raise VerificationError(
            f"the log is a new one: the checkpoint is of another run ({kept.origin}, not {run}).",
            hint="a restore from a backup begins a new log, as a new fit does; if it was neither, "
            "the run was replaced.",
        )
    if kept.size > len(receipts):
        raise VerificationError(
            f"receipts were dropped: there were {kept.size} (found {len(receipts)})."
        )
    if root_of([receipt.leaf for receipt in receipts[: kept.size]]) != kept.root:
        raise VerificationError("the log was rewritten: it does not begin as it did.")
    return kept


Read = Callable[[int, str], Receipt]


class Stored:
    """Receipts 1 to ``count`` of a chain whose last has the digest ``head``.

    Each receipt names the digest of the one before, so they are found, read and checked from the
    last one back. ``read`` gives the receipt of a number and a digest, or raises an error.

    Args:
        count: how many there are.
        head: digest of the last.
        read: gives the receipt of a number and a digest, or raises an error.
    """

    def __init__(self, count: int, head: str, read: Read) -> None:
        self.count = count
        self._read = read
        self._last = read(count, head)
        self._digests = [head]  # from the last one back, as far as they were asked for

    def receipt(self, number: int) -> Receipt:
        """One receipt; the first is number 1."""
        return self._last if number == self.count else self._read(number, self.digest(number))

    def digest(self, number: int) -> str:
        """The digest of one receipt."""
        back = self.count - number
        if back >= len(self._digests):
            known = list(self._digests)
            for _ in self._backwards(self.count - len(known) + 1, known):
                if len(known) > back:
                    break
            self._digests = known
        return self._digests[back]

    def all(self) -> list[Receipt]:
        """Every receipt, oldest first, each read once."""
        digests = self._digests[:1]
        found = list(self._backwards(self.count, digests))[::-1]
        self._digests = digests
        return found

    def _backwards(self, number: int, digests: list[str]) -> Iterator[Receipt]:
        """Receipts from this one back; adds the digest of each that is left to ``digests``."""
        for at in range(number, 0, -1):
            receipt = self._last if at == self.count else self._read(at, digests[-1])
            if at > 1:
                if not isinstance(receipt.previous, str):
                    raise VerificationError(f"receipt {at} does not follow from the one before it.")
                digests.append(receipt.previous)
            yield receipt


class Receipts(Sequence[Receipt]):
    """The receipts of a run, oldest first: those that are stored, and those made since.

    Only the last may tell what is not kept. Equal to any sequence of the same receipts.
    """

    def __init__(self, new: Iterable[Receipt] = (), stored: Stored | None = None) -> None:
        self._new = tuple(new)
        self._stored = stored
        self._count = 0 if stored is None else stored.count

    @classmethod
    def of(cls, receipts: Sequence[Receipt]) -> Receipts:
        """Wrap a sequence of receipts, unless it is one of these."""
        return receipts if isinstance(receipts, Receipts) else cls(receipts)

    def then(self, receipt: Receipt) -> Receipts:
        """Return these and one more."""
        return Receipts((*self.redacted()._new, receipt), self._stored)

    def redacted(self) -> Receipts:
        """Return these receipts without what is not stored of the last."""
        last = self._new[-1] if self._new else None
        if last is None or last.is_redacted:
            return self
        return Receipts((*self._new[:-1], last.redacted()), self._stored)

    def digest(self, number: int) -> str:
        """The digest of one receipt; the first is number 1."""
        if self._stored is not None and number <= self._count:
            return self._stored.digest(number)
        return self._new[number - self._count - 1].digest

    def __len__(self) -> int:
        return self._count + len(self._new)

    @overload
    def __getitem__(self, at: int) -> Receipt: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Receipt, ...]: ...

    def __getitem__(self, at: int | slice) -> Receipt | tuple[Receipt, ...]:
        if isinstance(at, slice):
            places = range(len(self))[at]
            everything = len(places) > 1 and min(places) < self._count
            return tuple(map((list(self) if everything else self).__getitem__, places))
        place = range(len(self))[at]
        if self._stored is not None and place < self._count:
            return self._stored.receipt(place + 1)
        return self._new[place - self._count]

    def __iter__(self) -> Iterator[Receipt]:
        yield from () if self._stored is None else self._stored.all()
        yield from self._new

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Receipts | tuple):
            return NotImplemented
        return len(self) == len(other) and all(map(Receipt.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Receipts({len(self)})"
