"""The files of a run as they are written: what the folder holds already is left as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.canonical import digest_of, digest_of_pages
from grapheraser.graph import Graph
from grapheraser.graph.directory import Directory
from grapheraser.graph.edge_values import PLAIN
from grapheraser.graph.lineage import Lineage
from grapheraser.graph.page_files import (
    GRAPH,
    HEADER,
    features_content,
    index_content,
    topology_content,
    topology_size,
)
from grapheraser.graph.register import Register
from grapheraser.partition import Partition
from grapheraser.receipts import Receipt, Receipts
from grapheraser.store.digests import NO_DIGEST, Digests, as_bytes, differing, unknown
from grapheraser.store.files import Batch
from grapheraser.store.indexes import Index, divided
from grapheraser.store.kept import Kept
from grapheraser.store.manifest import receipt_file
from grapheraser.store.memo import Memo, MemoOfWeights
from grapheraser.store.pages import (
    FILES,
    MODELS,
    NO_SEED,
    SHARDS,
    SLOTS,
    page_file,
    register_content,
    shards_content,
)
from grapheraser.store.tensors import file_content, file_digest
from grapheraser.training import ShardModels, ShardWeights
from grapheraser.training.models import ModelPage

Rows: TypeAlias = NDArray[np.int64]

# Of a page: topology files by the leaves in them, features files and those of partitions by their
# block.
page_files = Memo()
shard_files = MemoOfWeights()
_AT_ONCE = 64  # files whose content is held
_DIGEST = "_digest"  # of a page of shard models


def shard_digest(weights: ShardWeights) -> str:
    """SHA-256 of the file that holds a shard model."""
    known = shard_files.get(weights)
    if known is not None:
        return known.hex()
    return shard_files.put(weights, bytes.fromhex(file_digest(weights.arrays))).hex()


def shards_digest(shards: Mapping[int, ShardWeights]) -> str:
    """Over the files of all shard models: see `canonical.digest_by_page`."""
    pages = ShardModels.of(shards).pages
    return digest_of_pages({number: _page_digest(page) for number, page in pages.items()})


def _page_digest(page: ModelPage) -> str:
    """Remembered by the page: its models never change."""
    known: str | None = page.__dict__.get(_DIGEST)
    if known is None:
        models = page.models.items()
        known = digest_of({str(shard): shard_digest(weights) for shard, weights in models})
        page.__dict__[_DIGEST] = known
    return known


def aggregator_digest(tensors: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the file that holds what an aggregator learned."""
    return file_digest(_contiguous(tensors))


def _contiguous(tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: np.ascontiguousarray(array) for name, array in tensors.items()}


@dataclass(frozen=True)
class _Arrays:
    """One array of each of many pages."""

    pages: Sequence[Any]
    name: str

    def __getitem__(self, at: int) -> NDArray[Any]:
        array: NDArray[Any] = getattr(self.pages[at], self.name)
        return array

    def all(self) -> list[NDArray[Any]]:
        return [getattr(page, self.name) for page in self.pages]


