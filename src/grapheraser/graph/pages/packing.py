"""A page as blocks of memory, and the rows that go into it; see `kernels.paged`.

Blocks have one spelling: rows in the order of ids, the neighbours of a row and its columns
ascending. Kernels add up in that order, files are named by their digests, and a page that is packed
anew after a change has to have the bytes of one that was packed at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.graph.csr import slices_of
from grapheraser.graph.edge_values import NO_VALUES, Values
from grapheraser.graph.ids import NO_NAMES, Names, packed_names, unpacked_names
from grapheraser.kernels.compiled import compiled

Block = NDArray[np.uint8]
Ids = NDArray[np.int64]

NOTHING: Block = np.zeros(0, dtype=np.uint8)
NOTHING.flags.writeable = False
NO_TARGETS: NDArray[np.uint8] = np.zeros((0, 0), dtype=np.uint8)
NO_TARGETS.flags.writeable = False


class Page(NamedTuple):
    """The blocks of a page; see `kernels.paged`."""

    nodes: Block
    edges: Block
    features: Block
    values: Block = NOTHING
    names: Block = NOTHING
    targets: Block = NOTHING


class Rows(NamedTuple):
    """Some nodes, row by row in the order of their ids: a page before it is packed."""

    # ids, y, role: of each node.
    ids: Ids
    y: NDArray[np.int64]
    role: NDArray[np.int8]
    # indptr, neighbours: ids of the neighbours of each.
    indptr: Ids
    neighbours: Ids
    x: sp.csr_array | NDArray[np.float32]  # float32 ``[len(ids), num_features]``, dense or CSR
    values: Values = NO_VALUES  # what each entry of ``neighbours`` carries; see `edge_values`
    names: Names = NO_NAMES  # of each node, where they have any
    targets: NDArray[np.uint8] = NO_TARGETS  # bytes ``[len(ids), row_bytes]``; see `graph.labels`


_OF_ENTRIES = ("neighbours", "values")  # the others have a part for each node


def joined(parts: Sequence[Rows]) -> Rows:
    """Put rows one after the other."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *(len(part.neighbours) for part in parts)])
    indptr = [part.indptr[:-1] + end for part, end in zip(parts, ends, strict=False)]
    found: dict[str, Any] = dict(zip(Rows._fields, zip(*parts, strict=True), strict=True))
    found["indptr"] = (*indptr, ends[-1:])
    found["targets"] = [part for part in found["targets"] if part.shape[1]] or [NO_TARGETS]
    x = found.pop("x")
    x = sp.csr_array(sp.vstack(x, format="csr")) if sp.issparse(x[0]) else np.concatenate(x)
    return Rows(x=x, **{name: np.concatenate(column) for name, column in found.items()})


def sliced(rows: Rows, low: int, high: int) -> Rows:
    """Return a range of rows."""
    nodes, entries = slice(low, high), slice(rows.indptr[low], rows.indptr[high])
    found: dict[str, Any] = {
        name: part[entries if name in _OF_ENTRIES else nodes]
        for name, part in rows._asdict().items()
    }
    return Rows(**found | {"indptr": rows.indptr[low : high + 1] - rows.indptr[low]})


def reordered(rows: Rows, order: Ids) -> Rows:
    """Return the rows in another order.

    Nodes that are only asked about have no names among those of others: then none is kept.
    """
    entries, found = slices_of(rows.indptr, order), dict[str, Any]()
    for name, part in rows._asdict().items():
        take = entries if name in _OF_ENTRIES else order
        found[name] = part[take] if part.shape[0] == len(take) else part[:0]
    lengths = np.diff(rows.indptr)[order]
    return Rows(**found | {"indptr": np.append(0, np.cumsum(lengths))})


