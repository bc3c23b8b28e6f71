"""Tensors as the bytes of a safetensors file, and their digest without putting the file together.

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

Arrays = Mapping[str, NDArray[Any]]
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
