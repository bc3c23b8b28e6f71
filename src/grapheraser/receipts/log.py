"""The receipts of a run as a sequence; those in a folder are read when they are asked for.

Needs the standard library alone, as `receipts.receipt` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

from grapheraser.errors import VerificationError
from grapheraser.receipts.receipt import Receipt

Read = Callable[[int, str], Receipt]


class Stored:
    """Receipts 1 to ``count`` of a chain whose last has the digest ``head``.

    Each receipt names the digest of the one before, so they are found, read and checked from the
    last one back.

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
        """Any sequence of receipts as one of these."""
        return receipts if isinstance(receipts, Receipts) else cls(receipts)

    def then(self, receipt: Receipt) -> Receipts:
        """These and one more."""
        return Receipts((*self.kept()._new, receipt), self._stored)

    def kept(self) -> Receipts:
        """These, without what is not kept of the last."""
        last = self._new[-1] if self._new else None
        if last is None or last.is_kept:
            return self
        return Receipts((*self._new[:-1], last.kept()), self._stored)

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
