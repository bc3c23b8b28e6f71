"""Digests of files: columns of them, and those that are remembered for as long as values live.

Values that a run is made of never change, so one that was written or read once need not be
serialised or digested again. Nothing here keeps a value alive.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines import ShardWeights

Digests: TypeAlias = NDArray[np.void]  # of `NO_DIGEST`'s type

NO_DIGEST = np.zeros(1, dtype="V32")[0]
_FEW_DIGESTS = 64  # digests that are looked for one by one
_MAX_GONE = 4096  # values that went since a column was asked for
_FILE = "_file"  # where weights keep the digest of their file


def unknown(digests: Digests) -> NDArray[np.bool_]:
    """Tell which digests are `NO_DIGEST`."""
    found: NDArray[np.bool_] = (_words(digests) == 0).all(axis=1)
    return found


def differing(digests: Digests, others: Digests) -> NDArray[np.bool_]:
    """Tell which digests are not in the same row of the others; all where lengths differ."""
    if len(digests) != len(others):
        return np.ones(len(digests), dtype=bool)
    return (_words(digests) != _words(others)).any(axis=1)


class Column:
    """The digests of all files of one kind by row, as an index names them; never changed."""

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
        """Tell which of some digests are in any row."""
        if not len(self.digests) or not len(wanted):
            return np.zeros(len(wanted), dtype=bool)
        if len(wanted) > _FEW_DIGESTS:
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


class _LastColumn(NamedTuple):
    """The last answer: identities of values, their digests, and which values went since."""

    identities: NDArray[np.int64]
    digests: Digests
    gone: set[int]


class Memo:
    """The digest of the file that holds each value."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], bytes]] = {}
        self._columns: dict[str, _LastColumn] = {}

    def column(self, name: str, values: Sequence[object]) -> Digests:
        """The digests of many values, `NO_DIGEST` where they are not known.

        Most of them should be those that were asked for under the same name the last time: these
        are found at once.
        """
        identities = np.fromiter(map(id, values), dtype=np.int64, count=len(values))
        last = self._columns.get(name)
        if last is None or len(last.identities) != len(values):
            found, rows = np.zeros(len(values), dtype=NO_DIGEST.dtype), np.arange(len(values))
        else:
            found = last.digests.copy()
            moved = (identities != last.identities) | unknown(found)
            if last.gone:
                moved |= np.isin(identities, list(last.gone))
            rows = np.flatnonzero(moved)
        for row in rows.tolist():
            (digest,) = self.get((values[row],))
            found[row] = NO_DIGEST if digest is None else np.frombuffer(digest, found.dtype)[0]
        self._columns[name] = _LastColumn(identities, found.copy(), set())
        return found

    def get(self, values: Iterable[object]) -> list[bytes | None]:
        """The digest of each value's file, where it is known."""
        known, found = self._known.get, []
        for value in values:
            entry = known(id(value))
            found.append(entry[1] if entry is not None and entry[0]() is value else None)
        return found

    def put(self, value: object, digest: bytes) -> bytes:
        """Remember the digest of a value's file."""
        key = id(value)

        def forget(gone: weakref.ref[Any]) -> None:
            if self._known.get(key, (None,))[0] is gone:
                del self._known[key]
            for name, column in tuple(self._columns.items()):
                column.gone.add(key)
                if len(column.gone) > _MAX_GONE:
                    self._columns.pop(name, None)

        self._known[key] = (weakref.ref(value, forget), digest)
        return digest


class MemoOfWeights:
    """Digests of the files of shard models, kept by the models; another tensor, another file."""

    def column(self, models: Sequence[ShardWeights]) -> Digests:
        """The digests of many, `NO_DIGEST` where they are not known."""
        none = bytes(NO_DIGEST.itemsize)
        found = bytearray().join([self.get(weights) or none for weights in models])
        return np.frombuffer(found, dtype=NO_DIGEST.dtype)

    def get(self, weights: ShardWeights) -> bytes | None:
        """The digest of its file, where it is known and the arrays are still the same."""
        known = weights.__dict__.get(_FILE)
        if known is None:
            return None
        columns, tensors, digest = known
        now = weights.tensors.values()
        if columns is not weights.columns or len(tensors) != len(now):
            return None
        return digest if all(map(operator.is_, tensors, now)) else None

    def put(self, weights: ShardWeights, digest: bytes) -> bytes:
        """Remember the digest of its file."""
        weights.__dict__[_FILE] = weights.columns, tuple(weights.tensors.values()), digest
        return digest
