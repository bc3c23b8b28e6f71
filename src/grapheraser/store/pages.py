"""The pages of a graph as files, and the index that names them.

A page of a graph is two files, each a header of four numbers and then its blocks (see
`kernels.paged`), every one of them padded to eight bytes; all numbers are little-endian.

    topology   TOPOLOGY, nodes m, entries e, 0       nodes, edges, and m leaves of the Merkle tree
    features   FEATURES, nodes m, columns, values     features; values is -1 where they are dense

Neither holds anything of another page, so a change of the graph writes the pages that it touches.
The index is an array of `ENTRY`, one per page in the order of the ids.
"""

from __future__ import annotations

import io
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import CorruptRunError
from grapheraser.graph.pages import Page

Block = NDArray[np.uint8]

TOPOLOGY = int.from_bytes(b"GE-topo1", "little")
FEATURES = int.from_bytes(b"GE-feat1", "little")
HEADER = 32
# Where a page begins and how many ids and nodes it spans, its files and its part of the tree.
ENTRY = np.dtype(
    [
        ("start", "<i8"),
        ("size", "<i8"),
        ("count", "<i8"),
        ("topology_bytes", "<i8"),
        ("features_bytes", "<i8"),
        ("topology", "V32"),
        ("features", "V32"),
        ("root", "V32"),
    ]
)


class Topology(NamedTuple):
    """What a topology file holds."""

    nodes: Block
    edges: Block
    leaves: NDArray[np.uint8]


def page_file(digest: bytes) -> str:
    """The name of the file with this digest."""
    return f"pages/{digest.hex()}.page"


def topology_content(page: Page, leaves: NDArray[np.uint8]) -> bytes:
    """The topology file of a page."""
    count = len(leaves)
    entries = page.edges.nbytes // 8 - count - 1
    header = np.array([TOPOLOGY, count, entries, 0], dtype="<i8")
    padding = bytes(-13 * count % 8)
    head = header.tobytes() + page.nodes.tobytes() + padding
    return b"".join((head, page.edges.data, np.ascontiguousarray(leaves).data))


def features_content(block: Block, count: int, columns: int, *, dense: bool) -> bytes:
    """The features file of a page."""
    values = -1 if dense else (block.nbytes - 8 * (count + 1)) // 8
    return np.array([FEATURES, count, columns, values], dtype="<i8").tobytes() + block.tobytes()


def topology_size(page: Page, count: int) -> int:
    """The bytes of a page's topology file."""
    return HEADER + 13 * count + -13 * count % 8 + page.edges.nbytes + 32 * count


def read_topology(content: bytes) -> Topology:
    """The parts of a topology file."""
    magic, count, entries, none = _header(content)
    at = np.cumsum([HEADER, 13 * count, -13 * count % 8, 8 * (count + 1 + entries), 32 * count])
    if (magic, none) != (TOPOLOGY, 0) or at[-1] != len(content):
        raise CorruptRunError("not the topology of a page.")
    raw = np.frombuffer(content, dtype=np.uint8)
    leaves = raw[at[3] :].reshape(count, 32)
    return Topology(raw[at[0] : at[1]], raw[at[2] : at[3]], leaves)


def read_features(content: bytes) -> tuple[Block, int, int, bool]:
    """The block of a features file, its nodes, its columns, and whether it is dense."""
    magic, count, columns, values = _header(content)
    size = 4 * count * columns if values < 0 else 8 * (count + 1 + values)
    if magic != FEATURES or values < -1 or size != len(content) - HEADER:
        raise CorruptRunError("not the features of a page.")
    return np.frombuffer(content, dtype=np.uint8)[HEADER:], count, columns, values < 0


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


def read_index(content: bytes) -> NDArray[np.void]:
    """An index from its file."""
    buffer = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(buffer)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(buffer)
    except ValueError as error:
        raise CorruptRunError(f"not the index of a graph ({error}).") from error
    rest = content[buffer.tell() :]
    if version != (1, 0) or fortran or dtype != ENTRY or len(rest) != ENTRY.itemsize * shape[0]:
        raise CorruptRunError("not the index of a graph.")
    return np.frombuffer(rest, dtype=ENTRY)


def page_digests(index: NDArray[np.void]) -> list[bytes]:
    """The digests of all files that an index names, topology before features."""
    return [*digests(index, "topology"), *digests(index, "features")]


def digests(index: NDArray[np.void], field: str) -> list[bytes]:
    """One column of digests."""
    raw = np.ascontiguousarray(index[field]).tobytes()
    return [raw[at : at + 32] for at in range(0, len(raw), 32)]
