"""Ids, names and masks: all that names nodes, in any container that people have them in.

A name is a string. Its id is 63 bits of its SHA-256, so that whatever follows from an id (`hash`
partitions, samples, dropout) does not depend on the order in which names arrived. In a page, the
names of its nodes lie beside them: pointers int64[m + 1], and then the names, one after the other,
in UTF-8.

A keyed id stands for a number, and follows from it and a secret that lies with the keys: the ids of
a graph then don't tell which numbers are missing. Keyed ids begin at 2^62, the numbers end there.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph.arrays import as_array

Ids = NDArray[np.int64]
Block = NDArray[np.uint8]
Names = NDArray[Any]  # of str, dtype object

KEYED = 2**62
NO_NAMES: Names = np.zeros(0, dtype=object)
_NOTHING: Block = np.zeros(0, dtype=np.uint8)
NO_NAMES.flags.writeable = _NOTHING.flags.writeable = False


class NamedId(int):
    """The id of a name, together with the name, by which it is printed."""

    name: str

    @classmethod
    def called(cls, node: int, name: str) -> Self:
        """Return an id that is printed by this name."""
        made = cls(node)
        made.name = name
        return made

    def __str__(self) -> str:
        return repr(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return name_id, (self.name,)


class KeyedId(NamedId):
    """A keyed id, together with the number, by which it is printed."""

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


def keyed_ids(numbers: Iterable[int], secret: bytes) -> list[int]:
    """Return an id for each number: 2^62 and 62 bits of its HMAC; keyed ids as they are."""
    found: list[int] = []
    for number in numbers:
        if not 0 <= number < KEYED:
            found.append(number)
            continue
        digest = hmac.digest(secret, str(int(number)).encode(), "sha256")
        node = KEYED + (int.from_bytes(digest[:8], "big") >> 2)
        found.append(KeyedId.called(node, str(int(number))))
    return found


def new_keyed_ids(numbers: Ids, secret: bytes) -> Ids:
    """Return the keyed ids of an array of numbers; refuse what is none below 2^62."""
    once, at = np.unique(numbers, return_inverse=True)
    if len(once) and not 0 <= once[0] <= once[-1] < KEYED:
        raise GraphError(
            f"only numbers from 0 to 2^62 - 1 get keyed ids (found {once[0]} to {once[-1]})."
        )
    return np.array(keyed_ids(once.tolist(), secret), dtype=np.int64)[at].reshape(numbers.shape)


def name_id(name: str) -> NamedId:
    """Return the id of a name: the first 63 bits of the SHA-256 of its UTF-8 form."""
    try:
        content = name.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(
            f"a name must be valid Unicode ({error.reason}). Got {name!r}."
        ) from None
    if not content or b"\0" in content:
        raise ParameterError(f"a name must not be empty, nor hold a null character. Got {name!r}.")
    node = int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 1
    return NamedId.called(node, str(name))


def one_id(node: Any, name: str, owner: str) -> int:
    """Return the id of a single node, given by id or name as this argument of that owner."""
    plain = node.item() if getattr(node, "shape", None) == () else node
    if isinstance(plain, str):
        return name_id(plain)
    if not _is_id(plain):
        raise ParameterError.of(name, owner, "one node id or name; ids are 64-bit integers", node)
    return plain if isinstance(plain, NamedId) else int(plain)


def shown(node: Any) -> str:
    """Spell a node for a message: names in quotes, ids as they are."""
    return repr(str(node)) if isinstance(node, str) else str(node)


def as_given(nodes: Any, ids: Iterable[int]) -> list[int]:
    """Return ids of some of these nodes, with the name where one was given; for messages."""
    known: dict[int, int] = {}
    if isinstance(nodes, str | list | tuple | np.ndarray):
        found = listed(nodes, "node ids")
        known = {} if isinstance(found, np.ndarray) else with_names(found)
    return [known.get(node, node) for node in ids]


def with_names(nodes: Iterable[int]) -> dict[int, int]:
    """Return the ids of names among these by their number: who looks an id up finds its name."""
    return {int(node): node for node in nodes if isinstance(node, NamedId)}


def as_called(ids: Ids, called: Mapping[int, int]) -> list[Any]:
    """Return ids, or pairs of them, each with the name that it was given by; see `with_names`."""
    if ids.ndim > 1:
        return [tuple(as_called(pair, called)) for pair in ids]
    return [called.get(node, node) for node in ids.tolist()]


def as_ids(nodes: ArrayLike) -> Ids:
    """Return node ids as a flat int64 array of its own, from ids or names.

    Raises `ParameterError` for anything else, masks included: they need the nodes that they are
    about; see `ids_among`.
    """
    found = named(nodes)
    if found.dtype.kind == "b":
        raise ParameterError(
            f"a boolean mask says nothing without its graph. Got a mask of {len(found)} nodes.",
            hint="give the ids: graph.ids[mask].",
        )
    return found


def ids_among(nodes: ArrayLike, every: Callable[[], Ids], what: str = "the graph") -> Ids:
    """Return ids as `as_ids` does, also from a mask over ``every`` node that ``what`` has."""
    found = named(nodes)
    if found.dtype.kind != "b":
        return found
    ids = every()
    if len(found) != len(ids):
        raise ParameterError(
            f"a mask over {what} must have {len(ids)} entries, one per node. Got {len(found)}."
        )
    return np.array(ids[found])


def is_plain(nodes: Any) -> TypeGuard[Ids]:
    """Tell whether compiled code can read these ids as they are; most callers have such."""
    return (
        type(nodes) is np.ndarray
        and nodes.dtype == np.int64
        and nodes.ndim == 1
        and nodes.flags.carray
    )


def named(nodes: ArrayLike) -> NDArray[Any]:
    """Return ids as int64 in an array of its own, or a mask as it is: flat either way."""
    found = _checked(nodes, "node ids")
    return np.array(_with_names(found), dtype=np.int64) if found.dtype.kind in "UO" else found


def listed(nodes: ArrayLike | Iterable[Any], what: str) -> list[int] | NDArray[np.bool_]:
    """Return ids as a list, those of names with their name; or a mask as it is.

    ``what`` they are is for the message.
    """
    found = _checked(nodes, what)
    if found.dtype.kind == "b":
        return found
    return _with_names(found) if found.dtype.kind in "UO" else found.tolist()


def _with_names(found: NDArray[Any]) -> list[int]:
    return [
        name_id(item) if isinstance(item, str) else item if isinstance(item, NamedId) else int(item)
        for item in found.tolist()
    ]


def _checked(nodes: Any, what: str) -> NDArray[Any]:
    """Return a flat array: a mask, integers as int64, or objects that are names or integers."""
    if type(nodes) is np.ndarray and nodes.dtype == np.int64 and nodes.ndim == 1:
        return nodes.copy()  # as most are
    array = as_array(_plain(nodes), what, ParameterError)
    if array.ndim > 1:
        raise ParameterError(
            f"{what} must be a flat list. Got an array of shape {list(array.shape)}.",
            hint="array.ravel() makes one of it.",
        )
    array = array.reshape(-1)
    if array.dtype.kind == "b":
        index = _own_index(nodes)
        return array if index is None else _checked(index[array], what)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind == "i" or (array.dtype.kind == "u" and array.max() < 2**63):
        return array.astype(np.int64)
    wrong = [item for item in array.tolist() if not (isinstance(item, str) or _is_id(item))]
    if wrong:
        raise ParameterError(
            f"{what} must be 64-bit integers, or names. Got {wrong[0]!r} (dtype {array.dtype}).",
            hint="a column with gaps is read as floats: fill them, then array.astype(int)."
            if array.dtype.kind == "f"
            else None,
        )
    return array


def _is_id(item: Any) -> bool:
    whole = isinstance(item, int | np.integer) and not isinstance(item, bool)
    return whole and -(2**63) <= int(item) < 2**63


def _plain(nodes: Any) -> Any:
    """Turn one name, or an iterable, into what NumPy reads as it is meant."""
    if isinstance(nodes, str):
        return [nodes]
    if hasattr(nodes, "__array__") or not isinstance(nodes, Iterable):
        return nodes
    if isinstance(nodes, range):
        return np.arange(nodes.start, nodes.stop, nodes.step)
    items = nodes if isinstance(nodes, Sequence) else list(nodes)
    kinds = set(map(type, items))
    names = any(issubclass(kind, str | NamedId) for kind in kinds)
    if not names and not (len(kinds) > 1 and kinds & {bool, np.bool_}):
        return items
    boxed = np.empty(len(items), dtype=object)  # lest NumPy make strings or numbers of all
    boxed[:] = items
    return boxed


def _own_index(nodes: Any) -> NDArray[Any] | None:
    """Return the index of a pandas mask where it names nodes, and does not only count rows."""
    index = getattr(nodes, "index", None)
    if index is None or callable(index):
        return None
    found = np.asarray(index)
    counts = found.dtype.kind in "iu" and np.array_equal(found, np.arange(len(found)))
    return None if counts else found


# -- names in arrays and in pages -----------------------------------------------------------------


def names_of(names: Iterable[str]) -> Names:
    """Return an array of names."""
    items = list(names)
    made = np.empty(len(items), dtype=object)
    made[:] = items
    return made


def ids_and_names(nodes: ArrayLike | Iterable[Any]) -> tuple[NDArray[np.int64], Names | None]:
    """Return the ids of different nodes, and their names where they were given by these."""
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
    """Return the ids of names; refuse two names with one id."""
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
    """Pack names into a block; empty where there are none."""
    if not len(names):
        return _NOTHING
    parts = [name.encode() for name in names]
    pointers = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    block = np.frombuffer(pointers.tobytes() + b"".join(parts), dtype=np.uint8)
    block.flags.writeable = False
    return block


def unpacked_names(block: Block, count: int) -> Names:
    """Unpack the names of a block of so many."""
    return names_at(block, count, range(count)) if block.nbytes else NO_NAMES


def names_at(block: Block, count: int, rows: Iterable[int]) -> Names:
    """Unpack the names of some rows of a block."""
    pointers = block[: 8 * (count + 1)].view(np.int64)
    text = block[8 * (count + 1) :].tobytes()
    return names_of(text[pointers[row] : pointers[row + 1]].decode() for row in rows)


def kept_names(block: Block, keep: NDArray[np.bool_]) -> Block:
    """Return a block of names without the rows that go."""
    if not block.nbytes:
        return block
    return packed_names(names_at(block, len(keep), np.flatnonzero(keep).tolist()))
