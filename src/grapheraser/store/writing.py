"""The files of a run as they are written: what the folder holds already is left as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import StoreError
from grapheraser.graph import Graph
from grapheraser.graph.directory import Directory
from grapheraser.graph.edge_values import PLAIN
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
from grapheraser.store.digests import NO_DIGEST, Digests, among, as_bytes, differing, unknown
from grapheraser.store.files import Batch, read_checked
from grapheraser.store.folder import continues
from grapheraser.store.indexes import Index, divided
from grapheraser.store.manifest import (
    MANIFEST,
    chain_ends,
    direct_files,
    last_indexes,
    read_manifest,
    receipt_file,
)
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
from grapheraser.training import ShardWeights

# Of a page: topology files by the leaves in them, features files and those of partitions by their
# block.
page_files = Memo()
shard_files = MemoOfWeights()


@dataclass(frozen=True, eq=False)
class Kept:
    """What a folder holds of a run, and need not be written again.

    Attributes:
        manifest: its bytes.
        names: files that the manifest names itself.
        indexes: of its pages and shard models, by part.
        receipts: numbers of receipts; those are the first of the run to be saved.
    """

    manifest: bytes = b""
    names: Set[str] = frozenset()
    indexes: Mapping[str, Index] = field(default_factory=dict)
    receipts: Collection[int] = range(0)

    @classmethod
    def by_manifest(cls, path: Path, receipts: Sequence[Receipt]) -> Kept:
        """What the manifest of a folder names; nothing where it is of a run with other receipts."""
        try:
            manifest = read_manifest(path)
            if not continues(path, manifest, receipts):
                return cls()
            count, _ = chain_ends(path, manifest)
            return cls(
                (path / MANIFEST).read_bytes(),
                frozenset(direct_files(manifest)),
                last_indexes(path, manifest),
                range(1, count + 1),
            )
        except StoreError:
            return cls()

    def column(self, name: str) -> Digests:
        """The digests of all files of one kind."""
        for index in self.indexes.values():
            if name in (index.entries.dtype.names or ()):
                return index.entries[name]
        return np.zeros(0, dtype=NO_DIGEST.dtype)

    def intact(self, path: Path, named: Mapping[str, str], receipts: Sequence[Receipt]) -> Kept:
        """What of it can be read, and is what its digest says."""
        ours = Receipts.of(receipts)
        return Kept(
            self.manifest,
            {name for name in self.names if _is_intact(path / name, named[name])},
            {part: _intact_index(path, index) for part, index in self.indexes.items()},
            {
                number
                for number in self.receipts
                if _is_intact(path / receipt_file(number, ours.digest(number)), ours.digest(number))
            },
        )


def shard_digest(weights: ShardWeights) -> str:
    """SHA-256 of the file that holds a shard model."""
    known = shard_files.get(weights)
    if known is not None:
        return known.hex()
    return shard_files.put(weights, bytes.fromhex(file_digest(weights.arrays))).hex()


def aggregator_digest(tensors: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the file that holds what an aggregator learned."""
    return file_digest(_contiguous(tensors))


def _contiguous(tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: np.ascontiguousarray(array) for name, array in tensors.items()}


def _intact_index(path: Path, index: Index) -> Index:
    """An index without the digests of files that are not what these say."""
    entries = index.entries
    for name in (name for name in FILES if name in (entries.dtype.names or ())):
        entries = _intact_column(path, entries, name, FILES[name])
    links = tuple(_intact_column(path, level, "part", page_file) for level in index.links)
    return Index(entries, links)


def _intact_column(
    path: Path, entries: NDArray[np.void], name: str, file_of: Callable[[bytes], str]
) -> NDArray[np.void]:
    left = entries.copy()
    for row, digest in enumerate(as_bytes(entries[name])):
        if not _is_intact(path / file_of(digest), digest.hex()):
            left[name][row] = NO_DIGEST
    return left


def _is_intact(file: Path, sha256: str) -> bool:
    try:
        read_checked(file, sha256)
    except StoreError:
        return False
    return True


