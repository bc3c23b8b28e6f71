"""Indexes in levels: a change writes the parts of an index that it touches, and a small top.

An index has an entry for each page, or for each shard, by ascending ``start``. Where it is long it
is divided into parts, each a file of its own, and an index of `LINK` names these, with an entry for
each; where that is long too, it is divided in turn. The manifest names the top.

A part begins where a hash of ``start`` says so. So how an index is divided follows from what it
holds, not from how it came about, and an entry more or less moves no other part. Whoever reads
follows the links and need not know the rule.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import CorruptRunError
from grapheraser.graph.pages.files import as_bytes, index_content, read_index
from grapheraser.store.digests import NO_DIGEST, Column

LINK = np.dtype([("start", "<i8"), ("entries", "<i8"), ("part", "V32")])
MAX_ENTRIES = 512  # entries of an index that is not divided
BITS = 6  # of the hash, which are zero where a part begins: 2**BITS entries on average
MAX_INDEX = 2**27  # bytes of a file of an index, which has a few thousand entries at most
_MAX_LEVELS = 8
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MAX_REMEMBERED = 16

Entries = NDArray[np.void]


@dataclass(frozen=True, eq=False)
class Index:
    """An index with all of its levels."""

    entries: Entries  # one for each page or shard
    links: tuple[Entries, ...] = ()  # one array for each level above them, from below
    # Stands for the pages that it was written for; see `graph.pages.pages.Lineage`.
    token: object | None = None
    # Of entries, by name, where they were asked for.
    columns: dict[str, Column] = field(default_factory=dict, repr=False)

    def column(self, name: str) -> Column:
        """The digests of one kind."""
        if name not in self.columns:
            self.columns[name] = Column(self.entries[name])
        return self.columns[name]

    @property
    def top(self) -> Entries:
        """The level that the manifest names."""
        return self.links[-1] if self.links else self.entries

    @property
    def parts(self) -> set[bytes]:
        """The digests of the files below the top."""
        return {digest for links in self.links for digest in as_bytes(links["part"])}


def divided(
    entries: Entries, before: Index | None, touched: NDArray[np.int64] | None = None
) -> tuple[Index, dict[bytes, bytes]]:
    """Put the levels above entries.

    Parts of the index ``before`` need not be made again. ``touched`` are all rows that differ from
    it, where each row is about the same page in both. Also returns the files of the new parts, by
    digest.
    """
    if before is not None and touched is not None:
        return _divided_again(entries, before, touched)
    levels, fresh = [entries], dict[bytes, bytes]()
    while len(levels[-1]) > MAX_ENTRIES and len(levels) <= _MAX_LEVELS:
        levels.append(_linked(levels[-1], len(levels) - 1, fresh))
    for digest in before.parts & fresh.keys() if before else ():
        del fresh[digest]
    return Index(levels[0], tuple(levels[1:])), fresh


def _divided_again(
    entries: Entries, before: Index, touched: NDArray[np.int64]
) -> tuple[Index, dict[bytes, bytes]]:
    """Divide as the index before was: only the parts with touched rows are looked at."""
    levels, fresh = [entries], dict[bytes, bytes]()
    columns = {name: old.replaced(entries[name], touched) for name, old in before.columns.items()}
    for known in before.links:
        links, ends = known.copy(), np.cumsum(known["entries"])
        numbers = np.unique(np.searchsorted(ends, touched, side="right"))
        for number in numbers.tolist():
            high = int(ends[number])
            part = index_content(levels[-1][high - int(links["entries"][number]) : high])
            digest = np.frombuffer(sha256(part).digest(), dtype=NO_DIGEST.dtype)[0]
            if digest != links["part"][number]:
                links["part"][number] = digest
                fresh[digest.tobytes()] = part
        levels.append(links)
        touched = numbers
    return Index(levels[0], tuple(levels[1:]), columns=columns), fresh


def _linked(entries: Entries, level: int, fresh: dict[bytes, bytes]) -> Entries:
    """The links to the parts of a level, whose files are put to the others."""
    cuts = _cuts(entries["start"], level)
    links = np.zeros(len(cuts) - 1, dtype=LINK)
    links["start"], links["entries"] = entries["start"][cuts[:-1]], np.diff(cuts)
    parts = [index_content(entries[low:high]) for low, high in pairwise(cuts.tolist())]
    digests = [sha256(part).digest() for part in parts]
    fresh.update(zip(digests, parts, strict=True))
    links["part"] = np.frombuffer(b"".join(digests), dtype=NO_DIGEST.dtype)
    return links


def _cuts(starts: NDArray[np.int64], level: int) -> NDArray[np.int64]:
    """Return the rows where the parts of a level begin, and the end."""
    mixed = starts.astype(np.uint64) * _MIX >> np.uint64(64 - BITS * (level % _MAX_LEVELS + 1))
    begins = mixed & np.uint64(2**BITS - 1) == 0
    begins[0] = True
    return np.append(np.flatnonzero(begins), len(starts))


def read_levels(content: bytes, kind: np.dtype[np.void], read: Callable[[bytes], bytes]) -> Index:
    """Read an index from the file of its top; ``read`` gives the content of a part."""
    level, links = read_index(content, kind, LINK), list[Entries]()
    while level.dtype == LINK:
        links.insert(0, level)
        if len(links) > _MAX_LEVELS:
            raise CorruptRunError("an index of too many levels.")
        level = _below(level, kind, read)
    return Index(level, tuple(links))


def _below(links: Entries, kind: np.dtype[np.void], read: Callable[[bytes], bytes]) -> Entries:
    """The entries of the parts that some links name.

    As each part begins with the start of its link, and these ascend, no file is named twice.
    """
    parts = [read_index(read(digest), kind, LINK) for digest in as_bytes(links["part"])]
    alike = len({part.dtype for part in parts}) == 1
    if not alike or [len(part) for part in parts] != links["entries"].tolist():
        raise CorruptRunError("an index and its parts don't fit.")
    entries = np.concatenate(parts)
    firsts = np.cumsum(links["entries"]) - links["entries"]
    fit = (links["entries"] > 0).all() and np.array_equal(entries["start"][firsts], links["start"])
    if not fit or (np.diff(entries["start"]) <= 0).any():
        raise CorruptRunError("an index and its parts don't fit.")
    return entries


class Remembered:
    """The indexes that folders held last, so that the next save need not read them."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Path, str], tuple[str, Index]] = OrderedDict()

    def put(self, path: Path, part: str, digest: str, index: Index) -> None:
        """Remember an index by the digest of its top."""
        key = path.absolute(), part
        self._known[key] = digest, index
        self._known.move_to_end(key)
        while len(self._known) > _MAX_REMEMBERED:
            self._known.popitem(last=False)

    def get(self, path: Path, part: str, digest: str) -> Index | None:
        """The index of the part whose top has this digest, where it is known."""
        known = self._known.get((path.absolute(), part), ("", None))
        return known[1] if known[0] == digest else None
