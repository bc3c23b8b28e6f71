"""The names of nodes, where they have any, as they lie in a page beside the nodes.

A block of names is pointers int64[m + 1] and then the names, one after the other, in UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import GraphError
from grapheraser.graph.ids import NamedId, listed, name_id

Block = NDArray[np.uint8]
Names = NDArray[Any]  # of str, dtype object

NO_NAMES: Names = np.zeros(0, dtype=object)
_NOTHING: Block = np.zeros(0, dtype=np.uint8)
NO_NAMES.flags.writeable = _NOTHING.flags.writeable = False


def names_of(names: Iterable[str]) -> Names:
    """An array of names."""
    items = list(names)
    made = np.empty(len(items), dtype=object)
    made[:] = items
    return made


def ids_and_names(nodes: ArrayLike | Iterable[Any]) -> tuple[NDArray[np.int64], Names | None]:
    """The ids of different nodes, and their names where they were given by these."""
    given = listed(nodes, "node ids")
    if isinstance(given, np.ndarray):
        raise GraphError("node ids must be integers or names (found a mask).")
    named = [node.name for node in given if isinstance(node, NamedId)]
    if not named:
        return np.array(given, dtype=np.int64), None
    if len(named) < len(given):
        raise GraphError(
            f"node ids must be integers, or names, and not both (found {named[0]!r} and "
            f"{next(node for node in given if not isinstance(node, NamedId))})."
        )
    names = names_of(named)
    return ids_of_names(names), names


def ids_of_names(names: Names) -> NDArray[np.int64]:
    """The ids of names that are to be those of different nodes."""
    ids = np.array([name_id(name) for name in names], dtype=np.int64)
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(np.diff(ids[order]) == 0)
    if len(same):
        one, other = names[order[same[0]]], names[order[same[0] + 1]]
        if one == other:
            raise GraphError(f"names must be unique (found {one!r} twice).")
        raise GraphError(
            f"the names {one!r} and {other!r} have the same id, {ids[order[same[0]]]}.",
            hint="change one of them: the id of a name is 63 bits of its SHA-256.",
        )
    return ids


def check_new_names(ids: NDArray[np.int64], names: Names, named: bool) -> None:
    """Refuse new nodes without names where others have them, and the other way round."""
    if named and len(names) < len(ids):
        raise GraphError(
            f"the nodes of this graph have names: a new one needs one (found {ids[0]})."
        )
    if not named and len(names):
        raise GraphError(
            f"the nodes of this graph have no names: a new one needs an id (found {names[0]!r})."
        )


def packed_names(names: Names) -> Block:
    """The block of these names; empty where there are none."""
    if not len(names):
        return _NOTHING
    parts = [name.encode() for name in names]
    pointers = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    block = np.frombuffer(pointers.tobytes() + b"".join(parts), dtype=np.uint8)
    block.flags.writeable = False
    return block


def unpacked_names(block: Block, count: int) -> Names:
    """The names in a block of so many."""
    return names_at(block, count, range(count)) if block.nbytes else NO_NAMES


def names_at(block: Block, count: int, rows: Iterable[int]) -> Names:
    """The names of some rows of a block."""
    pointers = block[: 8 * (count + 1)].view(np.int64)
    text = block[8 * (count + 1) :].tobytes()
    return names_of(text[pointers[row] : pointers[row + 1]].decode() for row in rows)


def kept_names(block: Block, keep: NDArray[np.bool_]) -> Block:
    """The block without the rows that go."""
    if not block.nbytes:
        return block
    return packed_names(names_at(block, len(keep), np.flatnonzero(keep).tolist()))
