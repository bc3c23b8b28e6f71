"""Checks of a graph that was read, before compiled code may index by it."""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import CorruptRunError, InputError
from grapheraser.graph.edge_values import Values
from grapheraser.graph.ids import name_id
from grapheraser.graph.labels import BITS, LabelKind
from grapheraser.graph.pages.directory import Directory
from grapheraser.graph.pages.packing import unpacked_values
from grapheraser.graph.pages.pages import Pages
from grapheraser.graph.roles import (
    CONTEXT,
    SHARDED_ROLES,
    TRAIN,
    UNLABELLED,
)
from grapheraser.graph.types import Types
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.paged import INCOMING, OUTGOING

_PROBLEMS = {
    1: "pointers out of range",
    2: "neighbours or columns that are not ascending, or out of range",
    3: "features that are not finite, or zeros among those that are not 0",
    4: "edges with weights or features that are not finite, or directions that there are not",
}


def check_structure(pages: Pages, kind: LabelKind, types: Types | None = None) -> None:
    """Raise an error unless these pages are those of a graph with such labels and types."""
    check_nodes(pages, kind.count if kind.is_classes else 1, "graph")
    _check_targets(pages, kind)
    check_names(pages, types)
    if types is not None:
        _check_types(pages, types, kind)
    edges = pages.edge_kind
    key, balance = np.uint64(secrets.randbits(64)), np.uint64(0)
    for number, page in enumerate(pages.pages):
        count = int(pages.directory.counts[number])
        ids, words = page.nodes[: 8 * count].view(np.int64), page.edges.view(np.int64)
        values, directed = unpacked_values(page.values, edges.width), edges.directed
        problem, part = _check_edges(ids, words, values.copy(), directed, key)
        problem = problem or _check_features(page.features, count, pages.num_features, pages.dense)
        if problem:
            raise CorruptRunError(f"page {number} of the graph has {_PROBLEMS[problem]}.")
        with np.errstate(over="ignore"):
            balance += np.uint64(part)
    if balance != 0:
        raise CorruptRunError(
            "an edge of the graph is in the row of one of its nodes only, or carries other values "
            "there."
        )


def _check_targets(pages: Pages, kind: LabelKind) -> None:
    """Raise an error unless every node has targets of this kind, in their one spelling."""
    counts = pages.directory.counts.tolist()
    sizes = [page.targets.nbytes for page in pages.pages]
    if sizes != [kind.row_bytes * count for count in counts]:
        raise CorruptRunError("the graph has labels of another kind than it says.")
    if kind.is_classes or not sizes:
        return
    labels, raw = pages.nodes()[1], pages.targets()
    y = kind.decoded(labels, raw)
    fits = kind.is_numbers or bool(np.isin(y, (UNLABELLED, 0, 1)).all())
    again = kind.encoded(y)
    fits &= np.array_equal(again[0], labels) and np.array_equal(again[1], raw)
    fits &= not np.isinf(y).any()
    if not fits or (np.abs(np.nan_to_num(kind.fixed(y))) > 2**BITS).any():
        raise CorruptRunError("the graph has labels out of range.")


def check_nodes(pages: Pages, num_labels: int, what: str) -> None:
    """Raise an error unless ids, labels and roles are those of a graph, or of a partition."""
    ids, y, role = pages.nodes()
    if (ids < 0).any() or (np.diff(ids) <= 0).any():
        raise CorruptRunError(f"the ids of the {what}'s nodes are not ascending.")
    graph = what == "graph"
    if (y < (UNLABELLED if graph else 0)).any() or (y >= num_labels).any():
        raise CorruptRunError(f"the {what} has labels out of range.")
    known = np.isin(role, SHARDED_ROLES["all"] if graph else (CONTEXT,))
    if not known.all() or (y[role == TRAIN] == UNLABELLED).any():
        raise CorruptRunError(
            f"the {what} has roles out of range, or training nodes without a label."
        )
    expected = Directory.of(ids)
    for name in ("starts", "sizes", "counts"):
        if not np.array_equal(getattr(pages.directory, name), getattr(expected, name)):
            raise CorruptRunError(f"the pages of the {what} have other {name} than their ids ask.")


