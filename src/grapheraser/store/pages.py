"""The pages of a graph, a partition and a register as files, and the indexes that name them.

A page of a graph is two files and any other page is one, each a header of four numbers and
then its blocks (see `kernels.paged`), padded to eight bytes; all numbers are little-endian.

    topology    TOPOLOGY, nodes m, entries e, w      nodes, edges, the w values that each entry
                                                     carries, and m leaves of the Merkle tree;
                                                     as NAMED, then the names of the nodes
    features    FEATURES, nodes m, columns, values   features; values is -1 where they are dense
    partition   PARTITION, nodes m, 0, 0             nodes, their labels the shards
    register    REGISTER, nodes m, digits, 0         slots, nonces and ids; see `graph.register`

No file holds anything of another page, so a change writes the pages that it touches. An index is an
array of `GRAPH`, `SHARDS` or `SLOTS`, one entry per page in the order of the ids or slots. A page
of the register that is empty has no file.
"""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import CorruptRunError
from grapheraser.graph.directory import Directory
from grapheraser.graph.names import unpacked_names
from grapheraser.graph.packing import Page
from grapheraser.graph.register import ENTRY, Entries, Register, RegisterPage

Block = NDArray[np.uint8]

TOPOLOGY = int.from_bytes(b"GE-topo1", "little")
NAMED = int.from_bytes(b"GE-name1", "little")
FEATURES = int.from_bytes(b"GE-feat1", "little")
PARTITION = int.from_bytes(b"GE-part1", "little")
REGISTER = int.from_bytes(b"GE-regi1", "little")
HEADER = 32
_BLOCK = [("start", "<i8"), ("size", "<i8"), ("count", "<i8")]
# The block of ids of a page (see `Directory`), its files, and its root in the Merkle tree.
GRAPH = np.dtype(
    [
        *_BLOCK,
        ("topology_bytes", "<i8"),
        ("features_bytes", "<i8"),
        ("topology", "V32"),
        ("features", "V32"),
        ("root", "V32"),
    ]
)
SHARDS = np.dtype([*_BLOCK, ("shards", "V32")])
# A page of the register: its file, and its digest in the tree.
SLOTS = np.dtype([("count", "<i8"), ("entries", "V32"), ("top", "V32")])
_FILES = ("topology", "features", "shards", "entries")


class Topology(NamedTuple):
    """What a topology file holds."""

    nodes: Block
    edges: Block
    leaves: NDArray[np.uint8]
    values: Block
    names: Block
    num_entries: int


def page_file(digest: bytes) -> str:
    """The name of the file with this digest."""
    return f"pages/{digest.hex()}.page"


def topology_content(page: Page, leaves: NDArray[np.uint8]) -> bytes:
    """The topology file of a page."""
    count = len(leaves)
    entries = page.edges.nbytes // 8 - count - 1
    edge_width = page.values.nbytes // (4 * entries) if entries else 0
    kind = NAMED if page.names.nbytes else TOPOLOGY
    header = np.array([kind, count, entries, edge_width], dtype="<i8")
    head = header.tobytes() + page.nodes.tobytes() + _padding(13 * count)
    values = page.values.tobytes() + _padding(page.values.nbytes)
    tail = np.ascontiguousarray(leaves).data, page.names.data
    return b"".join((head, page.edges.data, values, *tail))


def _padding(size: int) -> bytes:
    return bytes(-size % 8)


def shards_content(block: Block, count: int) -> bytes:
    """The file of a page of a partition."""
    return np.array([PARTITION, count, 0, 0], dtype="<i8").tobytes() + block.tobytes()


def register_content(page: RegisterPage) -> bytes:
    """The file of a page of a register."""
    header = np.array([REGISTER, len(page.entries), page.digits, 0], dtype="<i8")
    return header.tobytes() + page.entries.tobytes()


def features_content(block: Block, count: int, columns: int, dense: bool) -> bytes:
    """The features file of a page."""
    values = -1 if dense else (block.nbytes - 8 * (count + 1)) // 8
    return np.array([FEATURES, count, columns, values], dtype="<i8").tobytes() + block.tobytes()


def topology_size(page: Page, count: int) -> int:
    """The bytes of a page's topology file."""
    padded = 13 * count + -13 * count % 8 + page.values.nbytes + -page.values.nbytes % 8
    return HEADER + padded + page.edges.nbytes + 32 * count + page.names.nbytes


def read_topology(content: bytes) -> Topology:
    """The parts of a topology file."""
    magic, count, entries, edge_width = _header(content)
    end_of_nodes = HEADER + 13 * count
    edges = end_of_nodes + -13 * count % 8
    values = edges + 8 * (count + 1 + entries)
    end_of_values = values + 4 * entries * edge_width
    leaves = end_of_values + -end_of_values % 8
    names = leaves + 32 * count
    fits = names == len(content) if magic == TOPOLOGY else magic == NAMED and names < len(content)
    if not fits or edge_width < 0:
        raise CorruptRunError("not the topology of a page.")
    raw = np.frombuffer(content, dtype=np.uint8)
    parts = raw[HEADER:end_of_nodes], raw[edges:values], raw[leaves:names].reshape(count, 32)
    return Topology(*parts, raw[values:end_of_values], raw[names:], entries)


