"""Digests of what is in files already, remembered for as long as the values live.

Values that a run is made of never change, so one that was written or read once need not be
serialised or digested again. Nothing here keeps a value alive.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.store.digests import NO_DIGEST, Digests, unknown
from grapheraser.training import ShardWeights

_MOST_GONE = 4096
_FILE = "_file"


class _Column(NamedTuple):
    """What was asked for last: identities of values, their digests, and who is gone since."""

    identities: NDArray[np.int64]
    digests: Digests
    gone: set[int]


class Memo:
    """The digest of the file that holds each value."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], bytes]] = {}
        self._columns: dict[str, _Column] = {}

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
        self._columns[name] = _Column(identities, found.copy(), set())
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
                if len(column.gone) > _MOST_GONE:
                    self._columns.pop(name, None)

        self._known[key] = (weakref.ref(value, forget), digest)
        return digest


class MemoOfWeights:
    """The same for shard models, which keep it themselves; another tensor makes another file."""

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
