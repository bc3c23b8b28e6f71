"""A graph in pages, as compiled code reads it.

Nodes lie in pages of at most `ROOM`, in the order of their ids; `graph.pages.directory` says which
share one. A *place* is where a node lies: the number of its page times `ROOM`, plus its row there.
Places are ordered as ids are, and hold for one graph. A page is five blocks of memory:

    nodes      ids int64[m], labels int32[m], roles int8[m]
    edges      pointers int64[m + 1], ids of the neighbours int64[...], sorted in each row
    features   pointers int64[m + 1], columns int32[...], values float32[...]
               or, where features are dense, values float32[m, num_features]
    values     what each entry of the edges carries, float32[entries, edge_width]: direction,
               weight, features, those that the graph's edges have; empty where they have none
    targets    bytes[m, row_bytes], where labels are no classes (see `graph.labels`); else empty

Where nodes have names, these are a sixth block (see `graph.ids`), which no kernel reads.

`Table` holds their addresses; whoever calls a kernel keeps the graph alive meanwhile.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.numpy_support import carray
from numpy.typing import NDArray

from grapheraser.arrays import Floats32, Ints, Ints32
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.vectors import BYTES, ask_for

ROOM = 256
NOWHERE = -1
# Columns of `Table.pages`.
START, COUNT, NODES, EDGES, FEATURES, VALUES, TARGETS = range(7)
# How many nodes ahead of their turn memory is asked for, and how many neighbours of each.
_AHEAD, _FAR, _MAX_NEIGHBOURS = 2, 12, 64
_FEW = 3  # pages that are looked through one by one
# Directions of an entry: from the neighbour to the node, or the other way round; 3 is both.
INCOMING, OUTGOING = 1, 2


class Table(NamedTuple):
    """Where the pages of a graph lie.

    Few fields on purpose: numba hands over every part of every array by itself, wherever a kernel
    calls another one, and each of them is typed and translated again.
    """

    # Int64 ``[num_pages, 7]``: the smallest id that a page may hold (ascending), the number of its
    # nodes, the addresses of its five blocks; see `START` to `TARGETS`.
    pages: Ints
    # Int32, for each block of ids of ``1 << shift`` the last page that starts at or before it.
    first: Ints32
    shift: int  # see ``first``
    width: int  # number of feature columns where they are dense, else -1
    edge_width: int  # number of values of each entry
    # directed, weighted: whether a direction, a weight is among them, in this order.
    directed: bool
    weighted: bool


def _reader(kind: Any) -> Callable[..., Any]:
    """A function of compiled code that reads one number at an address."""

    def read(typing_context: Any, address: Any) -> Any:
        del typing_context

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = context.get_value_type(kind).as_pointer()
            where = builder.inttoptr(arguments[0], pointer)
            return builder.load(where)

        return kind(types.int64), build

    return intrinsic(read)


def _prefetch(typing_context: Any, address: Any) -> Any:
    """Ask for the cache line at an address; changes nothing."""
    del typing_context, address

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        ask_for(builder, builder.inttoptr(arguments[0], BYTES))
        return context.get_dummy_value()

    return types.void(types.int64), build


_ask_for: Callable[..., Any] = intrinsic(_prefetch)


def _pointer_to(kind: Any) -> Callable[..., Any]:
    """A function of compiled code that takes an address for a pointer to numbers."""

    def point(typing_context: Any, address: Any) -> Any:
        del typing_context
        pointer = types.CPointer(kind)

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(pointer))

        return pointer(types.int64), build

    return intrinsic(point)


_int64, _int32, _int8 = _reader(types.int64), _reader(types.int32), _reader(types.int8)
_float32 = _reader(types.float32)
_floats, _ints = _pointer_to(types.float32), _pointer_to(types.int64)


@compiled(inline=True)
def rank_from(first: int, low: int, high: int, node: int) -> int:
    """Where an id is, or would be, among the sorted ones at an address, from the one at low on."""
    while low < high:
        middle = (low + high) // 2
        if _int64(first + 8 * middle) < node:
            low = middle + 1
        else:
            high = middle
    return low


@compiled(inline=True)
def _page_of(table: Table, node: int) -> np.int64:
    """The page that holds a node id, if any does."""
    block, last = node >> table.shift, np.int64(len(table.pages) - 1)
    if block >= len(table.first):
        return last
    page = np.int64(table.first[block])
    if block + 1 < len(table.first):
        last = np.int64(table.first[block + 1])
    if last - page > _FEW:  # as where a block is a type's: numbers lie at its start
        # A page is about `ROOM` ids or more, so the one wanted is this one or one before it.
        at = page + (node - table.pages[page, START]) // ROOM
        if page <= at <= last:
            if table.pages[at, START] <= node:
                return at
            last = at - 1
        while last - page > _FEW:
            middle = (page + last + 1) // 2
            if table.pages[middle, START] <= node:
                page = middle
            else:
                last = middle - 1
    while page < last and table.pages[page + 1, START] <= node:
        page += 1
    return page


@compiled(inline=True)
def locate(table: Table, node: int) -> np.int64 | int:
    """The place of a node id; `NOWHERE` for one that the graph doesn't have."""
    if node < 0 or len(table.pages) == 0:
        return NOWHERE
    page = _page_of(table, node)
    count = table.pages[page, COUNT]
    ids = table.pages[page, NODES]
    # Where ids are consecutive, the first of them tells the row.
    row = node - _int64(ids)
    if 0 <= row < count and (
        _int64(ids + 8 * (count - 1)) - _int64(ids) == count - 1 or _int64(ids + 8 * row) == node
    ):
        return page * ROOM + row
    row = rank_from(ids, 0, count, node)
    return page * ROOM + row if row < count and _int64(ids + 8 * row) == node else NOWHERE


