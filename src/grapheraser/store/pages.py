"""The pages of a graph, a partition and a register as files, and what an index says of them.

A page of a graph is two files (see `graph.pages.files`) and any other page is one, each a header of
four numbers and then its content; all numbers are little-endian.

    partition   PARTITION, nodes m, 0, 0             nodes, their labels the shards
    register    REGISTER, nodes m, digits, 0         slots, nonces, ids: `graph.proof.register`

No file holds anything of another page, so a change writes the pages that it touches. An index is an
array of `GRAPH`, `SHARDS` or `SLOTS`, one entry per page in the order of the ids or slots, or of
`MODELS`, one per shard; `store.indexes` says how it is kept. A page of the register that is empty
has no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import CorruptRunError
from grapheraser.graph.ids import unpacked_names
from grapheraser.graph.pages.files import (
    BLOCK,
    HEADER,
    NAMED,
    TARGETED,
    Block,
    as_bytes,
    header_of,
    read_topology,
)
from grapheraser.graph.proof.register import ENTRY, Entries, RegisterPage
from grapheraser.store.digests import unknown

PARTITION = int.from_bytes(b"GE-part1", "little")
REGISTER = int.from_bytes(b"GE-regi1", "little")
SHARDS = np.dtype([*BLOCK, ("shards", "V32")])
# A page of the register: its number, its file, and its digest in the tree.
SLOTS = np.dtype([("start", "<i8"), ("count", "<i8"), ("entries", "V32"), ("top", "V32")])
# A shard: its number, its own seed or `NO_SEED`, and the file of its model.
MODELS = np.dtype([("start", "<i8"), ("seed", "<i8"), ("weights", "V32")])
NO_SEED = -1


def page_file(digest: bytes) -> str:
    """The name of the file with this digest."""
    return f"pages/{digest.hex()}.page"


def model_file(digest: bytes) -> str:
    """The name of the file of a shard model with this digest."""
    return f"shards/{digest.hex()[:20]}.safetensors"


# What names files in an index: columns of digests.
FILES: Mapping[str, Callable[[bytes], str]] = MappingProxyType(
    dict.fromkeys(("topology", "features", "shards", "entries"), page_file)
    | {"weights": model_file}
)


def shards_content(block: Block, count: int) -> bytes:
    """The file of a page of a partition."""
    return np.array([PARTITION, count, 0, 0], dtype="<i8").tobytes() + block.tobytes()


def register_content(page: RegisterPage) -> bytes:
    """The file of a page of a register."""
    header = np.array([REGISTER, len(page.entries), page.digits, 0], dtype="<i8")
    return header.tobytes() + page.entries.tobytes()


def read_shards_of(content: bytes) -> Block:
    """The block of nodes of a page of a partition."""
    magic, count, *none = header_of(content)
    if magic != PARTITION or none != [0, 0] or len(content) != HEADER + 13 * count:
        raise CorruptRunError("not a page of a partition.")
    return np.frombuffer(content, dtype=np.uint8)[HEADER:]


def read_slots(content: bytes) -> tuple[Entries, int]:
    """The entries of a page of a register, and how many digits their slots share."""
    magic, count, digits, none = header_of(content)
    if magic != REGISTER or none or len(content) != HEADER + ENTRY.itemsize * count:
        raise CorruptRunError("not a page of a register.")
    return np.frombuffer(content[HEADER:], dtype=ENTRY), digits


def page_arrays(content: bytes) -> dict[str, NDArray[np.int64]]:
    """The ids and edges that a page names; empty for what is no page."""
    try:
        _, count, *_ = header_of(content)
        if content.startswith(_magic(PARTITION)):
            return {"ids": read_shards_of(content)[: 8 * count].view(np.int64)}
        if content.startswith(_magic(REGISTER)):
            return {"ids": read_slots(content)[0]["node"].astype(np.int64)}
        topology = read_topology(content)
    except CorruptRunError:
        return {}
    ids, words = topology.nodes[: 8 * count].view(np.int64), topology.edges.view(np.int64)
    lengths = np.diff(words[: count + 1])
    if words[0] != 0 or (lengths < 0).any() or words[count] != len(words) - count - 1:
        return {"ids": ids}
    pairs = np.stack([np.repeat(ids, lengths), words[count + 1 :]], axis=1)
    return {"ids": ids, "edges": pairs}


def page_names(content: bytes) -> tuple[str, ...]:
    """The names of nodes in a page; none for what is no page, or for a damaged one."""
    if not content.startswith((_magic(NAMED), _magic(TARGETED))):
        return ()
    try:
        _, count, *_ = header_of(content)
        names = read_topology(content).names
        return tuple(unpacked_names(names, count)) if names.nbytes else ()
    except (CorruptRunError, ValueError, IndexError):
        return ()


def _magic(kind: int) -> bytes:
    return kind.to_bytes(8, "little")


def files_of(index: NDArray[np.void]) -> Iterator[tuple[str, str]]:
    """The names and digests of all files that the entries of an index name."""
    for name in filter(FILES.__contains__, index.dtype.names or ()):
        for digest in as_bytes(index[name][~unknown(index[name])]):
            yield FILES[name](digest), digest.hex()
