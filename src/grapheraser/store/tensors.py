"""Tensors as safetensors files, and the digests of these files and of all models of a run.

The layout is that of the package ``safetensors``: the largest types first, names in order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from grapheraser.canonical import digest_of, digest_of_pages
from grapheraser.engines import ShardModels, ShardWeights
from grapheraser.engines.shard_models import ModelPage
from grapheraser.store.digests import MemoOfWeights

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
    """SHA-256 of what an aggregator learned, as a file; what lies beside it has no part in it."""
    learned = {name: tensors[name] for name in tensors if not name.startswith(BESIDE)}
    return file_digest(contiguous(learned))


def contiguous(tensors: Arrays) -> dict[str, NDArray[Any]]:
    """Return the arrays as they lie in a file; one without dimensions gets one."""
    return {name: np.ascontiguousarray(array) for name, array in tensors.items()}
