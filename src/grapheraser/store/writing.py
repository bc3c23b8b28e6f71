"""The files of a run as they are written: what the folder holds already is left as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines import ShardModels, ShardWeights
from grapheraser.errors import StoreError
from grapheraser.graph import Graph
from grapheraser.graph.pages.directory import Directory
from grapheraser.graph.pages.files import (
    GRAPH,
    HEADER,
    as_bytes,
    features_content,
    index_content,
    topology_content,
    topology_size,
)
from grapheraser.graph.pages.pages import Lineage
from grapheraser.graph.proof.register import Register
from grapheraser.partition import Partition
from grapheraser.receipts import Receipt, Receipts
from grapheraser.store.digests import (
    NO_DIGEST,
    Column,
    Digests,
    Memo,
    contiguous,
    differing,
    file_content,
    shard_files,
    unknown,
)
from grapheraser.store.files import MAX_FILE, Batch, read_checked
from grapheraser.store.folder import continues
from grapheraser.store.graphs import schema_of
from grapheraser.store.indexes import MAX_INDEX, Index, divided
from grapheraser.store.manifest import (
    MANIFEST,
    chain_ends,
    direct_files,
    last_indexes,
    read_manifest,
    receipt_file,
)
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
from grapheraser.untrusted import MAX_JSON, read_plain

Rows: TypeAlias = NDArray[np.int64]

# Of a page: topology files by the leaves in them, features files and those of partitions by their
# block.
page_files = Memo()
_AT_ONCE = 64  # files whose content is held


@dataclass(frozen=True, eq=False)
class StoredFiles:
    """The files of a run that a folder holds, and that need not be written again."""

    manifest: bytes = b""  # its bytes
    names: Set[str] = frozenset()  # files that the manifest names itself
    # Of its pages and shard models, by part.
    indexes: Mapping[str, Index] = field(default_factory=dict)
    # Numbers of receipts; those are the first of the run to be saved.
    receipts: Collection[int] = range(0)

    @classmethod
    def by_manifest(cls, path: Path, receipts: Sequence[Receipt]) -> StoredFiles:
        """Read what the manifest of a folder names; nothing where its run has other receipts."""
        try:
            manifest = read_manifest(path)
            if not continues(path, manifest, receipts):
                return cls()
            count, _ = chain_ends(path, manifest)
            return cls(
                read_plain(path / MANIFEST, MAX_JSON) or b"",
                frozenset(direct_files(manifest)),
                last_indexes(path, manifest),
                range(1, count + 1),
            )
        except StoreError:
            return cls()

    def column(self, name: str) -> Column:
        """The digests of all files of one kind."""
        for index in self.indexes.values():
            if name in (index.entries.dtype.names or ()):
                return index.column(name)
        return Column(np.zeros(0, dtype=NO_DIGEST.dtype))

    def intact(
        self, path: Path, named: Mapping[str, str], receipts: Sequence[Receipt]
    ) -> StoredFiles:
        """Return those that can be read, and are what their digests say."""
        ours = Receipts.of(receipts)
        return StoredFiles(
            self.manifest,
            {name for name in self.names if _is_intact(path / name, named[name])},
            {part: _intact_index(path, index) for part, index in self.indexes.items()},
            {
                number
                for number in self.receipts
                if _is_intact(path / receipt_file(number, ours.digest(number)), ours.digest(number))
            },
        )


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

    def __init__(self, path: Path, batch: Batch, kept: StoredFiles) -> None:
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
        index, rows = self._aligned("graph", GRAPH, found, touched, pages.directory)
        for at in rows.tolist():
            index["topology_bytes"][at] = topology_size(pages.pages[at], int(counts[at]))
            index["features_bytes"][at] = HEADER + pages.pages[at].features.nbytes
            index["root"][at] = np.frombuffer(tree[at].root, dtype="V32")[0]
        return {
            **self._put_index("graph", index, pages.lineage, touched),
            **schema_of(graph),
            "context": graph.context,
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
        columns = {"shards": found}
        index, _ = self._aligned("partition", SHARDS, columns, touched, pages.directory)
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
        return self.put("aggregator-{}.safetensors", file_content(contiguous(tensors)))

    def receipts(self, receipts: Sequence[Receipt]) -> dict[str, Any]:
        """Write the receipts that are new."""
        ours = Receipts.of(receipts)
        kept = self._kept.receipts  # all of the first, or those that are intact
        for number in range(1 + len(kept) * isinstance(kept, range), len(ours) + 1):
            if number not in kept:
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

    def _aligned(
        self,
        part: str,
        kind: np.dtype[np.void],
        columns: Mapping[str, Digests],
        touched: Rows | None,
        directory: Directory | None = None,
    ) -> tuple[NDArray[np.void], Rows]:
        """An index with these digests, and the rows whose other fields are not those kept."""
        kept, rows = self._kept.indexes.get(part), touched
        if kept is not None and rows is not None:
            index = kept.entries.copy()
            for name, digests in columns.items():
                index[name][rows] = digests
        else:
            length = len(next(iter(columns.values())))
            same = kept is not None and len(kept.entries) == length
            index = kept.entries.copy() if kept is not None and same else np.zeros(length, kind)
            moved = np.full(length, not same)
            for name, digests in columns.items():
                moved |= differing(digests, index[name])
                index[name] = digests
            rows = np.flatnonzero(moved)
        if directory is not None:
            index["start"], index["size"] = directory.starts, directory.sizes
            index["count"] = directory.counts
        return index, rows

    def _pages(
        self,
        name: str,
        arrays: _Arrays,
        content: Callable[[int], bytes | None],
        touched: Rows | None,
    ) -> Digests:
        """Write the file of each array, but those that are known to be in the folder.

        Nothing but the same content can hold one of the arrays. ``content`` makes the file of an
        array, by its place; ``touched`` are places of all arrays that may be others than those in
        the folder (None: all). Returns the digests of the files, of those touched if that is known.
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

        ``found`` are the digests of some rows (None: all) as far as they are known, and is
        completed here; ``put`` is told those that were not.
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
        named = StoredFiles(indexes=self.indexes)
        for name, (before, now) in self._replaced.items():
            old = before[differing(before, now)]
            old = old[~unknown(old)]
            for digest in as_bytes(old[~named.column(name).holds(old)]):
                yield FILES[name](digest)
        parts = {digest for index in self.indexes.values() for digest in index.parts}
        for index in self._kept.indexes.values():
            yield from map(page_file, index.parts - parts)

    def _write(self, name: str, content: bytes) -> None:
        file, limit = self._path / name, MAX_INDEX if name.endswith(".npy") else MAX_FILE
        if len(content) > limit:
            raise StoreError(f"{name} would have {len(content):,} bytes; {limit:,} can be read.")
        self._batch.write(file, content)
        self.folders.add(file.parent)


def partition_digest(partition: Partition) -> str:
    """SHA-256 over the digests of the files of a partition's pages."""
    pages, counts = partition.pages.pages, partition.pages.directory.counts
    blocks = [page.nodes for page in pages]
    found = page_files.column("shards", blocks)
    for at in np.flatnonzero(unknown(found)).tolist():
        digest = hashlib.sha256(shards_content(blocks[at], int(counts[at]))).digest()
        found[at] = np.frombuffer(page_files.put(blocks[at], digest), dtype=found.dtype)[0]
    return _sha256(found.tobytes())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
