"""The files of a run as they are written: what the folder holds already is left as it is."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
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
    ENTRY,
    HEADER,
    features_content,
    index_content,
    page_file,
    topology_content,
    topology_size,
)
from grapheraser.training import ShardWeights

# Topology files by the leaves in them, features files by their block.
topologies, features = Memo(), Memo()
shard_files, partition_files = MemoOfArrays(), MemoOfArrays()


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
        directory = pages.directory
        counts = directory.counts.tolist()
        index = np.zeros(len(counts), dtype=ENTRY)
        index["start"], index["size"], index["count"] = (
            directory.starts,
            directory.sizes,
            directory.counts,
        )
        of_topology, of_features, sizes = [], [], []
        for page, leaves, count in zip(pages.pages, tree.leaves, counts, strict=True):
            digest = topologies.get(leaves.leaves)
            if digest is None or digest not in self._kept.pages:
                content = topology_content(page, leaves.leaves)
                digest = topologies.put(leaves.leaves, self._page(content))
            of_topology.append(digest)
            digest = features.get(page.features)
            if digest is None or digest not in self._kept.pages:
                content = features_content(
                    page.features, count, pages.num_features, dense=pages.dense
                )
                digest = features.put(page.features, self._page(content))
            of_features.append(digest)
            sizes.append((topology_size(page, count), HEADER + page.features.nbytes))
        index["topology_bytes"], index["features_bytes"] = np.array(sizes).reshape(-1, 2).T
        roots = [leaves.root for leaves in tree.leaves]
        columns = {"topology": of_topology, "features": of_features, "root": roots}
        for name, column in columns.items():
            index[name] = np.frombuffer(b"".join(column), dtype="V32")
        self.pages = {*of_topology, *of_features}
        return {
            **self.put("graph-{}.npy", index_content(index)),
            "num_features": pages.num_features,
            "dense": pages.dense,
            "num_classes": graph.num_classes,
            "name": graph.name,
            "notes": list(graph.notes),
        }

    def partition(self, partition: Partition) -> dict[str, Any]:
        """Write a partition."""
        arrays: dict[str, NDArray[Any]] = {"nodes": partition.nodes, "labels": partition.labels}
        return {
            **self._remembered(
                partition_files, partition, arrays, "partition-{}.npz", lambda: _npz(arrays)
            ),
            "num_shards": partition.num_shards,
            "method": partition.method,
            "capacity": partition.capacity,
            "inputs": sorted(partition.inputs),
            "seed": partition.seed,
        }

    def shard(self, weights: ShardWeights) -> dict[str, str]:
        """Write a shard model."""
        arrays = weights.arrays
        return self._remembered(
            shard_files,
            weights,
            arrays,
            "shards/{}.safetensors",
            lambda: safetensors.numpy.save(arrays),
        )

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

    def _remembered(
        self,
        memo: MemoOfArrays,
        value: object,
        arrays: Mapping[str, NDArray[Any]],
        pattern: str,
        content: Callable[[], bytes],
    ) -> dict[str, str]:
        """The same for a value whose file may be known."""
        digest = memo.get(value, arrays.values())
        if digest is not None and (name := pattern.format(digest[:20])) in self._kept.names:
            return {"file": name, "sha256": digest}
        entry = self.put(pattern, content())
        memo.put(value, arrays.values(), entry["sha256"])
        return entry

    def _page(self, content: bytes) -> bytes:
        digest = hashlib.sha256(content).digest()
        if digest not in self._kept.pages:
            self._write(page_file(digest), content)
        return digest

    def _write(self, name: str, content: bytes) -> None:
        file = self._path / name
        self._batch.write(file, content)
        self.folders.add(file.parent)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _npz(arrays: dict[str, NDArray[Any]]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()
