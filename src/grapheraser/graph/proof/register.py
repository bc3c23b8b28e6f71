"""The register of a run: a slot for every node, in pages; `receipts.register` says what it shows.

A page holds the slots that begin with the same digits. How many digits follows from the number of
nodes, so that a page holds some hundreds: a change digests the pages of the nodes that come or go,
and a run has few files. The key and the nonces come from the system's randomness. They are no part
of the fitted state, and nothing but the register knows them.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import CorruptRunError
from grapheraser.graph.arrays import read_only
from grapheraser.graph.pages.pages import Lineage
from grapheraser.receipts.register import (
    COMMITMENT,
    KEY_SIZE,
    NONCE_SIZE,
    SlotProof,
    bin_digest,
    register_root,
    slot_of,
)
from grapheraser.receipts.tree import EMPTY, LEVELS, Step, joined

# A slot, and what its commitment is made of.
ENTRY = np.dtype([("slot", "<u8"), ("nonce", f"V{NONCE_SIZE}"), ("node", "<i8")])
Entries: TypeAlias = NDArray[Any]
_MAX_NODES, _MIN_NODES = 1024, 32  # of a page on average
_FURTHER = 2  # digits that lead from a page to a bin
_HELD = 32  # bytes of a commitment


class RegisterPage:
    """The slots that begin with the same digits, ascending.

    Args:
        entries: of type `ENTRY`.
        digits: how many digits they share.
        top: the digest of the page in the tree, where it is known.
    """

    def __init__(self, entries: Entries, digits: int, top: bytes | None = None) -> None:
        self.entries, self.digits = read_only(entries), digits
        if top is not None:
            self.top = top

    @cached_property
    def top(self) -> bytes | None:
        """The digest of the page in the tree; None where the page is empty."""
        return _above(self._middles).get(0)

    @cached_property
    def _middles(self) -> dict[int, bytes]:
        """The digests at the level between the page and its bins, by number."""
        return _above(self._bin_digests(slice(None)))

    @cached_property
    def commitments(self) -> bytes:
        """The commitments in the slots, one after another."""
        raw, sha, size = self.entries.tobytes(), hashlib.sha256, ENTRY.itemsize
        return b"".join(
            [sha(COMMITMENT + raw[at : at + size - 8]).digest() for at in range(8, len(raw), size)]
        )

    def _bin_digests(self, rows: slice) -> dict[int, bytes]:
        return {number: bin_digest(content) for number, content in self._bins(rows).items()}

    def _bins(self, rows: slice) -> dict[int, bytes]:
        """Return the contents of the bins of a range of rows, by their numbers within the page."""
        entries, held = self.entries[rows], np.frombuffer(self.commitments, dtype=f"V{_HELD}")
        both = np.empty(len(entries), dtype=[("slot", ">u8"), ("held", f"V{_HELD}")])
        both["slot"] = entries["slot"]
        both["held"] = held[rows]
        numbers = self._numbers(_FURTHER)[rows]
        cuts = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
        raw, size = both.tobytes(), both.itemsize
        inside = numbers[cuts[:-1]].tolist() if len(both) else []
        return {
            number: raw[size * first : size * last]
            for number, (first, last) in zip(inside, pairwise(cuts), strict=False)
        }

    def _numbers(self, further: int) -> NDArray[np.uint64]:
        """Return so many digits of each slot, from where those of the page end."""
        shift = np.uint64(4 * (LEVELS - self.digits - further))
        return self.entries["slot"].astype(np.uint64) >> shift & np.uint64(16**further - 1)

    def shown(self, slot: int) -> tuple[list[dict[int, bytes]], tuple[tuple[int, bytes], ...]]:
        """Return the branches on the way from the page to the bin of a slot, and its content."""
        wanted = slot >> 4 * (LEVELS - self.digits - _FURTHER) & 16**_FURTHER - 1
        bins = self._bins(slice(None))
        near = {n & 15: bin_digest(raw) for n, raw in bins.items() if n >> 4 == wanted >> 4}
        ways = [self._middles, near]
        raw, size = bins.get(wanted, b""), 8 + _HELD
        cut = [raw[at : at + size] for at in range(0, len(raw), size)]
        return ways, tuple((int.from_bytes(entry[:8], "big"), entry[8:]) for entry in cut)

    def without(self, slots: NDArray[np.uint64]) -> RegisterPage:
        """Return the page with these slots empty."""
        rows = _rows(self.entries, slots)
        stays = np.ones(len(self.entries), dtype=bool)
        stays[rows] = False
        page = RegisterPage(self.entries[stays], self.digits)
        held = np.frombuffer(self.commitments, dtype=f"V{_HELD}")
        page.commitments = held[stays].tobytes()
        page._middles = dict(self._middles)
        there = page._numbers(1)
        for number in set(self._numbers(1)[rows].tolist()):
            part = slice(*np.searchsorted(there, [number, number + 1]).tolist())
            digest = _above(page._bin_digests(part)).get(number)
            _put(page._middles, number, digest)
        return page

    def joined_by(self, entries: Entries) -> RegisterPage:
        """Return the page with more entries."""
        more = np.concatenate([self.entries, entries])
        return RegisterPage(more[np.argsort(more["slot"])], self.digits)


@dataclass(frozen=True, eq=False)
class Register:
    """The register of the nodes of a run."""

    key: bytes = field(repr=False)  # of the slots
    # One for each of the ``16**digits`` beginnings of a slot.
    pages: tuple[RegisterPage, ...] = field(repr=False)
    # The digests of the tree above the pages, each level by number.
    levels: tuple[Mapping[int, bytes], ...] = field(repr=False)
    size: int  # how many nodes there are
    # Which pages have changed since earlier versions.
    lineage: Lineage = field(default_factory=Lineage, repr=False)

    @classmethod
    def of(cls, nodes: NDArray[np.int64]) -> Register:
        """Make a register of these nodes, with a key of its own."""
        key = secrets.token_bytes(KEY_SIZE)
        return _paged(key, _entries(key, nodes))

    @classmethod
    def restored(cls, key: bytes, pages: Sequence[RegisterPage]) -> Register:
        """Put the tree together above pages that were kept."""
        levels, below = [], {n: page.top for n, page in enumerate(pages) if page.top is not None}
        for _ in range(pages[0].digits):
            below = _above(below)
            levels.append(below)
        size = sum(len(page.entries) for page in pages)
        return cls(key, tuple(pages), tuple(levels), size)

    @property
    def digits(self) -> int:
        """Number of digits that the slots of a page share."""
        return self.pages[0].digits

    @property
    def root(self) -> str:
        """The root, as receipts name it."""
        return register_root(self.digits + _FURTHER, self._digest(self.digits, 0) or EMPTY)

    def __len__(self) -> int:
        return self.size

    @property
    def entries(self) -> Entries:
        """All entries, by slot."""
        return np.concatenate([page.entries for page in self.pages])

    def is_of(self, nodes: NDArray[np.int64]) -> bool:
        """Tell whether these nodes (ascending) are in it, each in its slot, and no others."""
        entries = self.entries
        order = np.argsort(entries["node"])
        slots = np.array([slot_of(self.key, node) for node in nodes.tolist()], dtype=np.uint64)
        return np.array_equal(entries["node"][order], nodes) and np.array_equal(
            entries["slot"][order], slots
        )

    def changed(self, gone: NDArray[np.int64], new: NDArray[np.int64]) -> Register:
        """Return the register after some nodes have gone and others have come, in O(those)."""
        slots = np.array([slot_of(self.key, node) for node in gone.tolist()], dtype=np.uint64)
        entries = _entries(self.key, new)
        pages, dirty = list(self.pages), set()
        for number, part in self._by_page(slots).items():
            pages[number] = pages[number].without(slots[part])
            dirty.add(number)
        for number, part in self._by_page(entries["slot"].astype(np.uint64)).items():
            pages[number] = pages[number].joined_by(entries[part])
            dirty.add(number)
        if not dirty:
            return self
        count, wanted = self.size - len(gone) + len(new), len(pages)
        if count > 2 * _MAX_NODES * wanted or (wanted > 1 and count < _MIN_NODES * wanted):
            return _paged(self.key, np.concatenate([page.entries for page in pages]))
        levels, lineage = _climbed(self.levels, pages, dirty), self.lineage.changed(dirty)
        return Register(self.key, tuple(pages), levels, count, lineage)

    def nonce(self, node: int) -> bytes:
        """Return the nonce of a node that is in the register."""
        slot = slot_of(self.key, node)
        entries = self.pages[self._page_of(slot)].entries
        (row,) = _rows(entries, np.array([slot], dtype=np.uint64)).tolist()
        return bytes(entries["nonce"][row])

    def proof(self, slot: int) -> SlotProof:
        """Show the content of a slot's bin, and the way to it from the root."""
        number = self._page_of(slot)
        ways = [
            {n & 15: d for n in _family(number >> 4 * level) if (d := self._digest(level, n))}
            for level in reversed(range(self.digits))
        ]
        inside, entries = self.pages[number].shown(slot)
        steps: list[Step] = []
        for level, way in enumerate([*ways, *inside], start=1):
            branch = slot >> 4 * (LEVELS - level) & 15
            digests = tuple(digest for n, digest in sorted(way.items()) if n != branch)
            steps.append(Step(sum(1 << n for n in way), digests))
            if branch not in way:
                break
        return SlotProof(self.digits + _FURTHER, entries, tuple(steps))

    def _digest(self, level: int, number: int) -> bytes | None:
        """Return the digest of a page, or of a node above pages; None where it holds nobody."""
        return self.levels[level - 1].get(number) if level else self.pages[number].top

    def _page_of(self, slot: int) -> int:
        return slot >> 4 * (LEVELS - self.digits) if self.digits else 0

    def _by_page(self, slots: NDArray[np.uint64]) -> dict[int, list[int]]:
        """Return the places of slots by the number of their page."""
        found: dict[int, list[int]] = {}
        for at, slot in enumerate(slots.tolist()):
            found.setdefault(self._page_of(slot), []).append(at)
        return found


