"""The log of receipts as it is handed out: entries, checkpoints and proofs."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from grapheraser.receipts import Ends, Receipts
from grapheraser.receipts.tree import consistency_proof, inclusion_proof, root_of
from grapheraser.store import load_receipts


@dataclass(frozen=True)
class Inclusion:
    """Where an entry is in the log of some size.

    Attributes:
        index: from 0.
        size: of the log.
        leaf: hash of the entry.
        proof: hashes that lead from it to the root.
        root: of the log of this size.
    """

    index: int
    size: int
    leaf: bytes
    proof: tuple[bytes, ...]
    root: bytes


class Log:
    """The receipts of a run, read from its folder.

    Args:
        run: the folder.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._leaves: list[bytes] = []

    def read(self) -> tuple[Receipts, Ends]:
        """All receipts, which are read when they are asked for, and where they end."""
        return load_receipts(self._run)

    def included(self, index: int, size: int) -> Inclusion:
        """The proof that an entry is in the log of this size, which the log has reached."""
        leaves = self._known(size)
        proof = tuple(inclusion_proof(leaves, index))
        return Inclusion(index, size, leaves[index], proof, root_of(leaves))

    def consistent(self, old: int, new: int) -> tuple[bytes, ...]:
        """The proof that the log of one size begins as that of a smaller size."""
        return tuple(consistency_proof(self._known(new), old))

    def _known(self, size: int) -> list[bytes]:
        """The hashes of the first entries. A log only grows, so those that are known stay."""
        with self._lock:
            if size > len(self._leaves):
                self._leaves = [receipt.leaf for receipt in self.read()[0]]
            return self._leaves[:size]
