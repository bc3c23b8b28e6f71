"""The pages of a graph as bytes, and the index that names them.

A page of a graph is two files, or two parts of one, each a header of four numbers and then its
blocks (see `kernels.paged`), padded to eight bytes; all numbers are little-endian.

    topology    TOPOLOGY, nodes m, entries e, w      nodes, edges, the w values that each entry
                                                     carries, and m leaves of the Merkle tree;
                                                     as NAMED, then the names of the nodes; as
                                                     TARGETED, then the number of bytes of a
                                                     row of targets, those, and any names
    features    FEATURES, nodes m, columns, values   features; values is -1 where they are dense

An index is an array of `GRAPH`, one entry per page in the order of the ids.
"""

from __future__ import annotations

import io
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import CorruptRunError
from grapheraser.graph.pages.directory import Directory
from grapheraser.graph.pages.packing import Page

Block = NDArray[np.uint8]
Content: TypeAlias = bytes | memoryview

TOPOLOGY = int.from_bytes(b"GE-topo1", "little")
NAMED = int.from_bytes(b"GE-name1", "little")
TARGETED = int.from_bytes(b"GE-targ1", "little")
FEATURES = int.from_bytes(b"GE-feat1", "little")
HEADER = 32
BLOCK = [("start", "<i8"), ("size", "<i8"), ("count", "<i8")]
# The block of ids of a page (see `Directory`), its files, and its root in the Merkle tree.
GRAPH = np.dtype(
    [
        *BLOCK,
        ("topology_bytes", "<i8"),
        ("features_bytes", "<i8"),
        ("topology", "V32"),
        ("features", "V32"),
        ("root", "V32"),
    ]
)


class Topology(NamedTuple):
    """The content of a topology file."""

    nodes: Block
    edges: Block
    leaves: NDArray[np.uint8]
    values: Block
    names: Block
    num_entries: int
    targets: Block


def topology_content(page: Page, leaves: NDArray[np.uint8]) -> bytes:
    """Return the topology file of a page."""
    count = len(leaves)
    entries = page.edges.nbytes // 8 - count - 1
    edge_width = page.values.nbytes // (4 * entries) if entries else 0
    kind = NAMED if page.names.nbytes else TOPOLOGY
    kind = TARGETED if page.targets.nbytes else kind
    header = np.array([kind, count, entries, edge_width], dtype="<i8")
    head = header.tobytes() + page.nodes.tobytes() + _padding(13 * count)
    values = page.values.tobytes() + _padding(page.values.nbytes)
    tail = np.ascontiguousarray(leaves).data, _targets(page.targets, count), page.names.data
    return b"".join((head, page.edges.data, values, *tail))