def no_rows(num_features: int, dense: bool, edge_width: int) -> Rows:
    """Return the rows of no nodes."""
    none = np.zeros(0, dtype=np.int64)
    x = np.zeros((0, num_features), dtype=np.float32)
    pointers = np.zeros(1, dtype=np.int64)
    features = x if dense else sp.csr_array(x)
    values = np.zeros((0, edge_width), dtype=np.float32)
    return Rows(none, none, none.astype(np.int8), pointers, none, features, values)


def packed(rows: Rows, counts: NDArray[np.int64]) -> list[Page]:
    """Pack rows into pages of these sizes."""
    pages = []
    end = 0
    for count in counts.tolist():
        part = sliced(rows, end, end + count)
        end += count
        nodes = _packed_nodes(part.ids, part.y, part.role)
        edges = _bytes(part.indptr.astype(np.int64), part.neighbours)
        carried = packed_rows(part.values), packed_names(part.names), packed_rows(part.targets)
        pages.append(Page(nodes, edges, packed_features(part.x), *carried))
    return pages


def packed_rows(rows: Values | NDArray[np.uint8]) -> Block:
    """Pack the values of the entries of a page, or the targets of its nodes."""
    return _bytes(rows) if rows.shape[1] else NOTHING


def _packed_nodes(ids: Ids, y: NDArray[Any], role: NDArray[np.int8]) -> Block:
    return _bytes(ids, y.astype(np.int32), role)


def packed_features(x: sp.csr_array | NDArray[np.float32]) -> Block:
    """Pack the features of a page."""
    return _bytes(x) if isinstance(x, np.ndarray) else packed_csr(x.indptr, x.indices, x.data)


def packed_csr(pointers: NDArray[Any], columns: NDArray[Any], values: NDArray[np.float32]) -> Block:
    """Pack the features of a page of sparse rows."""
    return _bytes(pointers.astype(np.int64), columns.astype(np.int32), values)


