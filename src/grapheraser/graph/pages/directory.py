"""The division of node ids into pages: a function of the ids that are there, and nothing else.

A page is a block of ``16**j`` ids, aligned to its size, that holds at most `ROOM` nodes while the
block around it, sixteen times as large, holds more. Whatever was added and removed on the way, the
same ids give the same pages, so the pages of a graph don't tell what it has forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.paged import ROOM

WHOLE = 16  # all ids: 16**16 is 2**64
_SIXTEENS = 16 ** np.arange(WHOLE, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Directory:
    """The blocks of the pages, ascending."""

    starts: NDArray[np.int64]  # int64, the smallest id of each block
    sizes: NDArray[np.int8]  # int8, j of each block's ``16**j``
    counts: NDArray[np.int64]  # int64, nodes in it

    @classmethod
    def of(cls, ids: NDArray[np.int64], size: int = WHOLE) -> Directory:
        """Divide sorted ids that lie in one block of ``16**size``.

        Blocks that hold too many are divided into sixteenths until none does, so the result depends
        on the ids alone, never on the order in which they came.
        """
        starts, sizes, counts = [], [], []
        low = np.zeros(min(1, len(ids)), dtype=np.int64)
        high = np.full(len(low), len(ids), dtype=np.int64)
        while len(low):
            small = high - low <= ROOM
            shift = np.uint64(min(4 * size, 63))
            first = ids[low[small]].astype(np.uint64)
            starts.append(((first >> shift) << shift).astype(np.int64))
            sizes.append(np.full(len(first), size, dtype=np.int8))
            counts.append(high[small] - low[small])
            low, high = _sixteenths(ids, low[~small], high[~small], size)
            size -= 1
        if not starts:
            none = np.zeros(0, dtype=np.int64)
            return cls(none, none.astype(np.int8), none)
        order = np.argsort(np.concatenate(starts))
        return cls(*(np.concatenate(part)[order] for part in (starts, sizes, counts)))

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def radix(self) -> tuple[NDArray[np.int32], int]:
        """``first`` and ``shift`` of a `Table`."""
        top = int(self.starts[-1]) if len(self) else 0
        shift = max(0, top.bit_length() - (4 * len(self) + 16).bit_length())
        blocks = np.arange((top >> shift) + 1, dtype=np.int64) << shift
        first = np.searchsorted(self.starts, blocks, side="right") - 1
        return np.maximum(first, 0).astype(np.int32), shift

    def same_blocks(self, other: Directory) -> bool:
        """Tell whether two directories have the same blocks, whatever they hold."""
        return (self.starts is other.starts and self.sizes is other.sizes) or (
            np.array_equal(self.starts, other.starts) and np.array_equal(self.sizes, other.sizes)
        )

    def around(self, page: int, size: int) -> tuple[int, int, int]:
        """Find the block of ``16**size`` around a page: its smallest id, its range of pages."""
        shift = min(4 * size, 63)
        start = (int(self.starts[page]) >> shift) << shift
        end = start + 16**size
        low, high = np.searchsorted(self.starts, [start, min(end, 2**63 - 1)])
        return start, int(low), int(high)

    def page_of(self, node: int) -> int | None:
        """Return the page whose block holds an id; None where there is none."""
        page = int(np.searchsorted(self.starts, node, side="right")) - 1
        inside = page >= 0 and node < int(self.starts[page]) + 16 ** int(self.sizes[page])
        return page if inside else None

    def recounted(self, counts: NDArray[np.int64]) -> Directory:
        """Return the blocks with other counts."""
        other = Directory(self.starts, self.sizes, counts)
        if "radix" in self.__dict__:
            other.__dict__["radix"] = self.radix
        return other

    def replaced(self, cuts: Sequence[tuple[int, int, Directory]]) -> Directory:
        """Put other blocks in the place of ranges of these, ascending."""
        parts: list[Directory] = []
        end = 0
        for low, high, blocks in cuts:
            parts += [self.part(end, low), blocks]
            end = high
        parts.append(self.part(end, len(self)))
        columns = zip(*((part.starts, part.sizes, part.counts) for part in parts), strict=True)
        return Directory(*map(np.concatenate, columns))

    def part(self, low: int, high: int) -> Directory:
        """Return a range of the blocks."""
        return Directory(self.starts[low:high], self.sizes[low:high], self.counts[low:high])

    def homes(self, ids: NDArray[np.int64]) -> list[tuple[int, int, int, int]]:
        """Find the blocks that new ids (sorted) go to, as ranges of ids that share one.

        Returns: of each range, its ends among the ids; the page whose block holds it and -1, or, if
        there is none, the page to put it before and j of the largest block of ``16**j`` around it
        that holds no page.
        """
        if len(ids) == 0:
            return []
        after = np.searchsorted(self.starts, ids, side="right")
        pages, sizes = after - 1, np.full(len(ids), WHOLE, dtype=np.int64)
        for near in (after - 1, after):
            there = np.flatnonzero((near >= 0) & (near < len(self)))
            apart = ids[there] ^ self.starts[near[there]]
            sizes[there] = np.minimum(sizes[there], _digits(apart) - 1)
        # An id that a block holds differs from its start in the block's own digits at the most.
        own = np.flatnonzero(pages >= 0)
        inside = own[_digits(ids[own] ^ self.starts[pages[own]]) <= self.sizes[pages[own]]]
        sizes[inside] = -1
        pages[sizes >= 0] += 1
        shifts = np.clip(4 * sizes, 0, 63)
        keys = np.stack([pages, sizes, np.where(sizes >= 0, ids >> shifts, 0)])
        cuts = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
        ends = [0, *cuts.tolist(), len(ids)]
        return [(low, high, int(pages[low]), int(sizes[low])) for low, high in pairwise(ends)]


def _digits(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of hexadecimal digits of numbers; 0 has none."""
    return np.searchsorted(_SIXTEENS, numbers, side="right")


def _sixteenths(
    ids: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ranges of ids in each sixteenth of some blocks, without the empty ones."""
    if not len(low):
        return low, high
    step = np.uint64(4 * (size - 1))
    outer = np.uint64(min(4 * size, 63))
    base = (ids[low].astype(np.uint64) >> outer) << outer
    if size == WHOLE:
        base[:] = 0
    cuts = base[:, None] + (np.arange(1, 16, dtype=np.uint64) << step)
    at = np.searchsorted(ids.astype(np.uint64, copy=False), cuts.ravel()).reshape(len(low), 15)
    edges = np.concatenate([low[:, None], at, high[:, None]], axis=1)
    edges = np.clip(edges, low[:, None], high[:, None])
    lows, highs = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    some = highs > lows
    return lows[some], highs[some]
