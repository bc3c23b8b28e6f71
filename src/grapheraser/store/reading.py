"""The files of a run as they are read: every byte checked, and all that is indexed by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from grapheraser.errors import CorruptRunError
from grapheraser.graph import Graph
from grapheraser.graph.arrays import read_only
from grapheraser.graph.edge_values import EdgeKind
from grapheraser.graph.merkle import KeptLeaves, MerkleTree
from grapheraser.graph.packing import Page
from grapheraser.graph.page_files import (
    GRAPH,
    HEADER,
    Content,
    digests,
    directory_of,
    read_features,
    read_topology,
)
from grapheraser.graph.pages import Pages
from grapheraser.graph.register import ENTRY, Register, RegisterPage
from grapheraser.graph.structure import check_nodes, check_structure
from grapheraser.partition import Partition
from grapheraser.store import spool
from grapheraser.store.manifest import read_levels_of, read_part
from grapheraser.store.pages import (
    MODELS,
    NO_SEED,
    SHARDS,
    SLOTS,
    model_file,
    page_file,
    read_shards_of,
    read_slots,
)
from grapheraser.store.structure import check_register
from grapheraser.store.writing import page_files, shard_files
from grapheraser.training import ShardWeights

Entry = Mapping[str, Any]


def read_graph(path: Path, entry: Entry) -> Graph:
    """The graph of a run, with its Merkle tree."""
    index = read_levels_of(path, entry, GRAPH).entries
    shape = (int(entry["num_features"]), bool(entry["dense"]))
    kind = EdgeKind(**entry.get("edges", {}))
    pages, leaves = _read_pages(path, index, shape, kind.width)
    directory = directory_of(index)
    entries = sum(page.edges.nbytes // 8 for page in pages)
    entries -= int(directory.counts.sum()) + len(pages)
    made = Pages.made(directory, pages, *shape, entries, kind)
    num_classes = int(entry["num_classes"])
    check_structure(made, num_classes)
    return Graph.of_pages(
        made,
        num_classes,
        name=str(entry["name"]),
        notes=tuple(map(str, entry["notes"])),
        context=str(entry["context"]),
        class_names=tuple(map(str, entry.get("class_names", ()))),
        tree=MerkleTree.restored(made, leaves),
    )


def _read_pages(
    path: Path, index: NDArray[np.void], shape: tuple[int, bool], edge_width: int
) -> tuple[list[Page], list[KeptLeaves]]:
    large = int(index["topology_bytes"].sum() + index["features_bytes"].sum()) >= spool.LARGE
    with spool.Spool(path) if large else nullcontext() as place:
        keep: Callable[[bytes], Content] = bytes if place is None else place.put
        return _kept_pages(path, index, shape, edge_width, keep)


def _kept_pages(
    path: Path,
    index: NDArray[np.void],
    shape: tuple[int, bool],
    edge_width: int,
    keep: Callable[[bytes], Content],
) -> tuple[list[Page], list[KeptLeaves]]:
    """Pages and leaves; ``keep`` puts what was read where it is to stay."""
    pages, leaves = [], []
    columns = (
        digests(index, "topology"),
        digests(index, "features"),
        digests(index, "root"),
        index["topology_bytes"].tolist(),
        index["features_bytes"].tolist(),
        index["count"].tolist(),
    )
    for one, two, root, size, other, count in zip(*columns, strict=True):
        topology = read_topology(keep(read_part(path, page_file(one), one.hex(), size)))
        block, *rest = read_features(keep(read_part(path, page_file(two), two.hex(), other)))
        fits = len(topology.leaves) == count and rest == [count, *shape]
        if not fits or len(topology.values) != 4 * edge_width * topology.num_entries:
            raise CorruptRunError(f"{path}: the index and the pages of the graph don't fit.")
        page_files.put(topology.leaves, one)
        page_files.put(block, two)
        pages.append(Page(topology.nodes, topology.edges, block, topology.values, topology.names))
        leaves.append(KeptLeaves(topology.leaves, root))
    return pages, leaves


def read_partition(path: Path, entry: Entry) -> Partition:
    """The partition of a run."""
    index = read_levels_of(path, entry, SHARDS).entries
    directory = directory_of(index)
    none = np.zeros(0, dtype=np.uint8)
    pages = []
    for digest, count in zip(digests(index, "shards"), index["count"].tolist(), strict=True):
        block = read_shards_of(
            read_part(path, page_file(digest), digest.hex(), HEADER + 13 * count)
        )
        page_files.put(block, digest)
        pages.append(Page(block, _no_edges(count), none))
    made = Pages.made(directory, pages, 0, True, 0)
    num_shards = int(entry["num_shards"])
    check_nodes(made, num_shards, "partition")
    return Partition.of_pages(
        made,
        num_shards=num_shards,
        method=entry["method"],
        capacity=entry["capacity"],
        inputs=frozenset(entry["inputs"]),
        seed=entry["seed"],
    )


@cache
def _no_edges(count: int) -> NDArray[np.uint8]:
    """The edges of so many nodes that have none."""
    return read_only(np.zeros(8 * (count + 1), dtype=np.uint8))


def read_register(path: Path, entry: Entry) -> Register:
    """The register of a run."""
    index = read_levels_of(path, entry, SLOTS).entries
    if not np.array_equal(index["start"], np.arange(len(index))):
        raise CorruptRunError(f"{path}: not the index of a register.")
    columns = digests(index, "entries"), digests(index, "top"), index["count"].tolist()
    digits, pages = (len(index).bit_length() - 1) // 4, []
    for digest, top, count in zip(*columns, strict=True):
        if not count:
            pages.append(RegisterPage(np.zeros(0, dtype=ENTRY), digits))
            continue
        size = HEADER + ENTRY.itemsize * count
        entries, shared = read_slots(read_part(path, page_file(digest), digest.hex(), size))
        page = RegisterPage(entries, shared, top)
        page_files.put(page.entries, digest)
        pages.append(page)
    key = bytes.fromhex(entry["key"])
    check_register(key, pages)
    return Register.restored(key, pages)


def read_shards(path: Path, entry: Entry) -> tuple[dict[int, ShardWeights], dict[int, int]]:
    """The shard models of a run, and the seeds of those that were seeded afresh, by id."""
    index = read_levels_of(path, entry, MODELS).entries
    starts, seeds = index["start"], index["seed"]
    if (starts < 0).any() or (np.diff(starts) <= 0).any() or (seeds < NO_SEED).any():
        raise CorruptRunError(f"{path}: not the index of the shards of a run.")
    shards = {}
    for shard, digest in zip(starts.tolist(), digests(index, "weights"), strict=True):
        tensors = safetensors.numpy.load(read_part(path, model_file(digest), digest.hex()))
        weights = ShardWeights(tensors.pop("columns"), tensors)
        shard_files.put(weights, digest)
        shards[shard] = weights
    seeded = index[seeds != NO_SEED]
    return shards, dict(zip(seeded["start"].tolist(), seeded["seed"].tolist(), strict=True))


def read_aggregator(path: Path, entry: Entry) -> dict[str, NDArray[Any]]:
    """What the aggregator of a run holds."""
    return safetensors.numpy.load(_read(path, entry))


def _read(path: Path, entry: Entry) -> bytes:
    return read_part(path, entry["file"], entry["sha256"])
