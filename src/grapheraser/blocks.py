"""Digests of large arrays by blocks of rows: a change digests only the blocks that it touched.

A digest is a function of the array alone. Those of its blocks are remembered for as long as the
array lives, and whoever makes a changed copy says which rows may differ.
"""

from __future__ import annotations

import hashlib
import weakref

import numpy as np

from grapheraser.arrays import AnyArray, Ints
from grapheraser.canonical import BLOCK, digests_of_blocks

_SIZE = 32
_known: dict[int, tuple[weakref.ref[AnyArray], bytearray]] = {}


def digest_by_block(array: AnyArray) -> str:
    """`canonical.digest_of_rows` of a contiguous array, which nobody may write to any more."""
    return hashlib.sha256(_blocks_of(array)).hexdigest()


def touched(array: AnyArray, before: AnyArray, rows: Ints) -> None:
    """Digest the blocks of an array that has the rows of another one, but for these."""
    if _get(before) is None or (array.dtype, array.shape) != (before.dtype, before.shape):
        return
    found, raw, size = bytearray(_blocks_of(before)), *_raw(array)
    blocks = np.unique(rows // BLOCK).tolist()
    fresh = digests_of_blocks(raw, size, blocks)
    for number, block in enumerate(blocks):
        start = _SIZE * number
        found[_SIZE * block : _SIZE * (block + 1)] = fresh[start : start + _SIZE]
    _put(array, found)


def same_blocks(array: AnyArray, other: AnyArray) -> bool:
    """Tell whether two arrays of one type and shape have the same digests."""
    return _blocks_of(array) == _blocks_of(other)


def _blocks_of(array: AnyArray) -> bytearray:
    known = _get(array)
    return _put(array, digests_of_blocks(*_raw(array))) if known is None else known


def _raw(array: AnyArray) -> tuple[memoryview, int]:
    rows = max(1, len(array))
    return array.reshape(-1).view(np.uint8).data, array.nbytes // rows


def _get(array: AnyArray) -> bytearray | None:
    entry = _known.get(id(array))
    return entry[1] if entry is not None and entry[0]() is array else None


def _put(array: AnyArray, digests: bytearray) -> bytearray:
    key = id(array)

    def forget(gone: weakref.ref[AnyArray]) -> None:
        if _known.get(key, (None,))[0] is gone:
            del _known[key]

    array.flags.writeable = False
    _known[key] = weakref.ref(array, forget), digests
    return digests
