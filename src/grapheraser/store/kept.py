"""What a folder holds of a run already, so that a save need not write it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import StoreError
from grapheraser.receipts import Receipt, Receipts
from grapheraser.store.digests import NO_DIGEST, Column, as_bytes
from grapheraser.store.files import read_checked
from grapheraser.store.folder import continues
from grapheraser.store.indexes import Index
from grapheraser.store.manifest import (
    MANIFEST,
    chain_ends,
    direct_files,
    last_indexes,
    read_manifest,
    receipt_file,
)
from grapheraser.store.pages import FILES, page_file


@dataclass(frozen=True, eq=False)
class Kept:
    """What a folder holds of a run, and need not be written again.

    Attributes:
        manifest: its bytes.
        names: files that the manifest names itself.
        indexes: of its pages and shard models, by part.
        receipts: numbers of receipts; those are the first of the run to be saved.
    """

    manifest: bytes = b""
    names: Set[str] = frozenset()
    indexes: Mapping[str, Index] = field(default_factory=dict)
    receipts: Collection[int] = range(0)

    @classmethod
    def by_manifest(cls, path: Path, receipts: Sequence[Receipt]) -> Kept:
        """What the manifest of a folder names; nothing where it is of a run with other receipts."""
        try:
            manifest = read_manifest(path)
            if not continues(path, manifest, receipts):
                return cls()
            count, _ = chain_ends(path, manifest)
            return cls(
                (path / MANIFEST).read_bytes(),
                frozenset(direct_files(manifest)),
                last_indexes(path, manifest),
                range(1, count + 1),
            )
        except StoreError:
            return cls()

    def column(self, name: str) -> Column:
        """The digests of all files of one kind."""
        for index in self.indexes.values():
            if name in (index.entries.dtype.names or ()):
                return index.column(name)
        return Column(np.zeros(0, dtype=NO_DIGEST.dtype))

    def intact(self, path: Path, named: Mapping[str, str], receipts: Sequence[Receipt]) -> Kept:
        """What of it can be read, and is what its digest says."""
        ours = Receipts.of(receipts)
        return Kept(
            self.manifest,
            {name for name in self.names if _is_intact(path / name, named[name])},
            {part: _intact_index(path, index) for part, index in self.indexes.items()},
            {
                number
                for number in self.receipts
                if _is_intact(path / receipt_file(number, ours.digest(number)), ours.digest(number))
            },
        )


def _intact_index(path: Path, index: Index) -> Index:
    """An index without the digests of files that are not what these say."""
    entries = index.entries
    for name in (name for name in FILES if name in (entries.dtype.names or ())):
        entries = _intact_column(path, entries, name, FILES[name])
    links = tuple(_intact_column(path, level, "part", page_file) for level in index.links)
    return Index(entries, links)


def _intact_column(
    path: Path, entries: NDArray[np.void], name: str, file_of: Callable[[bytes], str]
) -> NDArray[np.void]:
    left = entries.copy()
    for row, digest in enumerate(as_bytes(entries[name])):
        if not _is_intact(path / file_of(digest), digest.hex()):
            left[name][row] = NO_DIGEST
    return left


def _is_intact(file: Path, sha256: str) -> bool:
    try:
        read_checked(file, sha256)
    except StoreError:
        return False
    return True