def _entries(key: bytes, nodes: NDArray[np.int64]) -> Entries:
    """Make entries for nodes, by slot, with fresh nonces."""
    entries = np.empty(len(nodes), dtype=ENTRY)
    raw, sha = nodes.astype("<i8").tobytes(), hashlib.sha256
    # `slot_of`, for many at once.
    digests = [sha(key + raw[at : at + 8]).digest()[:8] for at in range(0, len(raw), 8)]
    entries["slot"] = np.frombuffer(b"".join(digests), dtype=">u8")
    entries["nonce"] = np.frombuffer(
        secrets.token_bytes(NONCE_SIZE * len(nodes)), dtype=f"V{NONCE_SIZE}"
    )
    entries["node"] = nodes
    return entries[np.argsort(entries["slot"].astype(np.uint64))]


def _rows(entries: Entries, slots: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the rows of slots that are not empty."""
    there = entries["slot"].astype(np.uint64)
    rows = np.searchsorted(there, slots)
    if not np.array_equal(there[np.minimum(rows, len(there) - 1)] if len(there) else there, slots):
        raise CorruptRunError("the register lacks a node that is in the graph.")
    return rows


def _paged(key: bytes, entries: Entries) -> Register:
    digits = 0
    while len(entries) > _MAX_NODES * 16**digits:
        digits += 1
    starts = np.arange(16**digits, dtype=np.uint64) << np.uint64(4 * (LEVELS - digits) % 64)
    cuts = np.searchsorted(entries["slot"].astype(np.uint64), starts[1:])
    # Copies: a view would hold on to the nonces of nodes that have left.
    pages = [RegisterPage(part.copy(), digits) for part in np.split(entries, cuts)]
    return Register.restored(key, pages)


def _above(digests: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return the digests of the next level.

    Branches are joined in ascending order: a digest depends on it.
    """
    families: dict[int, dict[int, bytes]] = {}
    for number in sorted(digests):
        families.setdefault(number >> 4, {})[number & 15] = digests[number]
    return {
        number: joined(sum(1 << branch for branch in family), list(family.values()))
        for number, family in families.items()
    }


def _climbed(
    levels: Sequence[Mapping[int, bytes]], pages: Sequence[RegisterPage], dirty: set[int]
) -> tuple[Mapping[int, bytes], ...]:
    """Return the levels of the tree with the digests of some pages changed."""
    new = [dict(level) for level in levels]
    for level, digests in enumerate(new):
        dirty = {number >> 4 for number in dirty}
        for number in dirty:
            family = _family(16 * number)
            tops = ((n, new[level - 1].get(n) if level else pages[n].top) for n in family)
            below = {n: top for n, top in tops if top is not None}
            _put(digests, number, _above(below).get(number))
    return tuple(new)


def _put(level: dict[int, bytes], number: int, digest: bytes | None) -> None:
    if digest is None:
        level.pop(number, None)
    else:
        level[number] = digest


def _family(number: int) -> range:
    """Return the numbers that share their place in the next level with this one."""
    return range(number >> 4 << 4, (number >> 4 << 4) + 16)