class Writer:
    """Writes the parts of a run that a folder does not hold yet.

    Attributes:
        folders: those that got a new file.
        indexes: of the run, by part.
    """

    def __init__(self, path: Path, batch: Batch, kept: Kept) -> None:
        self._path, self._batch, self._kept = path, batch, kept
        self.folders: set[Path] = set()
        self.indexes: dict[str, Index] = {}
        self._replaced: dict[str, tuple[Digests, Digests]] = {}

    def graph(self, graph: Graph) -> dict[str, Any]:
        """Write a graph: its pages that are new, and the index."""
        pages, tree = graph.pages, graph.tree.leaves
        counts, shape = pages.directory.counts, (pages.num_features, pages.dense)
        touched = self._since("graph", pages.lineage)
        found = {
            "topology": self._pages(
                "topology",
                _Arrays(tree, "leaves"),
                lambda at: topology_content(pages.pages[at], tree[at].leaves),
                touched,
            ),
            "features": self._pages(
                "features",
                _Arrays(pages.pages, "features"),
                lambda at: features_content(pages.pages[at].features, int(counts[at]), *shape),
                touched,
            ),
        }
        index, rows = self._index("graph", GRAPH, pages.directory, found, touched)
        for at in rows.tolist():
            index["topology_bytes"][at] = topology_size(pages.pages[at], int(counts[at]))
            index["features_bytes"][at] = HEADER + pages.pages[at].features.nbytes
            index["root"][at] = np.frombuffer(tree[at].root, dtype="V32")[0]
        return {
            **self._put_index("graph", index, pages.lineage, touched),
            "num_features": pages.num_features,
            "dense": pages.dense,
            "num_classes": graph.num_classes,
            "name": graph.name,
            "notes": list(graph.notes),
            "context": graph.context,
            **({"class_names": list(graph.class_names)} if graph.class_names else {}),
            **({} if graph.edge_kind == PLAIN else {"edges": graph.edge_kind._asdict()}),
        }

    def partition(self, partition: Partition) -> dict[str, Any]:
        """Write a partition: its pages that are new, and the index."""
        pages = partition.pages
        counts = pages.directory.counts
        touched = self._since("partition", pages.lineage)
        found = self._pages(
            "shards",
            _Arrays(pages.pages, "nodes"),
            lambda at: shards_content(pages.pages[at].nodes, int(counts[at])),
            touched,
        )
        index, _ = self._index("partition", SHARDS, pages.directory, {"shards": found}, touched)
        return {
            **self._put_index("partition", index, pages.lineage, touched),
            "num_shards": partition.num_shards,
            "method": partition.method,
            "capacity": partition.capacity,
            "inputs": sorted(partition.inputs),
            "seed": partition.seed,
        }

    def register(self, register: Register) -> dict[str, Any]:
        """Write a register: its pages that are new, and the index."""
        pages = register.pages
        touched = self._since("register", register.lineage)
        found = self._pages(
            "entries",
            _Arrays(pages, "entries"),
            lambda at: register_content(pages[at]) if len(pages[at].entries) else None,
            touched,
        )
        index, rows = self._aligned("register", SLOTS, {"entries": found}, touched)
        index["start"] = np.arange(len(index))
        for at in rows.tolist():
            index["count"][at], top = len(pages[at].entries), pages[at].top
            index["top"][at] = NO_DIGEST if top is None else np.frombuffer(top, dtype="V32")[0]
        entry = self._put_index("register", index, register.lineage, touched)
        return {**entry, "key": register.key.hex()}

    def shards(
        self, shards: Mapping[int, ShardWeights], seeds: Mapping[int, int]
    ) -> dict[str, str]:
        """Write shard models: those that are new, and the index."""
        models = ShardModels.of(shards)
        ids, rows = models.ids, self._since("shards", models.lineage)
        if rows is None:
            found = shard_files.column([*models.values()])
        else:
            found = shard_files.column([models[shard] for shard in rows.tolist()])
            rows = np.searchsorted(ids, rows)
        found = self._files(
            "weights",
            found,
            rows,
            lambda at: file_content(models[int(ids[at])].arrays),
            lambda at, digest: shard_files.put(models[int(ids[at])], digest),
        )
        index, _ = self._aligned("shards", MODELS, {"weights": found}, rows)
        index["start"], index["seed"] = ids, NO_SEED
        own = np.searchsorted(ids, sorted(seeds))
        index["seed"][own] = [seeds[number] for number in sorted(seeds)]
        return self._put_index("shards", index, models.lineage, rows)

    def aggregator(self, tensors: Mapping[str, NDArray[Any]]) -> dict[str, str]:
        """Write what an aggregator holds."""
        return self.put("aggregator-{}.safetensors", file_content(_contiguous(tensors)))

    def receipts(self, receipts: Sequence[Receipt]) -> dict[str, Any]:
        """Write the receipts that are new."""
        ours = Receipts.of(receipts)
        for number in range(1, len(ours) + 1):
            if number not in self._kept.receipts:
                content = ours[number - 1].to_json().encode()
                self._write(receipt_file(number, _sha256(content)), content)
        return {"count": len(ours), "head": ours.digest(len(ours)) if len(ours) else None}

    def put(self, pattern: str, content: bytes) -> dict[str, str]:
        """Write a file that is named by its content."""
        digest = _sha256(content)
        name = pattern.format(digest[:20])
        if name not in self._kept.names:
            self._write(name, content)
        return {"file": name, "sha256": digest}

    def _since(self, part: str, lineage: Lineage) -> Rows | None:
        """The pages that may be others than those in the folder; None for all of them."""
        kept = self._kept.indexes.get(part)
        numbers = None if kept is None or kept.token is None else lineage.since(kept.token)
        return None if numbers is None else np.array(sorted(numbers), dtype=np.int64)

    def _put_index(
        self, part: str, entries: NDArray[np.void], lineage: Lineage, touched: Rows | None
    ) -> dict[str, str]:
        """Write the parts of an index that are new, and its top."""
        index, fresh = divided(entries, self._kept.indexes.get(part), touched)
        index = replace(index, token=lineage.token)
        for digest, content in fresh.items():
            self._write(page_file(digest), content)
        self.indexes[part] = index
        return self.put(f"{part}-{{}}.npy", index_content(index.top))

    def _index(
        self,
        part: str,
        kind: np.dtype[np.void],
        directory: Directory,
        columns: Mapping[str, Digests],
        touched: Rows | None,
    ) -> tuple[NDArray[np.void], Rows]:
        """An index with the blocks of a directory; see `_aligned`."""
        index, rows = self._aligned(part, kind, columns, touched)
        index["start"], index["size"] = directory.starts, directory.sizes
        index["count"] = directory.counts
        return index, rows

    def _aligned(
        self,
        part: str,
        kind: np.dtype[np.void],
        columns: Mapping[str, Digests],
        touched: Rows | None,
    ) -> tuple[NDArray[np.void], Rows]:
        """An index with these digests, and the rows whose other fields are not those kept."""
        kept = self._kept.indexes.get(part)
        if kept is not None and touched is not None:
            index = kept.entries.copy()
            for name, digests in columns.items():
                index[name][touched] = digests
            return index, touched
        length = len(next(iter(columns.values())))
        same = kept is not None and len(kept.entries) == length
        index = kept.entries.copy() if kept is not None and same else np.zeros(length, dtype=kind)
        moved = np.full(length, not same)
        for name, digests in columns.items():
            moved |= differing(digests, index[name])
            index[name] = digests
        return index, np.flatnonzero(moved)

    def _pages(
        self,
        name: str,
        arrays: _Arrays,
        content: Callable[[int], bytes | None],
        touched: Rows | None,
    ) -> Digests:
        """Write the file of each array, but those that are known to be in the folder.

        Args:
            name: of the column of the index.
            arrays: one for each file, which nothing but the same content can hold.
            content: of the file of an array, by its place among them; None where there is none.
            touched: places of all arrays that may be others than those in the folder; None for all.

        Returns:
            The digests of the files, of those touched if that is known.
        """
        if touched is None:
            found = page_files.column(name, arrays.all())
        else:
            known = page_files.get(arrays[at] for at in touched.tolist())
            none = bytes(NO_DIGEST.itemsize)
            joined = bytearray().join([digest or none for digest in known])
            found = np.frombuffer(joined, dtype=NO_DIGEST.dtype)
        return self._files(
            name, found, touched, content, lambda at, digest: page_files.put(arrays[at], digest)
        )

    def _files(
        self,
        name: str,
        found: Digests,
        rows: Rows | None,
        content: Callable[[int], bytes | None],
        put: Callable[[int, bytes], object],
    ) -> Digests:
        """Write the files of a column whose digests, as far as they are known, the folder lacks.

        Args:
            name: of the column.
            found: the digests of some rows, as far as they are known; completed here.
            rows: which; None for all.
            content: of the file of a row.
            put: is told the digest of a row that was not known.
        """
        there = self._kept.column(name)
        old = there.digests if rows is None else there.digests[rows]
        new = unknown(found)
        other = np.flatnonzero(differing(found, old) & ~new)
        new[other] = ~there.holds(found[other])
        places = np.flatnonzero(new)
        for start in range(0, len(places), _AT_ONCE):
            made = {}
            for place in places[start : start + _AT_ONCE].tolist():
                row = place if rows is None else int(rows[place])
                written = content(row)
                if written is not None:
                    made[place] = written
                    digest = hashlib.sha256(written).digest()
                    put(row, digest)
                    found[place] = np.frombuffer(digest, dtype=found.dtype)[0]
            for place, held in zip(made, there.holds(found[[*made]]).tolist(), strict=True):
                if not held:
                    self._write(FILES[name](found[place].tobytes()), made[place])
        self._replaced[name] = old, found
        return found

    def gone(self) -> Iterator[str]:
        """The files that the indexes in the folder name and those of the run no longer."""
        named = Kept(indexes=self.indexes)
        for name, (before, now) in self._replaced.items():
            old = before[differing(before, now)]
            old = old[~unknown(old)]
            for digest in as_bytes(old[~named.column(name).holds(old)]):
                yield FILES[name](digest)
        parts = {digest for index in self.indexes.values() for digest in index.parts}
        for index in self._kept.indexes.values():
            yield from map(page_file, index.parts - parts)

    def _write(self, name: str, content: bytes) -> None:
        file = self._path / name
        self._batch.write(file, content)
        self.folders.add(file.parent)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
