"""One thing in a run's folder that is not what it was: edits of a `Folder`, by what they do."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.store.pages import SHARDS
from tests.store.crafted import Folder

HUGE = 2**62
Edit = Callable[[Folder], object]


def _poke(kind: str, at: Callable[[int], int], value: int | float, code: str) -> Edit:
    """Write a number into the file of the first page; ``at`` gives the place by its node count."""

    def edit(folder: Folder) -> None:
        def change(content: bytearray) -> None:
            count = int(np.frombuffer(content[8:16], dtype="<i8")[0])
            raw = np.array([value]).astype(code).tobytes()
            content[at(count) : at(count) + len(raw)] = raw

        folder.change_page(kind, 0, change)

    return edit


def _always(place: int) -> Callable[[int], int]:
    return lambda _: place


def _resized(kind: str, change: Callable[[bytearray], bytes]) -> Edit:
    return lambda folder: folder.change_page(kind, 0, change)


def _with_end(end: bytes) -> Callable[[bytearray], bytes]:
    return lambda content: bytes(content[: -len(end)]) + end


def _edges_at(count: int) -> int:
    return 32 + 13 * count + -13 * count % 8


def page_edits() -> Iterator[tuple[str, Edit]]:
    """Every number of a page and of an index, out of range."""
    for value in (-1, 0, 3, HUGE, -HUGE):
        for field in (0, 8, 16, 24):
            yield (
                f"topology header {field}: {value}",
                _poke("topology", _always(field), value, "<i8"),
            )
            yield (
                f"features header {field}: {value}",
                _poke("features", _always(field), value, "<i8"),
            )
            yield (
                f"partition header {field}: {value}",
                _poke("shards", _always(field), value, "<i8"),
            )
        yield f"id: {value}", _poke("topology", lambda n: 40, value, "<i8")
        yield f"id in partition: {value}", _poke("shards", lambda n: 40, value, "<i8")
        yield f"pointer: {value}", _poke("topology", lambda n: _edges_at(n) + 8, value, "<i8")
        yield (
            f"last pointer: {value}",
            _poke("topology", lambda n: _edges_at(n) + 8 * n, value, "<i8"),
        )
        yield (
            f"neighbour: {value}",
            _poke("topology", lambda n: _edges_at(n) + 8 * (n + 1), value, "<i8"),
        )
        yield f"feature pointer: {value}", _poke("features", lambda n: 40, value, "<i8")
        yield (
            f"last feature pointer: {value}",
            _poke("features", lambda n: 32 + 8 * n, value, "<i8"),
        )
    for value in (-2, -1, 1000, 2**31 - 1):
        yield f"label: {value}", _poke("topology", lambda n: 32 + 8 * n, value, "<i4")
        yield f"shard: {value}", _poke("shards", lambda n: 32 + 8 * n, value, "<i4")
        yield f"column: {value}", _poke("features", lambda n: 32 + 8 * (n + 1), value, "<i4")
    for value in (-1, 9, 127):
        yield f"role: {value}", _poke("topology", lambda n: 32 + 12 * n, value, "<i1")
        yield f"role in partition: {value}", _poke("shards", lambda n: 32 + 12 * n, value, "<i1")
    for number in (np.nan, np.inf, 1e38, 0.0):
        yield f"feature: {number}", _resized("features", _with_end(np.float32(number).tobytes()))
    for kind in ("topology", "features", "shards", "entries"):
        yield f"{kind} cut short", _resized(kind, lambda content: bytes(content[:-8]))
        yield f"{kind} with more", _resized(kind, lambda content: bytes(content) + bytes(8))
        yield f"{kind} empty", _resized(kind, lambda content: b"x")
        yield f"{kind} missing", _unnamed(kind)
    for name in ("start", "size", "count", "topology_bytes", "features_bytes"):
        for value in (-1, 0, 1, HUGE):
            yield f"index {name}: {value}", _indexed("graph", name, value)
            if name in (SHARDS.names or ()):
                yield f"index of partition {name}: {value}", _indexed("partition", name, value)
    yield "index empty", lambda folder: setattr(folder, "graph", folder.graph[:0])
    yield (
        "index of partition empty",
        lambda folder: setattr(folder, "partition", folder.partition[:0]),
    )
    yield "index twice", lambda folder: setattr(folder, "graph", np.concatenate([folder.graph] * 2))
    yield "root", lambda folder: folder.graph["root"].__setitem__(0, np.void(bytes(32)))


def register_edits() -> Iterator[tuple[str, Edit]]:
    """Every number of a page of the register and of its index, out of range."""
    for value in (-1, 0, 3, HUGE, -HUGE):
        for field in (0, 8, 16, 24, 32, 40, 56):  # the header, a slot, its nonce and its node
            yield f"register {field}: {value}", _poke("entries", _always(field), value, "<i8")
        yield f"index of register count: {value}", _indexed("register", "count", value)
    yield "index of register empty", lambda folder: setattr(folder, "register", folder.register[:0])
    yield (
        "index of register twice",
        lambda folder: setattr(folder, "register", np.concatenate([folder.register] * 2)),
    )
    yield "top", lambda folder: folder.register["top"].__setitem__(0, np.void(bytes(32)))


def _unnamed(kind: str) -> Edit:
    def edit(folder: Folder) -> None:
        index = folder.index_of(kind)
        index[kind][0] = np.void(bytes(32))

    return edit


def _indexed(which: str, name: str, value: int) -> Edit:
    def edit(folder: Folder) -> None:
        getattr(folder, which)[name][0] = value

    return edit


def tensor_edits(sample: Folder) -> Iterator[tuple[str, Edit]]:
    """Every tensor, in other shapes, types and ranges."""
    first = next(iter(sample.shards), None)
    of_shard = () if first is None else sample.shards[first]
    for name in of_shard:
        for label, change in _array_changes():
            yield f"shard tensor {name}: {label}", _of_shard(first, name, change)
    for name in sample.aggregator:
        for label, change in _array_changes():
            yield f"aggregator tensor {name}: {label}", _of_aggregator(name, change)
    if first is not None:
        yield (
            "shard tensor more",
            lambda f: f.shards[first].update(more=np.zeros(3, dtype=np.float32)),
        )
        yield "shard gone", lambda f: f.shards.pop(first)
        for number in (99, -1, HUGE, -HUGE):
            yield f"shard {number}", _another_shard(first, number)
        for seed in (-2, 0, HUGE, -HUGE):
            yield f"seed {seed}", _seeded(first, seed)
    yield "aggregator tensor more", lambda f: f.aggregator.update(more=np.zeros(3))


def _another_shard(shard: int, number: int) -> Edit:
    return lambda folder: folder.shards.update({number: folder.shards[shard]})


def _seeded(shard: int, seed: int) -> Edit:
    return lambda folder: folder.seeds.update({shard: seed})


def index_edits() -> Iterator[tuple[str, Edit]]:
    """The links of a divided index, out of order, out of range, or to what is no part of it."""

    def topped(change: Callable[[NDArray[Any]], NDArray[Any]]) -> Edit:
        def edit(folder: Folder) -> None:
            for part in ("graph", "partition", "shards"):
                folder.change_top[part] = change

        return edit

    def poked(name: str, value: Any) -> Callable[[NDArray[Any]], NDArray[Any]]:
        def change(top: NDArray[Any]) -> NDArray[Any]:
            if len(top) and name in (top.dtype.names or ()):
                top[name][-1] = value
            return top

        return change

    for name in ("start", "entries"):
        for value in (-1, 0, 1, HUGE, -HUGE):
            yield f"link {name}: {value}", topped(poked(name, value))
    yield "link to nothing", topped(poked("part", np.void(bytes(32))))
    yield "links reversed", topped(lambda top: top[::-1].copy())
    yield "links twice", topped(lambda top: np.concatenate([top, top]))
    yield "first link many times", topped(lambda top: np.repeat(top[:1], 64))
    yield "last link gone", topped(lambda top: top[:-1].copy())
    yield "links gone", topped(lambda top: top[:0].copy())


def _array_changes() -> list[tuple[str, Callable[[NDArray[Any]], NDArray[Any] | None]]]:
    def poked(value: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
        def change(array: NDArray[Any]) -> NDArray[Any]:
            out = array.copy()
            if out.size:
                with np.errstate(all="ignore"):
                    out.reshape(-1)[-1:] = np.array([value]).astype(out.dtype)
            return out

        return change

    return [
        ("gone", lambda array: None),
        ("empty", lambda array: array.reshape(-1)[:0]),
        ("flat", lambda array: array.reshape(-1).copy()),
        ("one more axis", lambda array: array[None].copy()),
        ("shorter", lambda array: array[:-1].copy() if array.ndim else array),
        ("longer", lambda array: np.concatenate([array, array]) if array.ndim else array),
        ("float64", lambda array: array.astype(np.float64)),
        ("int8", lambda array: np.zeros(array.shape, dtype=np.int8)),
        ("uint64", lambda array: np.full(array.shape, 2**63, dtype=np.uint64)),
        ("nan", poked(np.nan)),
        ("-1", poked(-1)),
        ("huge", poked(2**31 - 1)),
        ("reversed", lambda array: array[::-1].copy() if array.ndim else array),
    ]


def _of_shard(shard: Any, name: str, change: Callable[[NDArray[Any]], NDArray[Any] | None]) -> Edit:
    def edit(folder: Folder) -> None:
        _replaced(folder.shards[shard], name, change)

    return edit


def _of_aggregator(name: str, change: Callable[[NDArray[Any]], NDArray[Any] | None]) -> Edit:
    def edit(folder: Folder) -> None:
        _replaced(folder.aggregator, name, change)

    return edit


def _replaced(
    tensors: dict[str, NDArray[Any]],
    name: str,
    change: Callable[[NDArray[Any]], NDArray[Any] | None],
) -> None:
    changed = change(tensors.pop(name))
    if changed is not None:
        tensors[name] = changed


_ODD: list[Any] = [None, -1, 0, 10**30, 1.5, "x", "", [], {}, True, ["x"], float("nan")]


def manifest_edits(sample: Folder) -> Iterator[tuple[str, Edit]]:
    """Every value of the manifest, of another type or gone."""
    for path in _paths(sample.manifest):
        for value in _ODD:
            yield f"{'.'.join(path)} = {value!r}", _set(path, value)
        yield f"{'.'.join(path)} gone", _set(path, _GONE)


_GONE = object()


def _paths(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key in value:
        yield (*above, key)
        if isinstance(value[key], dict):
            yield from _paths(value[key], (*above, key))


def _set(path: tuple[str, ...], value: Any, *, receipt: bool = False) -> Edit:
    def edit(folder: Folder) -> None:
        place: Any = folder.receipts[-1] if receipt else folder.manifest
        for key in path[:-1]:
            place = place[key]
        if value is _GONE:
            del place[path[-1]]
        else:
            place[path[-1]] = copy.deepcopy(value)

    return edit


def receipt_edits(sample: Folder) -> Iterator[tuple[str, Edit]]:
    """Every value of the last receipt, of another type or gone."""
    if not sample.receipts:
        return
    for path in _paths(sample.receipts[-1]):
        for value in _ODD:
            yield f"receipt {'.'.join(path)} = {value!r}", _set(path, value, receipt=True)
        yield f"receipt {'.'.join(path)} gone", _set(path, _GONE, receipt=True)
    for label, value in (("one number", 5), ("a list", []), ("text", "x"), ("nothing", None)):
        yield f"receipt {label}", _last_receipt(value)
    yield "receipt about nothing", _set(("subject",), [], receipt=True)
    yield "receipt nested", _last_receipt(_nested(900))
    yield "manifest nested", lambda f: f.manifest.update(more=_nested(900))


def _last_receipt(value: Any) -> Edit:
    return lambda folder: folder.receipts.__setitem__(-1, value)


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def all_edits(sample: Folder) -> list[tuple[str, Edit]]:
    """Every edit of a run like this one, by what it does."""
    return [
        *page_edits(),
        *register_edits(),
        *tensor_edits(sample),
        *index_edits(),
        *manifest_edits(sample),
        *receipt_edits(sample),
    ]
