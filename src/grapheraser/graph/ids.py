"""What names nodes: ids, names and masks, in any container that people have them in.

A name is a string. Its id is 63 bits of its SHA-256, so that whatever follows from an id (`hash`
partitions, samples, dropout) does not depend on the order in which names arrived.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import ParameterError
from grapheraser.graph.arrays import as_array

Ids = NDArray[np.int64]


class NamedId(int):
    """The id of a name, together with the name, by which it is printed."""

    name: str

    def __str__(self) -> str:
        return repr(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return name_id, (self.name,)


def name_id(name: str) -> NamedId:
    """The id of a name: the first 63 bits of the SHA-256 of its UTF-8 form."""
    try:
        content = name.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(
            f"a name must be valid Unicode ({error.reason}). Got {name!r}."
        ) from None
    if not content or b"\0" in content:
        raise ParameterError(f"a name must not be empty, nor hold a null character. Got {name!r}.")
    made = NamedId(int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 1)
    made.name = str(name)
    return made


def one_id(node: Any, name: str, owner: str) -> int:
    """The id of a single node, given by id or name.

    Args:
        node: its id or name.
        name: of the argument, for the message.
        owner: likewise.
    """
    plain = node.item() if getattr(node, "shape", None) == () else node
    if isinstance(plain, str):
        return name_id(plain)
    if not _is_id(plain):
        raise ParameterError.of(name, owner, "one node id or name; ids are 64-bit integers", node)
    return plain if isinstance(plain, NamedId) else int(plain)


def shown(node: Any) -> str:
    """A node in a message: names in quotes, ids as they are."""
    return repr(str(node)) if isinstance(node, str) else str(node)


def as_given(nodes: Any, ids: Iterable[int]) -> list[int]:
    """Some of these nodes by id, those that were given by name with it; for messages."""
    known: dict[int, int] = {}
    if isinstance(nodes, str | list | tuple | np.ndarray):
        found = listed(nodes, "node ids")
        known = {} if isinstance(found, np.ndarray) else with_names(found)
    return [known.get(node, node) for node in ids]


def with_names(nodes: Iterable[int]) -> dict[int, int]:
    """The ids of names among these, each by itself: what looks an id up finds its name."""
    return {int(node): node for node in nodes if isinstance(node, NamedId)}


def as_called(ids: Ids, called: Mapping[int, int]) -> list[Any]:
    """Ids, or pairs of them, each with the name that it was given by; see `with_names`."""
    if ids.ndim > 1:
        return [tuple(as_called(pair, called)) for pair in ids]
    return [called.get(node, node) for node in ids.tolist()]


def as_ids(nodes: ArrayLike) -> Ids:
    """Node ids as a flat int64 array of its own, from ids or names.

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
    """The same, where a mask says of every node of a graph whether it is meant.

    Args:
        nodes: ids, names or a mask.
        every: the ids that a mask is about, in its order.
        what: has these nodes, for the message.
    """
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
    """Whether compiled code can read these ids as they are: most are, deep inside."""
    return (
        type(nodes) is np.ndarray
        and nodes.dtype == np.int64
        and nodes.ndim == 1
        and nodes.flags.carray
    )


def named(nodes: ArrayLike) -> NDArray[Any]:
    """Ids as int64 in an array of its own, or a mask as it is: flat either way."""
    found = _checked(nodes, "node ids")
    return np.array(_with_names(found), dtype=np.int64) if found.dtype.kind in "UO" else found


def listed(nodes: ArrayLike | Iterable[Any], what: str) -> list[int] | NDArray[np.bool_]:
    """Ids as a list, those of names with their name; or a mask as it is.

    Args:
        nodes: ids, names or a mask.
        what: for the message.
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
    """A flat array: a mask, integers as int64, or objects that are names or integers."""
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
    """What NumPy reads as it is meant: one name as a list, an iterable as a list."""
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
    """The index of a pandas mask where it names nodes, and does not only count rows."""
    index = getattr(nodes, "index", None)
    if index is None or callable(index):
        return None
    found = np.asarray(index)
    counts = found.dtype.kind in "iu" and np.array_equal(found, np.arange(len(found)))
    return None if counts else found