def _targets(block: Block, count: int) -> bytes:
    if not block.nbytes:
        return b""
    head = np.array([block.nbytes // count], dtype="<i8").tobytes()
    return head + block.tobytes() + _padding(block.nbytes)


def _padding(size: int) -> bytes:
    return bytes(-size % 8)


def features_content(block: Block, count: int, columns: int, dense: bool) -> bytes:
    """Return the features file of a page."""
    values = -1 if dense else (block.nbytes - 8 * (count + 1)) // 8
    return np.array([FEATURES, count, columns, values], dtype="<i8").tobytes() + block.tobytes()


def topology_size(page: Page, count: int) -> int:
    """Return the size in bytes of a page's topology file."""
    padded = 13 * count + -13 * count % 8 + page.values.nbytes + -page.values.nbytes % 8
    if page.targets.nbytes:
        padded += 8 + page.targets.nbytes + -page.targets.nbytes % 8
    return HEADER + padded + page.edges.nbytes + 32 * count + page.names.nbytes


def read_topology(content: Content) -> Topology:
    """Read the parts of a topology file."""
    magic, count, entries, edge_width = header_of(content)
    end_of_nodes = HEADER + 13 * count
    edges = end_of_nodes + -13 * count % 8
    values = edges + 8 * (count + 1 + entries)
    end_of_values = values + 4 * entries * edge_width
    leaves = end_of_values + -end_of_values % 8
    targets = names = end_of_targets = leaves + 32 * count
    raw = np.frombuffer(content, dtype=np.uint8)
    if magic == TARGETED and targets + 8 <= len(content):
        size = count * int(raw[targets : targets + 8].view("<i8")[0])
        targets += 8
        end_of_targets = targets + size
        names = end_of_targets + -size % 8
    fits = names == len(content) if magic == TOPOLOGY else magic == NAMED and names < len(content)
    fits |= magic == TARGETED and targets < end_of_targets and names <= len(content)
    if not fits or edge_width < 0:
        raise CorruptRunError("not the topology of a page.")
    own = raw[leaves : leaves + 32 * count].reshape(count, 32)
    parts = raw[HEADER:end_of_nodes], raw[edges:values], own, raw[values:end_of_values]
    return Topology(*parts, raw[names:], entries, raw[targets:end_of_targets])


def read_features(content: Content) -> tuple[Block, int, int, bool]:
    """Read the block of a features file, its nodes, its columns, and whether it is dense."""
    magic, count, columns, values = header_of(content)
    size = 4 * count * columns if values < 0 else 8 * (count + 1 + values)
    if magic != FEATURES or values < -1 or size != len(content) - HEADER:
        raise CorruptRunError("not the features of a page.")
    return np.frombuffer(content, dtype=np.uint8)[HEADER:], count, columns, values < 0


def read_page(
    topology: Content, features: Content, count: int, shape: tuple[int, bool], edge_width: int
) -> tuple[Page, NDArray[np.uint8]]:
    """Read a page of so many nodes from both of its files, with its leaves."""
    found, (block, *rest) = read_topology(topology), read_features(features)
    fits = len(found.leaves) == count and rest == [count, *shape]
    if not fits or len(found.values) != 4 * edge_width * found.num_entries:
        raise CorruptRunError("the index and the pages of the graph don't fit.")
    blocks = found.nodes, found.edges, block, found.values, found.names, found.targets
    return Page(*blocks), found.leaves


def header_of(content: Content) -> tuple[int, int, int, int]:
    """Read the four numbers that a page begins with."""
    if len(content) < HEADER:
        raise CorruptRunError("not a page.")
    magic, count, third, fourth = np.frombuffer(content[:HEADER], dtype="<i8").tolist()
    if not (0 < count <= len(content) and 0 <= third < 2**31 and fourth < 2**40):
        raise CorruptRunError("not a page.")
    return magic, count, third, fourth


def index_content(index: NDArray[np.void]) -> bytes:
    """Return the file of an index."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, index, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def read_index(content: bytes, *kinds: np.dtype[np.void]) -> NDArray[np.void]:
    """Read an index of one of these kinds from its file."""
    buffer = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(buffer)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(buffer)
    except ValueError as error:
        raise CorruptRunError(f"not an index of pages ({error}).") from error
    rest = content[buffer.tell() :]
    flat = version == (1, 0) and len(shape) == 1 and not fortran
    if not flat or dtype not in kinds or len(rest) != dtype.itemsize * shape[0]:
        raise CorruptRunError("not an index of pages.")
    return np.frombuffer(rest, dtype=dtype)


def as_bytes(digests: NDArray[np.void]) -> list[bytes]:
    """Return digests, such as a column of an index, one by one."""
    raw = np.ascontiguousarray(digests).tobytes()
    return [raw[at : at + 32] for at in range(0, len(raw), 32)]


def directory_of(index: NDArray[np.void]) -> Directory:
    """Return the blocks of an index."""
    return Directory(
        np.ascontiguousarray(index["start"], dtype=np.int64),
        np.ascontiguousarray(index["size"], dtype=np.int8),
        np.ascontiguousarray(index["count"], dtype=np.int64),
    )
