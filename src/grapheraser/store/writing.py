"""The files of a run as they are written: what the folder holds already is left as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from grapheraser.errors import StoreError
from grapheraser.graph import Graph
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
    GRAPH,
    HEADER,
    SHARDS,
    features_content,
    index_content,
    index_of,
    page_file,
    shards_content,
    topology_content,
    topology_size,
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
    names: Collection[str] = frozenset()
    pages: Collection[bytes] = frozenset()
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
        pages, tree = graph.pages, graph.tree
        columns: dict[str, list[bytes]] = {"topology": [], "features": [], "root": []}
        sizes = []
        parts = zip(pages.pages, tree.leaves, pages.directory.counts.tolist(), strict=True)
        for page, leaves, count in parts:
            one = self._page(leaves.leaves, partial(topology_content, page, leaves.leaves))
            block = page.features
            content = partial(features_content, block, count, pages.num_features, dense=pages.dense)
            two = self._page(block, content)
            columns["topology"].append(one)
            columns["features"].append(two)
            columns["root"].append(leaves.root)
            sizes.append((topology_size(page, count), HEADER + block.nbytes))
        index = index_of(pages.directory, GRAPH, **columns)
        index["topology_bytes"], index["features_bytes"] = np.array(sizes).reshape(-1, 2).T
        return {
            **self.put("graph-{}.npy", index_content(index)),
            "num_features": pages.num_features,
            "dense": pages.dense,
            "num_classes": graph.num_classes,
            "name": graph.name,
            "notes": list(graph.notes),
        }

    def partition(self, partition: Partition) -> dict[str, Any]:
        """Write a partition: its pages that are new, and the index."""
        pages = partition.pages
        column = [
            self._page(page.nodes, partial(shards_content, page.nodes, count))
            for page, count in zip(pages.pages, pages.directory.counts.tolist(), strict=True)
        ]
        index = index_of(pages.directory, SHARDS, shards=column)
        return {
            **self.put("partition-{}.npy", index_content(index)),
            "num_shards": partition.num_shards,
            "method": partition.method,
            "capacity": partition.capacity,
            "inputs": sorted(partition.inputs),
            "seed": partition.seed,
        }

    def shard(self, weights: ShardWeights) -> dict[str, str]:
        """Write a shard model, unless it is known to be in the folder."""
        arrays = weights.arrays
        digest = shard_files.get(weights, arrays.values())
        pattern = "shards/{}.safetensors"
        if digest is not None and (name := pattern.format(digest[:20])) in self._kept.names:
            return {"file": name, "sha256": digest}
        entry = self.put(pattern, safetensors.numpy.save(arrays))
        shard_files.put(weights, arrays.values(), entry["sha256"])
        return entry

    def aggregator(self, tensors: Mapping[str, NDArray[Any]]) -> dict[str, str]:
        """Write what an aggregator holds."""
        arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
        return self.put("aggregator-{}.safetensors", safetensors.numpy.save(arrays))

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

    def _page(self, array: NDArray[np.uint8], content: Callable[[], bytes]) -> bytes:
        """Write the file that holds an array, unless it is known to be in the folder."""
        digest = page_files.get(array)
        if digest is None or digest not in self._kept.pages:
            written = content()
            digest = page_files.put(array, hashlib.sha256(written).digest())
            if digest not in self._kept.pages:
                self._write(page_file(digest), written)
        self.pages.add(digest)
        return digest

    def _write(self, name: str, content: bytes) -> None:
        file = self._path / name
        self._batch.write(file, content)
        self.folders.add(file.parent)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
