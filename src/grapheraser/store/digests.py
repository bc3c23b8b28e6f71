"""Columns of SHA-256 digests, compared and searched without a loop over all of them."""

from __future__ import annotations

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


def among(wanted: Digests, digests: Digests) -> NDArray[np.bool_]:
    """Which of some digests are anywhere among others."""
    if not len(digests) or not len(wanted):
        return np.zeros(len(wanted), dtype=bool)
    if len(wanted) > _FEW:
        known = set(as_bytes(digests))
        return np.array([digest in known for digest in as_bytes(wanted)])
    words = _words(digests)
    firsts, found = np.ascontiguousarray(words[:, 0]), []
    for one in _words(wanted):
        rows = np.flatnonzero(firsts == one[0])  # hardly ever more than one
        found.append(bool((words[rows] == one).all(axis=1).any()))
    return np.array(found)


def as_bytes(digests: Digests) -> list[bytes]:
    """The digests one by one."""
    raw = np.ascontiguousarray(digests).tobytes()
    return [raw[at : at + 32] for at in range(0, len(raw), 32)]


def _words(digests: Digests) -> NDArray[np.uint64]:
    return np.ascontiguousarray(digests).view(np.uint64).reshape(-1, 4)
