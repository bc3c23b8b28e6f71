"""Digests of files: columns of them, and those that are remembered for as long as values live.

Values that a run is made of never change, so one that was written or read once need not be
serialised or digested again. Nothing here keeps a value alive.

Tensors are kept as safetensors files; their layout is that of the package ``safetensors``: the
largest types first, names in order.
"""

from __future__ import annotations

import hashlib
import json
import operator
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from grapheraser.blocks import digest_by_block
from grapheraser.canonical import BY_BLOCK, digest_of, digest_of_pages
from grapheraser.engines import ShardModels, ShardWeights
from grapheraser.engines.shard_models import ModelPage
from grapheraser.graph.pages.files import as_bytes

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


Arrays = Mapping[str, NDArray[Any]]
# Names of arrays that are kept beside what an aggregator learned, and are no part of the state.
BESIDE = "beside/"
# In the order of a file.
_TYPES = {
    np.dtype(kind): name
    for kind, name in (
        ("<u8", "U64"),
        ("<i8", "I64"),
        ("<f8", "F64"),
        ("<f4", "F32"),
        ("<u4", "U32"),
        ("<i4", "I32"),
        ("<f2", "F16"),
        ("<u2", "U16"),
        ("<i2", "I16"),
        ("i1", "I8"),
        ("u1", "U8"),
        ("?", "BOOL"),
    )
}
_RANKS = {kind: rank for rank, kind in enumerate(_TYPES)}


def file_content(arrays: Arrays) -> bytes:
    """The file that holds these arrays."""
    return b"".join(map(bytes, _parts(arrays)))


def file_digest(arrays: Arrays) -> str:
    """SHA-256 of that file."""
    sha = hashlib.sha256()
    for part in _parts(arrays):
        sha.update(part)
    return sha.hexdigest()


def _parts(arrays: Arrays) -> Iterator[bytes | memoryview]:
    if any(array.dtype not in _TYPES for array in arrays.values()):
        yield safetensors.numpy.save(dict(arrays))  # which knows more types, or refuses them
        return
    named = sorted(arrays.items(), key=lambda item: (_RANKS[item[1].dtype], item[0]))
    header, end = [], 0
    for name, array in named:
        start, end = end, end + array.nbytes
        shape = ",".join(map(str, array.shape))
        header.append(
            f"{json.dumps(name, ensure_ascii=False)}:"
            f'{{"dtype":"{_TYPES[array.dtype]}","shape":[{shape}],"data_offsets":[{start},{end}]}}'
        )
    text = f"{{{','.join(header)}}}".encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for _, array in named:
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


shard_files = MemoOfWeights()
_DIGEST = "_digest"  # where a page of shard models keeps its digest


def shard_digest(weights: ShardWeights) -> str:
    """SHA-256 of the file that holds a shard model."""
    known = shard_files.get(weights)
    if known is not None:
        return known.hex()
    return shard_files.put(weights, bytes.fromhex(file_digest(weights.arrays))).hex()


def shards_digest(shards: Mapping[int, ShardWeights]) -> str:
    """Over the files of all shard models: see `canonical.digest_by_page`."""
    pages = ShardModels.of(shards).pages
    return digest_of_pages({number: _page_digest(page) for number, page in pages.items()})


def _page_digest(page: ModelPage) -> str:
    """Remembered by the page: its models never change."""
    known: str | None = page.__dict__.get(_DIGEST)
    if known is None:
        models = page.models.items()
        known = digest_of({str(shard): shard_digest(weights) for shard, weights in models})
        page.__dict__[_DIGEST] = known
    return known


def aggregator_digest(tensors: Arrays) -> str:
    """SHA-256 of what an aggregator learned, as a file; what lies beside it has no part in it.

    Tensors that are digested by block are no part of that file: the digest is then one over that
    of the file and theirs. `receipts.checking` finds it from a saved file alone.
    """
    learned = {name: tensors[name] for name in tensors if not name.startswith(BESIDE)}
    large = {name: learned.pop(name) for name in tuple(learned) if name.endswith(BY_BLOCK)}
    found = file_digest(contiguous(learned))
    if not large:
        return found
    forms = {
        name: f"{_TYPES[array.dtype]}{list(array.shape)} {digest_by_block(array)}"
        for name, array in contiguous(large).items()
    }
    return digest_of({"file": found, "by block": forms})


def contiguous(tensors: Arrays) -> dict[str, NDArray[Any]]:
    """Return the arrays as they lie in a file; one without dimensions gets one."""
    return {name: np.ascontiguousarray(array) for name, array in tensors.items()}