class Writer:
    """Writes the parts of a run that a folder does not hold yet.

    Attributes:
        folders: those that got a new file.
        columns: digests of all files that indexes name, new or not, by kind.
        indexes: of the run, by part.
    """

    def __init__(self, path: Path, batch: Batch, kept: Kept) -> None:
        self._path, self._batch, self._kept = path, batch, kept
        self.folders: set[Path] = set()
        self.columns: dict[str, Digests] = {}
        self.indexes: dict[str, Index] = {}

    def graph(self, graph: Graph) -> dict[str, Any]:
        """Write a graph: its pages that are new, and the index."""
        pages, tree = graph.pages, graph.tree.leaves
        leaves, blocks = [page.leaves for page in tree], [page.features for page in pages.pages]
        counts, shape = pages.directory.counts, (pages.num_features, pages.dense)
        found = {
            "topology": self._pages(
                "topology", leaves, lambda at: topology_content(pages.pages[at], leaves[at])
            ),
            "features": self._pages(
                "features", blocks, lambda at: features_content(blocks[at], int(counts[at]), *shape)
            ),
        }
        index, rows = self._index("graph", GRAPH, pages.directory, found)
        for at in rows.tolist():
            index["topology_bytes"][at] = topology_size(pages.pages[at], int(counts[at]))
            index["features_bytes"][at] = HEADER + blocks[at].nbytes
            index["root"][at] = np.frombuffer(tree[at].root, dtype="V32")[0]
        return {
            **self._put_index("graph", index),
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
        directory = partition.pages.directory
        counts = directory.counts
        blocks = [page.nodes for page in partition.pages.pages]
        found = self._pages(
            "shards", blocks, lambda at: shards_content(blocks[at], int(counts[at]))
        )
        index, _ = self._index("partition", SHARDS, directory, {"shards": found})
        return {
            **self._put_index("partition", index),
            "num_shards": partition.num_shards,
            "method": partition.method,
            "capacity": partition.capacity,
            "inputs": sorted(partition.inputs),
            "seed": partition.seed,
        }

    def register(self, register: Register) -> dict[str, Any]:
        """Write a register: its pages that are new, and the index."""
        pages = register.pages
        entries = [page.entries for page in pages]
        found = self._pages("entries", entries, lambda at: register_content(pages[at]))
        index, rows = self._aligned("register", SLOTS, {"entries": found})
        index["start"] = np.arange(len(index))
        for at in rows.tolist():
            index["count"][at], top = len(entries[at]), pages[at].top
            index["top"][at] = NO_DIGEST if top is None else np.frombuffer(top, dtype="V32")[0]
        return {**self._put_index("register", index), "key": register.key.hex()}

    def shards(
        self, shards: Mapping[int, ShardWeights], seeds: Mapping[int, int]
    ) -> dict[str, str]:
        """Write shard models: those that are new, and the index."""
        numbers = sorted(shards)
        models = [shards[number] for number in numbers]
        found = self._files(
            "weights",
            shard_files.column(models),
            lambda at: file_content(models[at].arrays),
            lambda at, digest: shard_files.put(models[at], digest),
        )
        index = np.zeros(len(numbers), dtype=MODELS)
        index["start"], index["seed"], index["weights"] = numbers, NO_SEED, found
        own = np.searchsorted(index["start"], sorted(seeds))
        index["seed"][own] = [seeds[number] for number in sorted(seeds)]
        return self._put_index("shards", index)

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

    def _put_index(self, part: str, entries: NDArray[np.void]) -> dict[str, str]:
        """Write the parts of an index that are new, and its top."""
        index, fresh = divided(entries, self._kept.indexes.get(part))
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
    ) -> tuple[NDArray[np.void], NDArray[np.int64]]:
        """An index with the blocks of a directory; see `_aligned`."""
        index, rows = self._aligned(part, kind, columns)
        index["start"], index["size"] = directory.starts, directory.sizes
        index["count"] = directory.counts
        return index, rows

    def _aligned(
        self, part: str, kind: np.dtype[np.void], columns: Mapping[str, Digests]
    ) -> tuple[NDArray[np.void], NDArray[np.int64]]:
        """An index with these digests, and the rows whose other fields are not those kept."""
        length = len(next(iter(columns.values())))
        kept = self._kept.indexes.get(part)
        same = kept is not None and len(kept.entries) == length
        index = kept.entries.copy() if kept is not None and same else np.zeros(length, dtype=kind)
        moved = np.full(length, not same)
        for name, digests in columns.items():
            moved |= differing(digests, index[name])
            index[name] = digests
        return index, np.flatnonzero(moved)

    def _pages(
        self, name: str, arrays: Sequence[NDArray[Any]], content: Callable[[int], bytes]
    ) -> Digests:
        """Write the file of each array, but those that are known to be in the folder.

        Args:
            name: of the column of the index.
            arrays: one for each file, which nothing but the same content can hold; one that is
                empty has no file.
            content: of the file of an array, by its place among them.

        Returns:
            The digests of the files.
        """
        return self._files(
            name,
            page_files.column(name, arrays),
            lambda at: content(at) if len(arrays[at]) else None,
            lambda at, digest: page_files.put(arrays[at], digest),
        )

    def _files(
        self,
        name: str,
        found: Digests,
        content: Callable[[int], bytes | None],
        put: Callable[[int, bytes], object],
    ) -> Digests:
        """Write the files of a column whose digests, as far as they are known, the folder lacks."""
        there = self._kept.column(name)
        rows = np.flatnonzero(differing(found, there) | unknown(found))
        held = among(found[rows], there) & ~unknown(found[rows])
        for at in rows[~held].tolist():
            written = content(at)
            if written is None:
                continue
            digest = hashlib.sha256(written).digest()
            put(at, digest)
            found[at] = np.frombuffer(digest, dtype=found.dtype)[0]
            if not among(found[at : at + 1], there)[0]:
                self._write(FILES[name](digest), written)
        self.columns[name] = found
        return found

    def gone(self) -> Iterator[str]:
        """The files that the indexes in the folder name and those of the run no longer."""
        for name, digests in self.columns.items():
            before = self._kept.column(name)
            old = before[differing(before, digests)]
            old = old[~unknown(old)]
            for digest in as_bytes(old[~among(old, digests)]):
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
