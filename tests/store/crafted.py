"""Run folders that a stranger made: every digest fits, and one thing in them is not what it was.

Each of `edits` takes the files of a run apart, changes one thing and puts them together again, so
that no digest tells. `outcome` uses such a folder in a process of its own.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import resource
import shutil
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.errors import GraphEraserError
from grapheraser.store.pages import (
    GRAPH,
    SHARDS,
    digests,
    index_content,
    page_file,
    read_index,
)

HUGE = 2**62
Edit = Callable[["Folder"], None]


@dataclass
class Folder:
    """The parts of a run in memory, to be changed at will.

    Attributes:
        manifest: the object of run.json.
        graph, partition: the indexes.
        pages: content of files of pages, by digest.
        shards, aggregator: tensors.
    """

    manifest: dict[str, Any]
    graph: NDArray[Any]
    partition: NDArray[Any]
    pages: dict[bytes, bytes]
    shards: dict[str, dict[str, NDArray[Any]]]
    aggregator: dict[str, NDArray[Any]]

    @classmethod
    def read(cls, path: Path) -> Folder:
        manifest = json.loads((path / "run.json").read_text())

        def content(entry: dict[str, str]) -> bytes:
            return (path / entry["file"]).read_bytes()

        graph = read_index(content(manifest["graph"]), GRAPH).copy()
        partition = read_index(content(manifest["partition"]), SHARDS).copy()
        named = [*digests(graph, "topology"), *digests(graph, "features")]
        named += digests(partition, "shards")
        return cls(
            manifest,
            graph,
            partition,
            {digest: (path / page_file(digest)).read_bytes() for digest in named},
            {
                shard: {
                    name: array.copy()
                    for name, array in safetensors.numpy.load(content(entry)).items()
                }
                for shard, entry in manifest["shards"].items()
            },
            {
                name: array.copy()
                for name, array in safetensors.numpy.load(content(manifest["aggregator"])).items()
            },
        )

    def write(self, path: Path) -> None:
        """Put everything together, with digests that fit."""
        for folder in ("pages", "shards", "receipts"):
            (path / folder).mkdir(parents=True, exist_ok=True)
        for digest, content in self.pages.items():
            (path / page_file(digest)).write_bytes(content)
        manifest = self.manifest

        def put(part: Any, pattern: str, content: bytes) -> None:
            digest = hashlib.sha256(content).hexdigest()
            name = pattern.format(digest[:20])
            (path / name).write_bytes(content)
            if isinstance(part, dict):
                part.update(file=name, sha256=digest)

        put(manifest.get("graph"), "graph-{}.npy", index_content(self.graph))
        put(manifest.get("partition"), "partition-{}.npy", index_content(self.partition))
        of_aggregator = safetensors.numpy.save(self.aggregator)
        put(manifest.get("aggregator"), "aggregator-{}.safetensors", of_aggregator)
        entries = manifest.get("shards")
        for shard, tensors in self.shards.items():
            entry = entries.setdefault(shard, {}) if isinstance(entries, dict) else None
            put(entry, "shards/{}.safetensors", safetensors.numpy.save(tensors))
        (path / "run.json").write_text(json.dumps(manifest))

    def change_page(
        self, kind: str, number: int, change: Callable[[bytearray], bytes | None]
    ) -> None:
        """Change the file of a page, its digest and its size in the index."""
        index = self.partition if kind == "shards" else self.graph
        content = bytearray(self.pages[digests(index, kind)[number]])
        changed = bytes(change(content) or content)
        digest = hashlib.sha256(changed).digest()
        self.pages[digest] = changed
        index[kind][number] = np.frombuffer(digest, dtype="V32")[0]
        if f"{kind}_bytes" in (index.dtype.names or ()):
            index[f"{kind}_bytes"][number] = len(changed)


# -- what can be changed -------------------------------------------------------------------------


def _poke(kind: str, at: Callable[[int], int], value: int | float, code: str) -> Edit:
    """Write a number into the file of the first page; ``at`` gives the place by its node count."""

    def edit(folder: Folder) -> None:
        def change(content: bytearray) -> None:
            count = int(np.frombuffer(content[8:16], dtype="<i8")[0])
            raw = np.array([value]).astype(code).tobytes()
            content[at(count) : at(count) + len(raw)] = raw

        folder.change_page(kind, 0, change)

    return edit


def _edges_at(count: int) -> int:
    return 32 + 13 * count + -13 * count % 8


def page_edits() -> Iterator[tuple[str, Edit]]:
    for value in (-1, 0, 3, HUGE, -HUGE):
        for field in (0, 8, 16, 24):
            yield (
                f"topology header {field}: {value}",
                _poke("topology", lambda n, f=field: f, value, "<i8"),
            )
            yield (
                f"features header {field}: {value}",
                _poke("features", lambda n, f=field: f, value, "<i8"),
            )
            yield (
                f"partition header {field}: {value}",
                _poke("shards", lambda n, f=field: f, value, "<i8"),
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
    for value in (np.nan, np.inf, 1e38, 0.0):
        yield (
            f"feature: {value}",
            lambda folder, v=value: folder.change_page(
                "features", 0, lambda c: c.__setitem__(slice(-4, None), np.float32(v).tobytes())
            ),
        )
    for kind in ("topology", "features", "shards"):
        yield (
            f"{kind} cut short",
            lambda folder, k=kind: folder.change_page(k, 0, lambda c: bytes(c[:-8])),
        )
        yield (
            f"{kind} with more",
            lambda folder, k=kind: folder.change_page(k, 0, lambda c: bytes(c) + bytes(8)),
        )
        yield f"{kind} empty", lambda folder, k=kind: folder.change_page(k, 0, lambda c: b"x")
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


def _unnamed(kind: str) -> Edit:
    def edit(folder: Folder) -> None:
        index = folder.partition if kind == "shards" else folder.graph
        index[kind][0] = np.void(bytes(32))

    return edit


def _indexed(which: str, name: str, value: int) -> Edit:
    def edit(folder: Folder) -> None:
        getattr(folder, which)[name][0] = value

    return edit


def tensor_edits(sample: Folder) -> Iterator[tuple[str, Edit]]:
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
        yield "shard gone", lambda f: (f.shards.pop(first), f.manifest["shards"].pop(first))
        yield "shard unknown", lambda f: f.shards.update({"99": f.shards[first]})
        yield "shard named oddly", lambda f: f.shards.update({"x": f.shards[first]})
    yield "aggregator tensor more", lambda f: f.aggregator.update(more=np.zeros(3))


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


def manifest_edits(sample: Folder) -> Iterator[tuple[str, Edit]]:
    odd: list[Any] = [None, -1, 0, 10**30, 1.5, "x", "", [], {}, True, ["x"], float("nan")]
    for path in _paths(sample.manifest):
        for value in odd:
            yield f"{'.'.join(path)} = {value!r}", _set(path, value)
        yield f"{'.'.join(path)} gone", _set(path, _GONE)


_GONE = object()


def _paths(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key in value:
        yield (*above, key)
        if isinstance(value[key], dict):
            yield from _paths(value[key], (*above, key))


def _set(path: tuple[str, ...], value: Any) -> Edit:
    def edit(folder: Folder) -> None:
        place: Any = folder.manifest
        for key in path[:-1]:
            place = place[key]
        if value is _GONE:
            del place[path[-1]]
        else:
            place[path[-1]] = copy.deepcopy(value)

    return edit


# -- what comes of it ----------------------------------------------------------------------------


def outcome(path: Path, seconds: int = 30) -> str:
    """``fine``, ``refused``, or what went wrong when a run is loaded, asked, checked and changed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.write(writing, pickle.dumps(_used(path, seconds))[:60_000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return str(pickle.loads(said))  # noqa: S301 - from our own child


def _used(path: Path, seconds: int) -> str:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    del used
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        run = ge.GraphEraser.load(path)
        nodes = run.graph_.ids[:5]
        run.predict_proba(nodes)
        run.verify()
        run.unlearn(ge.Nodes(nodes[:1]))
        run.save(path)
    except GraphEraserError as error:
        return f"refused: {error.message}"
    except BaseException:
        return f"raw: {traceback.format_exc(limit=-3)}"
    return "fine"


def crafted(base: Path, target: Path, edit: Edit) -> Path:
    """A copy of a run with one edit."""
    folder = Folder.read(base)
    edit(folder)
    shutil.rmtree(target, ignore_errors=True)
    folder.write(target)
    for receipt in (base / "receipts").iterdir():
        shutil.copy(receipt, target / "receipts")
    return target