def read_features(content: bytes) -> tuple[Block, int, int, bool]:
    """The block of a features file, its nodes, its columns, and whether it is dense."""
    magic, count, columns, values = _header(content)
    size = 4 * count * columns if values < 0 else 8 * (count + 1 + values)
    if magic != FEATURES or values < -1 or size != len(content) - HEADER:
        raise CorruptRunError("not the features of a page.")
    return np.frombuffer(content, dtype=np.uint8)[HEADER:], count, columns, values < 0


def read_shards_of(content: bytes) -> Block:
    """The block of nodes of a page of a partition."""
    magic, count, *none = _header(content)
    if magic != PARTITION or none != [0, 0] or len(content) != HEADER + 13 * count:
        raise CorruptRunError("not a page of a partition.")
    return np.frombuffer(content, dtype=np.uint8)[HEADER:]


def read_slots(content: bytes) -> tuple[Entries, int]:
    """The entries of a page of a register, and how many digits their slots share."""
    magic, count, digits, none = _header(content)
    if magic != REGISTER or none or len(content) != HEADER + ENTRY.itemsize * count:
        raise CorruptRunError("not a page of a register.")
    return np.frombuffer(content[HEADER:], dtype=ENTRY), digits


def page_arrays(content: bytes) -> dict[str, NDArray[np.int64]]:
    """The ids and edges that a page names; empty for what is no page."""
    try:
        _, count, *_ = _header(content)
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
    if not content.startswith(_magic(NAMED)):
        return ()
    try:
        _, count, *_ = _header(content)
        return tuple(unpacked_names(read_topology(content).names, count))
    except (CorruptRunError, ValueError, IndexError):
        return ()


def _magic(kind: int) -> bytes:
    return kind.to_bytes(8, "little")


def _header(content: bytes) -> tuple[int, int, int, int]:
    if len(content) < HEADER:
        raise CorruptRunError("not a page.")
    magic, count, third, fourth = np.frombuffer(content[:HEADER], dtype="<i8").tolist()
    if not (0 < count <= len(content) and 0 <= third < 2**31 and fourth < 2**40):
        raise CorruptRunError("not a page.")
    return magic, count, third, fourth


def index_content(index: NDArray[np.void]) -> bytes:
    """The file of an index."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, index, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def read_index(content: bytes, kind: np.dtype[np.void]) -> NDArray[np.void]:
    """An index of this kind from its file."""
    buffer = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(buffer)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(buffer)
    except ValueError as error:
        raise CorruptRunError(f"not an index of pages ({error}).") from error
    rest = content[buffer.tell() :]
    flat = version == (1, 0) and len(shape) == 1 and not fortran
    if not flat or dtype != kind or len(rest) != kind.itemsize * shape[0]:
        raise CorruptRunError("not an index of pages.")
    return np.frombuffer(rest, dtype=kind)


def page_digests(index: NDArray[np.void]) -> list[bytes]:
    """The digests of all files that an index names."""
    names, there = index.dtype.names or (), index[index["count"] > 0]
    return [digest for name in names if name in _FILES for digest in digests(there, name)]


def digests(index: NDArray[np.void], field: str) -> list[bytes]:
    """One column of digests."""
    raw = np.ascontiguousarray(index[field]).tobytes()
    return [raw[at : at + 32] for at in range(0, len(raw), 32)]


def index_of(directory: Directory, kind: np.dtype[np.void], **columns: list[bytes]) -> NDArray[Any]:
    """An index with the blocks of a directory, and columns of digests."""
    index = np.zeros(len(directory), dtype=kind)
    index["start"], index["size"] = directory.starts, directory.sizes
    index["count"] = directory.counts
    for name, column in columns.items():
        index[name] = np.frombuffer(b"".join(column), dtype="V32")
    return index


def index_of_register(register: Register, entries: list[bytes]) -> NDArray[Any]:
    """An index of a register, from the digests of the files of the pages that are not empty."""
    index = np.zeros(len(register.pages), dtype=SLOTS)
    index["count"] = [len(page.entries) for page in register.pages]
    there = index["count"] > 0
    tops = [page.top for page in register.pages if page.top is not None]
    index["entries"][there] = np.frombuffer(b"".join(entries), dtype="V32")
    index["top"][there] = np.frombuffer(b"".join(tops), dtype="V32")
    return index


def directory_of(index: NDArray[np.void]) -> Directory:
    """The blocks of an index."""
    return Directory(
        np.ascontiguousarray(index["start"], dtype=np.int64),
        np.ascontiguousarray(index["size"], dtype=np.int8),
        np.ascontiguousarray(index["count"], dtype=np.int64),
    )
