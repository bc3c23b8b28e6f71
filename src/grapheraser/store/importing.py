"""From a stream to a graph store, in memory that doesn't grow with the graph's edges or features.

Three steps, each of which can be interrupted and goes on where it stopped:

1. *nodes*: ids, labels, roles and features are appended to files as they come. Ids alone are held
   in memory, to sort and to look edges up.
2. *edges*: both directions of each edge go to the file of the bucket of their row, a range of
   pages.
3. *pages*: bucket by bucket, the entries are sorted, repetitions dropped, pages packed and
   digested, and written as a pack.

``import.partial`` keeps the steps that are done, with the lengths of all files: whatever a crash
wrote beyond them is dropped.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.canonical import canonical_json
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph.build import check_features, check_labels, classes_of, found_class_ids
from grapheraser.graph.edge_values import PLAIN, Counts, edge_notes, ranks_among
from grapheraser.graph.formats.streams import NodeBlock, Stream
from grapheraser.graph.ids import new_keyed_ids
from grapheraser.graph.pages.directory import Directory
from grapheraser.graph.pages.packing import Rows
from grapheraser.graph.pages.pages import Pages
from grapheraser.graph.pages.stored import PARTIAL, STORED
from grapheraser.graph.proof.merkle import MerkleTree
from grapheraser.graph.roles import CONTEXT, TRAIN, UNLABELLED
from grapheraser.store.files import failure_of, make_folder, write_atomic
from grapheraser.store.folder import hold
from grapheraser.store.graphs import SPILL, begin, check_room, clear, finish, write_pack
from grapheraser.untrusted import MAX_JSON, parse_json, read_plain

_BUCKET = 1 << 17  # nodes of a bucket
_MAX_KEYS = 1 << 24  # entries that are sorted at once
_NOTE_SECONDS = 10.0  # seconds between two notes of what has been done
_ROW = 33  # bits of a key below the row: the column, and whether the edge was given so
_CONSEQUENCE = "run the same import again once there is space: it goes on where it stopped"

Say = Callable[[str], None]


def import_graph(
    stream: Stream,
    folder: Path,
    *,
    replace: bool = False,
    secret: bytes | None = None,
    say: Say = lambda text: None,
) -> None:
    """Make a graph store of a stream; goes on where an earlier import of the same one stopped.

    With a secret, keyed ids stand for those of the stream.
    """
    said = json.dumps(stream.signature, sort_keys=True)
    signature = hashlib.sha256((secret or b"") + said.encode()).hexdigest()
    if not _continues(folder, signature, replace=replace):
        check_room(folder, replace=replace)
    make_folder(folder)
    with hold(folder):
        if not _continues(folder, signature, replace=replace):  # now that nobody can change it
            check_room(folder, replace=replace)
            begin(folder, _Progress(folder, signature).content())
        make_folder(folder / SPILL)
        try:
            _Import(stream, folder, _Progress.of(folder, signature), say, secret).run()
        except GraphError:
            clear(folder)  # no second try would do better
            raise
        except OSError as error:
            raise failure_of(Path(error.filename or folder), error, _CONSEQUENCE) from error


def _continues(folder: Path, signature: str, *, replace: bool) -> bool:
    """Tell whether a folder holds the beginning of the same import."""
    if replace or not (folder / PARTIAL).exists():
        return False
    try:
        kept = _kept(folder)["signature"]
    except (ValueError, KeyError, TypeError):
        kept = None
    if kept != signature:
        raise ParameterError(
            f"{folder}: holds the beginning of another import, or its source has changed.",
            hint="add --replace to begin anew.",
        )
    return True


def _kept(folder: Path) -> Any:
    return parse_json(read_plain(folder / PARTIAL, MAX_JSON) or b"")


@dataclass
class _Progress:
    """The steps that are done, and how long each file was then."""

    folder: Path
    signature: str
    step: str = "nodes"
    blocks: int = 0
    lengths: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    noted: float = 0.0

    @classmethod
    def of(cls, folder: Path, signature: str) -> _Progress:
        kept = _kept(folder)
        found = cls(folder, signature, **{k: v for k, v in kept.items() if k != "signature"})
        for name in sorted(os.listdir(folder / SPILL)):
            length = found.lengths.get(name, 0)
            with open(folder / SPILL / name, "ab") as part:
                part.truncate(length)
        return found

    def append(self, name: str, array: NDArray[Any]) -> None:
        """Add to a file."""
        content = np.ascontiguousarray(array).data
        with open(self.folder / SPILL / name, "ab") as part:
            part.write(content)
        self.lengths[name] = self.lengths.get(name, 0) + content.nbytes

    def array(self, name: str, kind: Any, shape: tuple[int, ...] = (-1,)) -> NDArray[Any]:
        """A file as an array, mapped into memory."""
        if not self.lengths.get(name):
            return np.zeros(0, dtype=kind).reshape(tuple(max(0, side) for side in shape))
        return np.memmap(self.folder / SPILL / name, dtype=kind, mode="r").reshape(shape)

    def note(self, *, now: bool = False) -> None:
        """Keep what has been done, if some time has passed."""
        if not now and time.monotonic() - self.noted < _NOTE_SECONDS:
            return
        for name in self.lengths:
            with open(self.folder / SPILL / name, "ab") as part:
                os.fsync(part.fileno())
        write_atomic(self.folder / PARTIAL, self.content())
        self.noted = time.monotonic()

    def content(self) -> bytes:
        """Return what is kept."""
        kept = {"signature": self.signature, "step": self.step, "blocks": self.blocks}
        return canonical_json(kept | {"lengths": self.lengths, "counts": self.counts}).encode()

    def next(self, step: str) -> None:
        """Go on to the next step."""
        self.step, self.blocks = step, 0
        self.note(now=True)


@dataclass(frozen=True, eq=False)
class _Import:
    stream: Stream
    folder: Path
    done: _Progress
    say: Say
    secret: bytes | None

    def run(self) -> None:
        """All steps that are left."""
        if self.done.step == "nodes":
            self._nodes()
            self.done.next("edges")
        self._check_nodes()
        if self.done.step == "edges":
            self._edges()
            self.done.next("pages")
        finish(self.folder, list(self._packs()), self._schema)

    # -- nodes -----------------------------------------------------------------------------------

    def _nodes(self) -> None:
        done = self.done
        for block in islice(self.stream.node_blocks(), done.blocks, None):
            self._add_nodes(block)
            done.blocks += 1
            done.note()
            self.say(f"nodes {done.lengths['ids'] // 8:,}")
        if "ids" not in done.lengths:
            raise GraphError(f"graph '{self.stream.name}' has no nodes.")

    def _add_nodes(self, block: NodeBlock) -> None:
        done = self.done
        y, _ = check_labels(block.y, len(block.ids), self.stream.num_classes)
        role = block.role
        if role is None:
            role = np.where(y == UNLABELLED, CONTEXT, TRAIN).astype(np.int8)
        if ((role == TRAIN) & (y == UNLABELLED)).any():
            bare = block.ids[(role == TRAIN) & (y == UNLABELLED)][0]
            raise GraphError(f"training nodes need a label (node {bare} has none).")
        x: Any = check_features(block.x)
        dense = done.counts.setdefault("dense", int(not sp.issparse(x)))
        width = done.counts.setdefault("num_features", x.shape[1])
        if x.shape[1] != width or len(x.shape) != 2 or x.shape[0] != len(block.ids):
            raise GraphError(f"a node has {width} features (found {x.shape[1]}).")
        if dense:
            done.append("x", x if isinstance(x, np.ndarray) else x.toarray())
        else:
            rows = sp.csr_array(x)
            rows.eliminate_zeros()
            done.append("lengths", np.diff(rows.indptr).astype(np.int64))
            done.append("columns", rows.indices.astype(np.int32))
            done.append("values", rows.data.astype(np.float32))
        done.append("ids", self._inside(block.ids.astype(np.int64)))
        done.append("y", y)
        done.append("role", role)
        done.counts["classes"] = max(done.counts.get("classes", 1), int(y.max(initial=0)) + 1)

    @cached_property
    def _order(self) -> NDArray[np.int64] | None:
        """The rows in the order of the ids; None where they came in that order."""
        ids = self.done.array("ids", np.int64)
        ascending = bool((ids[1:] > ids[:-1]).all())
        return None if ascending else np.argsort(ids, kind="stable")

    @cached_property
    def _ids(self) -> NDArray[np.int64]:
        ids = np.array(self.done.array("ids", np.int64))
        return ids if self._order is None else ids[self._order]

    @cached_property
    def _class_ids(self) -> tuple[int, ...]:
        """The ids of the classes, where they leave gaps and were not declared."""
        declared = self.stream.num_classes is not None
        return () if declared else found_class_ids(self.done.array("y", np.int64))

    @cached_property
    def _directory(self) -> Directory:
        return Directory.of(self._ids)

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        """The pages where buckets begin and end."""
        ends = np.cumsum(self._directory.counts)
        cuts = np.searchsorted(ends, np.arange(_BUCKET, ends[-1], _BUCKET), side="left") + 1
        return np.unique(np.concatenate([[0], cuts, [len(ends)]]))

    @cached_property
    def _firsts(self) -> NDArray[np.int64]:
        """The rows where buckets begin and end."""
        return np.concatenate([[0], np.cumsum(self._directory.counts)])[self._bounds]

    def _check_nodes(self) -> None:
        ids = self._ids
        if ids[0] < 0:
            raise GraphError(f"node ids must be non-negative (found {ids[0]}).")
        twice = np.flatnonzero(ids[1:] == ids[:-1])
        if len(twice):
            raise GraphError(f"node ids must be unique (found {ids[twice[0]]} twice).")
        if len(ids) >= 2**31:
            raise GraphError(f"a graph has at most {2**31 - 1} nodes (found {len(ids)}).")

    # -- edges -----------------------------------------------------------------------------------

    def _edges(self) -> None:
        done = self.done
        for pairs in islice(self.stream.edge_blocks(), done.blocks, None):
            ends = self._inside(pairs)
            at = ranks_among(ends, self._ids, ends).astype(np.int64)
            real = at[:, 0] != at[:, 1]
            done.counts["loops"] = done.counts.get("loops", 0) + int((~real).sum())
            self._add_edges(at[real])
            done.blocks += 1
            done.note()
            self.say(f"edges: block {done.blocks:,}")

    def _inside(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        return ids if self.secret is None else new_keyed_ids(ids, self.secret)

    def _add_edges(self, at: NDArray[np.int64]) -> None:
        rows = np.concatenate([at[:, 0], at[:, 1]])
        columns = np.concatenate([at[:, 1], at[:, 0]])
        given = np.repeat(np.array([0, 1]), len(at))
        buckets = np.searchsorted(self._firsts, rows, side="right") - 1
        keys = (rows - self._firsts[buckets]) << _ROW | columns << 1 | given
        order = np.argsort(buckets, kind="stable")
        counts = np.bincount(buckets, minlength=len(self._firsts) - 1)
        for bucket, part in enumerate(np.split(keys[order], np.cumsum(counts)[:-1])):
            if len(part):
                self.done.append(_bucket(bucket), part)

    # -- pages -----------------------------------------------------------------------------------

    def _packs(self) -> Iterator[NDArray[np.void]]:
        """The parts of the index, of packs that are there or are written now."""
        done, number, bounds = self.done, 0, self._bounds.tolist()
        for bucket in range(len(bounds) - 1):
            for low, high in self._ranges(bucket, bounds[bucket], bounds[bucket + 1]):
                kept = self.folder / SPILL / f"index-{number}"
                if number >= done.blocks:
                    index = self._pack(bucket, low, high, number)
                    done.append(kept.name, index.view(np.uint8))
                    done.blocks += 1
                    done.note(now=True)
                    self.say(f"pages {high:,} of {bounds[-1]:,}")
                yield np.fromfile(kept, dtype=STORED)
                number += 1

    def _ranges(self, bucket: int, low: int, high: int) -> Iterator[tuple[int, int]]:
        """The pages of a bucket, in ranges whose entries are not too many."""
        keys = self.done.lengths.get(_bucket(bucket), 0) // 8
        parts = min(high - low, -(-keys // _MAX_KEYS) or 1)
        cuts = np.linspace(low, high, parts + 1).astype(np.int64).tolist()
        yield from pairwise(cuts)

    def _pack(self, bucket: int, low: int, high: int, number: int) -> NDArray[np.void]:
        directory, first = self._directory, int(self._firsts[bucket])
        before = np.concatenate([[0], np.cumsum(directory.counts)])
        start, end = int(before[low]), int(before[high])
        indptr, columns = self._entries(bucket, start - first, end - first)
        chosen = slice(start, end) if self._order is None else self._order[start:end]
        role = np.array(self.done.array("role", np.int8)[chosen])
        y, _ = classes_of(self.done.array("y", np.int64)[chosen], self._class_ids)
        ids = self._ids
        rows = Rows(ids[start:end], y, role, indptr, ids[columns], self._features(chosen))
        pages = Pages.packed(rows, directory.part(low, high), PLAIN)
        return write_pack(
            self.folder, number, pages, MerkleTree.of(pages).leaves, range(len(pages.pages))
        )

    def _entries(
        self, bucket: int, low: int, high: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pointers and sorted columns of a range of rows of a bucket, each once."""
        keys = self.done.array(_bucket(bucket), np.int64)
        ends = (np.int64(low) << _ROW, np.int64(high) << _ROW)
        step = 1 << 22
        parts = [keys[at : at + step] for at in range(0, len(keys), step)]
        parts = [part[(part >= ends[0]) & (part < ends[1])] for part in parts]
        found = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))
        once, given = found >> 1, (found & 1) == 0
        first = np.ones(len(once), dtype=bool)
        first[1:] = once[1:] != once[:-1]
        groups = np.cumsum(first) - 1
        times = np.bincount(groups[given], minlength=int(first.sum()))
        back = np.bincount(groups[~given], minlength=int(first.sum()))
        counts = self.done.counts
        counts["repeated"] = counts.get("repeated", 0) + int(np.maximum(times - 1, 0).sum())
        counts["one_way"] = counts.get("one_way", 0) + int(((times > 0) & (back == 0)).sum())
        kept = once[first]
        rows = (kept >> (_ROW - 1)) - low
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=high - low))])
        return indptr.astype(np.int64), kept & ((1 << (_ROW - 1)) - 1)

    def _features(self, chosen: Any) -> Any:
        done, width = self.done, self.done.counts["num_features"]
        if done.counts["dense"]:
            return np.array(done.array("x", np.float32, (-1, width))[chosen])
        lengths = done.array("lengths", np.int64)
        pointers = np.concatenate([[0], np.cumsum(lengths)])
        parts = (done.array("values", np.float32), done.array("columns", np.int32), pointers)
        every = sp.csr_array(parts, shape=(len(lengths), width), copy=False)
        return every[chosen]

    @property
    def _schema(self) -> dict[str, Any]:
        counts, given = self.done.counts, self.stream.num_classes
        once = self.stream.each_edge_once
        found = Counts(*(counts.get(name, 0) for name in ("loops", "repeated", "one_way")))
        return {
            "name": self.stream.name,
            "notes": list(edge_notes(PLAIN, found, each_edge_once=once)),
            "num_features": counts["num_features"],
            "dense": bool(counts["dense"]),
            "num_classes": len(self._class_ids) or counts["classes"] if given is None else given,
            "class_names": list(self._class_ids),
            "inferred": ["classes"] if given is None else [],
            "edges": PLAIN._asdict(),
        }


def _bucket(number: int) -> str:
    return f"bucket-{number}"