@compiled(inline=True)
def node_at(table: Table, place: int) -> int:
    """The id of the node at a place."""
    return _int64(table.pages[place // ROOM, NODES] + 8 * (place % ROOM))


@compiled(inline=True)
def label_at(table: Table, place: int) -> np.int64:
    """The class of the node at a place, or -1."""
    page = place // ROOM
    return np.int64(
        _int32(table.pages[page, NODES] + 8 * table.pages[page, COUNT] + 4 * (place % ROOM))
    )


@compiled(inline=True)
def role_at(table: Table, place: int) -> np.int64:
    """The role of the node at a place."""
    page = place // ROOM
    return np.int64(_int8(table.pages[page, NODES] + 12 * table.pages[page, COUNT] + place % ROOM))


@compiled(inline=True)
def degree_at(table: Table, place: int) -> int:
    """The number of neighbours of the node at a place."""
    start = table.pages[place // ROOM, EDGES] + 8 * (place % ROOM)
    return _int64(start + 8) - _int64(start)


@compiled(inline=True)
def first_edge(table: Table, place: int) -> int:
    """Where the neighbours of the node at a place begin; for `neighbour`."""
    page = place // ROOM
    start = _int64(table.pages[page, EDGES] + 8 * (place % ROOM))
    return table.pages[page, EDGES] + 8 * (table.pages[page, COUNT] + 1 + start)


@compiled(inline=True)
def neighbour(first: int, i: int) -> int:
    """The id of the i-th neighbour, from what `first_edge` gave."""
    return _int64(first + 8 * i)


@compiled(inline=True)
def neighbours_at(table: Table, place: int) -> Ints:
    """The ids of the neighbours of the node at a place, as they lie in its page."""
    ids: Ints = carray(_ints(first_edge(table, place)), degree_at(table, place))
    return ids


@compiled(inline=True)
def entry_of(table: Table, place: int, other: int) -> int:
    """Which of the neighbours of the node at a place an id is; `NOWHERE` for none of them."""
    first, end = first_edge(table, place), degree_at(table, place)
    entry = rank_from(first, 0, end, other)
    return entry if entry < end and neighbour(first, entry) == other else NOWHERE


@compiled(inline=True)
def edge_value(table: Table, place: int, i: int, column: int) -> np.float32:
    """A value of the entry of the i-th neighbour of the node at a place."""
    page = place // ROOM
    entry = _int64(table.pages[page, EDGES] + 8 * (place % ROOM)) + i
    return _float32(table.pages[page, VALUES] + 4 * (entry * table.edge_width + column))


@compiled(inline=True)
def weight_at(table: Table, place: int, i: int) -> np.float32:
    """The weight with which the i-th neighbour comes in; 0 where the edge only leads out."""
    if table.weighted:
        return edge_value(table, place, i, 1 if table.directed else 0)
    if table.directed and edge_value(table, place, i, 0) == OUTGOING:
        return np.float32(0.0)
    return np.float32(1.0)


@compiled
def weight_between(table: Table, place: int, i: int) -> np.float32:
    """The weight of the edge to the i-th neighbour, whatever its direction; 1 where it has none.

    Where edges lead both ways, the mean of the two, as in `Graph.undirected`.
    """
    if not table.weighted:
        return np.float32(1.0)
    if not table.directed:
        return edge_value(table, place, i, 0)
    ways = int(edge_value(table, place, i, 0))
    total = 0.0
    if ways & INCOMING:
        total += edge_value(table, place, i, 1)
    if ways & OUTGOING:
        other = locate(table, neighbour(first_edge(table, place), i))
        total += edge_value(table, other, entry_of(table, other, node_at(table, place)), 1)
    return np.float32(total / (2.0 if ways == INCOMING | OUTGOING else 1.0))


@compiled(inline=True)
def size_at(table: Table, place: int) -> int:
    """The most features that `copy_features` may write for the node at a place."""
    if table.width >= 0:
        return table.width
    start = table.pages[place // ROOM, FEATURES] + 8 * (place % ROOM)
    return _int64(start + 8) - _int64(start)


@compiled(inline=True)
def dense_features(table: Table, place: int) -> Floats32:
    """The features of the node at a place where they are dense, as they lie in its page."""
    start = table.pages[place // ROOM, FEATURES] + 4 * table.width * (place % ROOM)
    values: Floats32 = carray(_floats(start), table.width)
    return values


@compiled(inline=True)
def copy_features(table: Table, place: int, columns: Ints32, values: Floats32, at: int) -> int:
    """Write the features of a node that are not 0 from ``at`` on; returns where they end."""
    page, row = place // ROOM, place % ROOM
    block = table.pages[page, FEATURES]
    if table.width >= 0:
        block += 4 * table.width * row
        for column in range(table.width):
            value = _float32(block + 4 * column)
            if value != 0.0:
                columns[at] = column
                values[at] = value
                at += 1
        return at
    count = table.pages[page, COUNT]
    start, end = _int64(block + 8 * row), _int64(block + 8 * row + 8)
    entries = _int64(block + 8 * count)
    block += 8 * (count + 1)
    for e in range(start, end):
        columns[at] = _int32(block + 4 * e)
        values[at] = _float32(block + 4 * (entries + e))
        at += 1
    return at


@compiled(inline=True)
def prefetch_features(table: Table, place: int) -> None:
    """Ask for the features of a node that is about to be read."""
    page, row = place // ROOM, place % ROOM
    block = table.pages[page, FEATURES]
    if table.width >= 0:
        start = block + 4 * table.width * row
        for line in range(start, start + 4 * table.width, 64):
            _ask_for(line)
        return
    count = table.pages[page, COUNT]
    start, end = _int64(block + 8 * row), _int64(block + 8 * row + 8)
    columns, entries = block + 8 * (count + 1), _int64(block + 8 * count)
    for line in range(columns + 4 * start, columns + 4 * end, 64):
        _ask_for(line)
        _ask_for(line + 4 * entries)


@compiled(inline=True)
def prefetch_ahead(table: Table, places: Ints, r: int, ahead: int) -> None:
    """Ask for the features of the node so many after ``places[r]``.

    And for what says where those of the node twice as far ahead begin.
    """
    last = len(places) - 1
    place = places[min(r + 2 * ahead, last)]
    if table.width < 0:
        _ask_for(table.pages[place // ROOM, FEATURES] + 8 * (place % ROOM))
    prefetch_features(table, places[min(r + ahead, last)])


@compiled(inline=True)
def prefetch_neighbours(table: Table, places: Ints, r: int) -> None:
    """Ask for the ids of the neighbours of nodes that come after the one at ``places[r]``."""
    last = len(places) - 1
    place = places[min(r + 2 * _AHEAD, last)]
    _ask_for(table.pages[place // ROOM, EDGES] + 8 * (place % ROOM))
    place = places[min(r + _AHEAD, last)]
    first = first_edge(table, place)
    for line in range(first, first + 8 * min(degree_at(table, place), _MAX_NEIGHBOURS), 64):
        _ask_for(line)


@compiled(inline=True)
def prefetch_around(table: Table, places: Ints, r: int) -> None:
    """Ask for the labels and roles around such nodes, where ids are consecutive."""
    prefetch_neighbours(table, places, r + _AHEAD)
    place = places[min(r + _AHEAD, len(places) - 1)]
    first = first_edge(table, place)
    for e in range(min(degree_at(table, place), _MAX_NEIGHBOURS)):
        _prefetch_node(table, neighbour(first, e), 4, 8)
        _prefetch_node(table, neighbour(first, e), 1, 12)


@compiled(inline=True)
def _prefetch_node(table: Table, node: int, size: int, skipped: int) -> None:
    """Ask for what a page says of a node in so many bytes each, after others; see `COUNT`."""
    page = _page_of(table, max(node, 0))
    row, count = node - table.pages[page, START], table.pages[page, COUNT]
    _ask_for(table.pages[page, NODES] + skipped * count + size * row)


@compiled(inline=True)
def copy_columns(table: Table, place: int, columns: Ints32) -> int:
    """Write the columns of a node's features that are not 0; returns how many there are."""
    block, row = table.pages[place // ROOM, FEATURES], place % ROOM
    count = 0
    if table.width >= 0:
        block += 4 * table.width * row
        for column in range(table.width):
            if _float32(block + 4 * column) != 0.0:
                columns[count] = column
                count += 1
        return count
    start, end = _int64(block + 8 * row), _int64(block + 8 * row + 8)
    block += 8 * (table.pages[place // ROOM, COUNT] + 1)
    for e in range(start, end):
        columns[count] = _int32(block + 4 * e)
        count += 1
    return count


@compiled
def located(table: Table, nodes: Ints) -> Ints:
    """The place of each id, or `NOWHERE`."""
    out, last = np.empty(len(nodes), dtype=np.int64), len(nodes) - 1
    for i in range(len(nodes)):
        _prefetch_node(table, nodes[min(i + _FAR, last)], 8, 0)
        out[i] = locate(table, nodes[i])
    return out


@compiled
def nodes_at(table: Table, places: Ints) -> Ints:
    """The ids at these places."""
    out = np.empty(len(places), dtype=np.int64)
    for i in range(len(places)):
        out[i] = node_at(table, places[i])
    return out


@compiled
def degrees_at(table: Table, places: Ints) -> Ints:
    """The numbers of neighbours of the nodes at these places."""
    out = np.empty(len(places), dtype=np.int64)
    for i in range(len(places)):
        out[i] = degree_at(table, places[i])
    return out


@compiled
def labels_at(table: Table, places: Ints) -> Ints:
    """The classes at these places."""
    out = np.empty(len(places), dtype=np.int64)
    for i in range(len(places)):
        out[i] = label_at(table, places[i])
    return out


@compiled
def roles_at(table: Table, places: Ints) -> NDArray[np.int8]:
    """The roles at these places."""
    out = np.empty(len(places), dtype=np.int8)
    for i in range(len(places)):
        out[i] = role_at(table, places[i])
    return out


@compiled
def target_rows(table: Table, places: Ints, row_bytes: int) -> NDArray[np.uint8]:
    """The targets at these places, as bytes ``[len(places), row_bytes]``."""
    out = np.empty((len(places), row_bytes), dtype=np.uint8)
    for i in range(len(places)):
        page, row = places[i] // ROOM, places[i] % ROOM
        start = table.pages[page, TARGETS] + row * row_bytes
        for at in range(row_bytes):
            out[i, at] = np.uint8(_int8(start + at))
    return out


@compiled(inline=True)
def targets_differ(before: Table, was: int, after: Table, now: int, row_bytes: int) -> bool:
    """Return whether the nodes at two places have other targets."""
    first = before.pages[was // ROOM, TARGETS] + was % ROOM * row_bytes
    second = after.pages[now // ROOM, TARGETS] + now % ROOM * row_bytes
    differ = False
    for at in range(row_bytes):
        differ |= _int8(first + at) != _int8(second + at)
    return differ


@compiled
def neighbour_rows(table: Table, places: Ints) -> tuple[Ints, Ints]:
    """Pointers and ids of the neighbours of the nodes at these places."""
    indptr = np.zeros(len(places) + 1, dtype=np.int64)
    for i in range(len(places)):
        indptr[i + 1] = indptr[i] + degree_at(table, places[i])
    ids = np.empty(indptr[-1], dtype=np.int64)
    for i in range(len(places)):
        first, start = first_edge(table, places[i]), indptr[i]
        for e in range(indptr[i + 1] - start):
            ids[start + e] = neighbour(first, e)
    return indptr, ids


@compiled
def feature_rows(table: Table, places: Ints) -> tuple[Ints, Ints32, Floats32]:
    """Features of the nodes at these places as a CSR: pointers, columns, values."""
    indptr = np.zeros(len(places) + 1, dtype=np.int64)
    most = 0
    for i in range(len(places)):
        most += size_at(table, places[i])
    columns, values = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.float32)
    for i in range(len(places)):
        indptr[i + 1] = copy_features(table, places[i], columns, values, indptr[i])
    return indptr, columns[: indptr[-1]].copy(), values[: indptr[-1]].copy()


@compiled
def edge_value_rows(table: Table, places: Ints) -> Floats32:
    """Return what the entries of `neighbour_rows` carry ``[entries, edge_width]``."""
    count = 0
    for place in places:
        count += degree_at(table, place)
    out, at = np.empty((count, table.edge_width), dtype=np.float32), 0
    for place in places:
        for e in range(degree_at(table, place)):
            for column in range(table.edge_width):
                out[at, column] = edge_value(table, place, e, column)
            at += 1
    return out


@compiled
def entry_values(table: Table, places: Ints, others: Ints) -> Floats32:
    """Return what the entries of these neighbours carry; zeros for an id that is none."""
    out = np.zeros((len(places), table.edge_width), dtype=np.float32)
    for i in range(len(places)):
        entry = entry_of(table, places[i], others[i])
        if entry != NOWHERE:
            for column in range(table.edge_width):
                out[i, column] = edge_value(table, places[i], entry, column)
    return out