def _bytes(*arrays: NDArray[Any]) -> Block:
    """Copy the bytes of some arrays one after the other, into memory of their own."""
    out = np.empty(sum(array.nbytes for array in arrays), dtype=np.uint8)
    end = 0
    for array in arrays:
        out[end : end + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        end += array.nbytes
    out.flags.writeable = False
    return out


def unpacked(page: Page, count: int, num_features: int, dense: bool, edge_width: int) -> Rows:
    """Unpack a page of so many nodes."""
    ids, y, role = unpacked_nodes(page.nodes, count)
    words = page.edges.view(np.int64)
    x = unpacked_features(page.features, count, num_features, dense)
    pointers, around = words[: count + 1], words[count + 1 :]
    values = unpacked_values(page.values, edge_width)
    names, targets = unpacked_names(page.names, count), unpacked_targets(page.targets, count)
    return Rows(ids, y.astype(np.int64), role, pointers, around, x, values, names, targets)


def unpacked_values(block: Block, edge_width: int) -> Values:
    """Unpack the values of the entries of a page ``[entries, edge_width]``."""
    return block.view(np.float32).reshape(-1, edge_width) if edge_width else NO_VALUES


def unpacked_nodes(block: Block, count: int) -> tuple[Ids, NDArray[np.int32], NDArray[np.int8]]:
    """Unpack the ids, labels and roles of so many nodes."""
    parts = block[: 8 * count], block[8 * count : 12 * count], block[12 * count :]
    return parts[0].view(np.int64), parts[1].view(np.int32), parts[2].view(np.int8)


def unpacked_features(
    block: Block, count: int, num_features: int, dense: bool
) -> sp.csr_array | NDArray[np.float32]:
    """Unpack the features of so many nodes, dense or CSR."""
    if dense:
        return block.view(np.float32).reshape(count, num_features)
    pointers, columns, values = unpacked_csr(block, count)
    return sp.csr_array((values, columns, pointers), shape=(count, num_features))


def unpacked_csr(block: Block, count: int) -> tuple[Ids, NDArray[np.int32], NDArray[np.float32]]:
    """Unpack the pointers, columns and values of so many sparse rows."""
    pointers = block[: 8 * (count + 1)].view(np.int64)
    middle = 8 * (count + 1) + 4 * int(pointers[-1])
    columns = block[8 * (count + 1) : middle].view(np.int32)
    return pointers, columns, block[middle:].view(np.float32)


def unpacked_targets(block: Block, count: int) -> NDArray[np.uint8]:
    """Unpack the targets of so many nodes, as bytes ``[count, row_bytes]``."""
    return block.reshape(count, -1) if block.nbytes else NO_TARGETS


def kept_nodes(block: Block, keep: NDArray[np.bool_]) -> Block:
    """Return a nodes block without the rows that go."""
    ids, y, role = unpacked_nodes(block, len(keep))
    return _packed_nodes(ids[keep], y[keep], role[keep])


def relabelled_nodes(block: Block, count: int, rows: Ids, y: Ids, role: NDArray[np.int8]) -> Block:
    """Return a nodes block of so many nodes with other labels and roles in some rows."""
    ids, labels, roles = unpacked_nodes(block, count)
    labels, roles = labels.copy(), roles.copy()
    labels[rows], roles[rows] = y, role
    return _packed_nodes(ids, labels, roles)


def replaced_features(old: sp.csr_array | NDArray[np.float32], rows: Ids, x: sp.csr_array) -> Block:
    """Return the features block of a page with other features in some rows."""
    if isinstance(old, np.ndarray):
        dense = old.copy()
        dense[rows] = x.toarray()
        return packed_features(dense)
    source = np.arange(old.shape[0])
    source[rows] = old.shape[0] + np.arange(len(rows))
    return packed_features(sp.csr_array(sp.vstack([old, x], format="csr"))[source])


def edited_edges(
    page: Page, width: int, keep: NDArray[np.bool_], rows: Ids, ids: Ids
) -> tuple[Block, Block]:
    """Return the edges of rows to keep, without these sorted (row, id) pairs, and their values.

    Each entry carries as many values as ``width`` says.
    """
    words: Ids = page.edges.view(np.int64)
    stays: NDArray[np.bool_] = _stays(words, keep, rows, ids)
    counts = np.diff(np.append(0, np.cumsum(stays))[words[: len(keep) + 1]])[keep]
    edges = _bytes(np.append(0, np.cumsum(counts)), words[len(keep) + 1 :][stays])
    if not width:
        return edges, page.values
    return edges, packed_rows(unpacked_values(page.values, width)[stays])


@compiled
def _stays(words: Ids, keep: NDArray[np.bool_], rows: Ids, ids: Ids) -> NDArray[np.bool_]:
    """Mark the entries of a page that are in a row to keep, and not among these (row, id) pairs."""
    count, pair = len(keep), 0
    out = np.empty(words[count], dtype=np.bool_)
    for row in range(count):
        while pair < len(rows) and rows[pair] < row:
            pair += 1
        for e in range(words[row], words[row + 1]):
            named = pair < len(rows) and rows[pair] == row and ids[pair] == words[count + 1 + e]
            out[e] = keep[row] and not named
            pair += named
    return out


def extended_edges(
    page: Page, count: int, rows: Ids, ids: Ids, values: Values
) -> tuple[Block, Block]:
    """Return the edges and their values of a page of so many rows, with more (row, id) pairs.

    Each of these goes to its place in the order of ids; ``values`` is what they carry.
    """
    words = page.edges.view(np.int64)
    owner = np.repeat(np.arange(count), np.diff(words[: count + 1]))
    owner, other = np.concatenate([owner, rows]), np.concatenate([words[count + 1 :], ids])
    order = np.lexsort((other, owner))
    lengths = np.bincount(owner, minlength=count)
    edges = _bytes(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), other[order])
    width = values.shape[1]
    if not width:
        return edges, page.values
    carried = np.concatenate([unpacked_values(page.values, width), values])
    return edges, packed_rows(carried[order])
