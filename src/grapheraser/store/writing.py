"""The files of a run as they are written: what the folder holds already is left as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from grapheraser.errors import StoreError
from grapheraser.graph import Graph
from grapheraser.graph.edge_values import PLAIN
from grapheraser.graph.page_files import (
    GRAPH,
    HEADER,
    features_content,
    index_content,
    index_of,
    topology_content,
    topology_size,
)
from grapheraser.graph.register import Register
from grapheraser.partition import Partition
from grapheraser.receipts import Receipt, Receipts
from grapheraser.store.files import Batch, read_checked
from grapheraser.store.folder import continues
from grapheraser.store.manifest import (
    MANIFEST,
    chain_ends,
    direct_files,
    named_pages,
    read_manifest,
    receipt_file,
)
from grapheraser.store.memo import Memo, MemoOfArrays
from grapheraser.store.pages import (
    SHARDS,
    index_of_register,
    page_file,
    register_content,
    shards_content,
)
from grapheraser.training import ShardWeights

# Of a page: topology files by the leaves in them, features files and those of partitions by their
# block.
page_files = Memo()
shard_files = MemoOfArrays()


@dataclass(frozen=True, eq=False)
class Kept:
    """What a folder holds of a run, and need not be written again.

    Attributes:
        manifest: its bytes.
        names: files that the manifest names itself.
        pages: digests of the files of pages.
        receipts: numbers of receipts; those are the first of the run to be saved.
    """

    manifest: bytes = b""
    names: Set[str] = frozenset()
    pages: Set[bytes] = frozenset()
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
                frozenset(direct_files(path, manifest)),
                named_pages(path, manifest),
                range(1, count + 1),
            )
        except StoreError:
            return cls()

    def intact(self, path: Path, named: Mapping[str, str], receipts: Sequence[Receipt]) -> Kept:
        """What of it can be read, and is what its digest says."""
        ours = Receipts.of(receipts)
        return Kept(
            self.manifest,
            {name for name in self.names if _is_intact(path / name, named[name])},
            {page for page in self.pages if _is_intact(path / page_file(page), page.hex())},
            {
                number
                for number in self.receipts
                if _is_intact(path / receipt_file(number, ours.digest(number)), ours.digest(number))
            },
        )


def shard_digest(weights: ShardWeights) -> str:
    """SHA-256 of the file that holds a shard model."""
    known = shard_files.get(weights, weights.arrays.values())
    if known is not None:
        return known
    digest = _sha256(safetensors.numpy.save(weights.arrays))
    return shard_files.put(weights, weights.arrays.values(), digest)


def aggregator_digest(tensors: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the file that holds what an aggregator learned."""
    return _sha256(_aggregator_content(tensors))


def _aggregator_content(tensors: Mapping[str, NDArray[Any]]) -> bytes:
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    return safetensors.numpy.save(arrays)


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
        pages: digests of all files of pages, new or not.
    """

    def __init__(self, path: Path, batch: Batch, kept: Kept) -> None:
        self._path, self._batch, self._kept = path, batch, kept
        self.folders: set[Path] = set()
        self.pages: set[bytes] = set()

    def graph(self, graph: Graph) -> dict[str, Any]:
        """Write a graph: its pages that are new, and the index."""
        pages, leaves = graph.pages, [page.leaves for page in graph.tree.leaves]
        counts = pages.directory.counts.tolist()
        blocks = [page.features for page in pages.pages]
        shape = (pages.num_features, pages.dense)
        index = index_of(
            pages.directory,
            GRAPH,
            topology=self._pages(leaves, lambda at: topology_content(pages.pages[at], leaves[at])),
            features=self._pages(
                blocks, lambda at: features_content(blocks[at], counts[at], *shape)
            ),
            root=[page.root for page in graph.tree.leaves],
        )
        sizes = zip(pages.pages, counts, strict=True)
        index["topology_bytes"] = [topology_size(page, count) for page, count in sizes]
        index["features_bytes"] = [HEADER + block.nbytes for block in blocks]
        return {
            **self.put("graph-{}.npy", index_content(index)),
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
        counts = directory.counts.tolist()
        blocks = [page.nodes for page in partition.pages.pages]
        shards = self._pages(blocks, lambda at: shards_content(blocks[at], counts[at]))
        return {
            **self.put(
                "partition-{}.npy", index_content(index_of(directory, SHARDS, shards=shards))
            ),
            "num_shards": partition.num_shards,
            "method": partition.method,
            "capacity": partition.capacity,
            "inputs": sorted(partition.inputs),
            "seed": partition.seed,
        }

    def register(self, register: Register) -> dict[str, Any]:
        """Write a register: its pages that are new, and the index."""
        there = [page for page in register.pages if len(page.entries)]
        entries = self._pages(
            [page.entries for page in there], lambda at: register_content(there[at])
        )
        content = index_content(index_of_register(register, entries))
        return {**self.put("register-{}.npy", content), "key": register.key.hex()}

    def shard(self, weights: ShardWeights) -> dict[str, str]:
        """Write a shard model, unless it is known to be in the folder."""
        digest = shard_files.get(weights, weights.arrays.values())
        pattern = "shards/{}.safetensors"
        if digest is not None and (name := pattern.format(digest[:20])) in self._kept.names:
            return {"file": name, "sha256": digest}
        entry = self.put(pattern, safetensors.numpy.save(weights.arrays))
        shard_files.put(weights, weights.arrays.values(), entry["sha256"])
        return entry

    def aggregator(self, tensors: Mapping[str, NDArray[Any]]) -> dict[str, str]:
        """Write what an aggregator holds."""
        return self.put("aggregator-{}.safetensors", _aggregator_content(tensors))

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

    def _pages(
        self, arrays: Sequence[NDArray[np.uint8]], content: Callable[[int], bytes]
    ) -> list[bytes]:
        """Write the file of each array, but those that are known to be in the folder.

        Args:
            arrays: one for each file, which nothing but the same content can hold.
            content: of the file of an array, by its place among them.

        Returns:
            The digests of the files.
        """
        known = page_files.get(arrays)
        found = [digest or b"" for digest in known]
        if missing := set(found) - self._kept.pages:
            for at in (at for at, digest in enumerate(found) if digest in missing):
                written = content(at)
                found[at] = page_files.put(arrays[at], hashlib.sha256(written).digest())
                if found[at] not in self._kept.pages:
                    self._write(page_file(found[at]), written)
        self.pages.update(found)
        return found

    def _write(self, name: str, content: bytes) -> None:
        file = self._path / name
        self._batch.write(file, content)
        self.folders.add(file.parent)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