def _check_types(pages: Pages, types: Types, kind: LabelKind) -> None:
    """Raise an error unless nodes, features and edges are such as these types have.

    Labels and roles are the target type's alone, but where the edges are what is learned: all nodes
    have one label then.
    """
    ids, y, role = pages.nodes()
    kinds, widths = types.of(ids), (types.starts[-1], types.width)
    sound = (pages.num_features, pages.edge_kind.width) == widths and not pages.edge_kind.weighted
    sound &= bool((kinds < len(types.names)).all()) and not pages.edge_kind.directed
    others = (y[kinds > 0] == UNLABELLED) & (role[kinds > 0] == CONTEXT)
    uniform = kind.is_classes and kind.count == 1 and bool((role == TRAIN).all())
    if not sound or not (others.all() or uniform):
        raise CorruptRunError("the nodes of the graph are not such as its types have.")
    allowed = types.masks
    for number, page in enumerate(pages.pages):
        count = int(pages.directory.counts[number])
        words = page.edges.view(np.int64)
        rows = np.repeat(page.nodes[: 8 * count].view(np.int64), np.diff(words[: count + 1]))
        ends = types.of(np.stack([rows, words[count + 1 :]]))
        held = unpacked_values(page.values, types.width)[:, : types.columns].astype(np.float64)
        fits = (ends >= 0).all() and (ends < len(types.names)).all()
        fits = fits and (held == np.rint(held)).all() and (held >= 0).all()
        fits = fits and held.any(axis=1).all() and (held < 2**24).all()
        if not fits or (held.astype(np.int64) & ~allowed[ends[0], ends[1]]).any():
            raise CorruptRunError(f"page {number} of the graph has relations that there are not.")


def check_names(pages: Pages, types: Types | None = None) -> None:
    """Raise an error unless every node has the name that its id follows from, or none has one."""
    named = [page.names.nbytes > 0 for page in pages.pages]
    if not any(named):
        return
    try:
        names = pages.names()
        if types is not None:
            ids = types.ids_of_names(names)
        else:
            ids = np.array([name_id(name) for name in names], dtype=np.int64)
    except (ValueError, InputError) as error:
        raise CorruptRunError(
            f"the names of the graph's nodes are not readable ({error})."
        ) from None
    if not all(named) or not np.array_equal(ids, pages.nodes()[0]):
        raise CorruptRunError(
            "the names of the graph's nodes are not those that their ids follow from."
        )


@compiled
def _check_edges(
    ids: NDArray[np.int64], words: NDArray[np.int64], values: Values, directed: bool, key: np.uint64
) -> tuple[int, np.uint64]:
    """Return the number of the problem that edges of a page have, 0 for none; and their balance.

    An edge adds a keyed hash to the balance in the row of its smaller node and takes it off in
    that of the larger: over all pages it is 0 where every edge is in both rows, with the same
    values or the opposite direction, and hardly ever elsewhere.
    """
    balance = np.uint64(0)
    count = len(ids)
    if words[0] != 0 or words[count] != len(words) - count - 1:
        return 1, balance
    for row in range(count):
        start, end = words[row], words[row + 1]
        if start > end or end > words[count]:
            return 1, balance
        node, before = ids[row], np.int64(-1)
        own = paired(key, np.uint64(node))
        for e in range(start, end):
            other = words[count + 1 + e]
            if other <= before or other == node:
                return 2, balance
            before = other
            if node < other:
                part = paired(own, np.uint64(other))
            else:
                part = paired(paired(key, np.uint64(other)), np.uint64(node))
            if values.shape[1]:
                if not _is_sound(values[e], directed):
                    return 4, balance
                part = _with_values(part, values[e], directed, node < other)
            balance += part if node < other else np.uint64(0) - part
    return 0, balance


@compiled
def _is_sound(values: Values, directed: bool) -> bool:
    """Tell whether an entry can carry these values."""
    for value in values:
        if not np.isfinite(value):
            return False
    if not directed:
        return True
    if values[0] not in (INCOMING, OUTGOING, INCOMING + OUTGOING):
        return False
    return values[0] != OUTGOING or not values[1:].any()


@compiled
def _with_values(part: np.uint64, values: Values, directed: bool, smaller: bool) -> np.uint64:
    """Hash an edge together with what has to be the same in both rows."""
    if not directed:
        for bits in values.view(np.uint32):
            part = paired(part, np.uint64(bits))
        return part
    swapped = values[0] if smaller or values[0] == INCOMING + OUTGOING else 3 - values[0]
    return paired(part, np.uint64(swapped))


def _check_features(block: NDArray[np.uint8], count: int, columns: int, dense: bool) -> int:
    if dense:
        return 0 if np.isfinite(block.view(np.float32)).all() else 3
    pointers = block[: 8 * (count + 1)].view(np.int64)
    middle = 8 * (count + 1) + (len(block) - 8 * (count + 1)) // 2
    used, values = block[8 * (count + 1) : middle].view(np.int32), block[middle:].view(np.float32)
    problem = _check_columns(pointers, used, columns)
    return problem or (0 if np.isfinite(values).all() and values.all() else 3)


def _check_columns(pointers: NDArray[np.int64], used: NDArray[np.int32], columns: int) -> int:
    # Compared, not subtracted: differences of numbers that a stranger wrote may overflow.
    if pointers[0] != 0 or pointers[-1] != len(used) or (pointers[1:] < pointers[:-1]).any():
        return 1
    row = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))
    falls = (used[1:] <= used[:-1]) & (row[1:] == row[:-1])
    return 2 if falls.any() or (used < 0).any() or (used >= columns).any() else 0
