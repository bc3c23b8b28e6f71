"""Columns of SHA-256 digests, compared and searched without a loop over all of them."""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Digests: TypeAlias = NDArray[np.void]  # of `NO_DIGEST`'s type

NO_DIGEST = np.zeros(1, dtype="V32")[0]
_FEW = 64


def unknown(digests: Digests) -> NDArray[np.bool_]:
    """Which of them are `NO_DIGEST`."""
    found: NDArray[np.bool_] = (_words(digests) == 0).all(axis=1)
    return found


def differing(digests: Digests, others: Digests) -> NDArray[np.bool_]:
    """Which of the digests are not in the same row of the others; all where there are more rows."""
    if len(digests) != len(others):
        return np.ones(len(digests), dtype=bool)
    return (_words(digests) != _words(others)).any(axis=1)


class Column:
    """The digests of all files of one kind, as an index names them.

    Args:
        digests: by row; never changed.
    """

    def __init__(self, digests: Digests) -> None:
        self.digests = digests

    @cached_property
    def _firsts(self) -> NDArray[np.uint64]:
        """The first word of each."""
        return np.ascontiguousarray(_words(self.digests)[:, 0])

    def replaced(self, digests: Digests, rows: NDArray[np.int64]) -> Column:
        """The column of other digests, which differ in these rows alone."""
        column = Column(digests)
        column._firsts = self._firsts.copy()
        column._firsts[rows] = _words(digests[rows])[:, 0]
        return column

    def holds(self, wanted: Digests) -> NDArray[np.bool_]:
        """Which of some digests are in any row."""
        if not len(self.digests) or not len(wanted):
            return np.zeros(len(wanted), dtype=bool)
        if len(wanted) > _FEW:
            known = set(as_bytes(self.digests))
            return np.array([digest in known for digest in as_bytes(wanted)])
        found = []
        for one in _words(wanted):
            rows = np.flatnonzero(self._firsts == one[0])  # hardly ever more than one
            found.append(bool((_words(self.digests[rows]) == one).all(axis=1).any()))
        return np.array(found)


def as_bytes(digests: Digests) -> list[bytes]:
    """The digests one by one."""
    raw = np.ascontiguousarray(digests).tobytes()
    return [raw[at : at + 32] for at in range(0, len(raw), 32)]


def _words(digests: Digests) -> NDArray[np.uint64]:
    return np.ascontiguousarray(digests).view(np.uint64).reshape(-1, 4)
