"""The files of a run as they are read: every byte checked, and all that is indexed by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from grapheraser.engines import ShardWeights
from grapheraser.errors import CorruptRunError
from grapheraser.graph import Graph
from grapheraser.graph.arrays import read_only
from grapheraser.graph.edge_values import EdgeKind
from grapheraser.graph.pages.files import (
    GRAPH,
    HEADER,
    Content,
    as_bytes,
    directory_of,
    read_page,
)
from grapheraser.graph.pages.packing import Page
from grapheraser.graph.pages.pages import Pages
from grapheraser.graph.pages.stored import restored
from grapheraser.graph.pages.structure import check_nodes
from grapheraser.graph.proof.merkle import KeptLeaves
from grapheraser.graph.proof.register import ENTRY, Register, RegisterPage
from grapheraser.graph.roles import SHARDED_ROLES
from grapheraser.partition import Partition
from grapheraser.receipts.register import KEY_SIZE
from grapheraser.store import spool
from grapheraser.store.digests import shard_files
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
from grapheraser.store.writing import page_files

Entry = Mapping[str, Any]


def read_graph(path: Path, entry: Entry) -> Graph:
    """The graph of a run, with its Merkle tree."""
    index = read_levels_of(path, entry, GRAPH).entries
    shape = (int(entry["num_features"]), bool(entry["dense"]))
    kind = EdgeKind(**entry.get("edges", {}))
    pages, leaves = _read_pages(path, index, shape, kind.width)
    return restored(Graph, entry, index, pages, leaves, context=str(entry["context"]))


def _read_pages(
    path: Path, index: NDArray[np.void], shape: tuple[int, bool], edge_width: int
) -> tuple[list[Page], list[KeptLeaves]]:
    pages, leaves = [], []
    sizes = [index[name].tolist() for name in ("topology_bytes", "features_bytes")]
    columns = (as_bytes(index[name]) for name in ("topology", "features", "root"))
    rows = zip(*columns, *sizes, index["count"].tolist(), strict=True)
    large = sum(map(sum, sizes)) >= spool.LARGE
    with spool.Spool(path) if large else nullcontext() as place:
        # Puts what was read where it is to stay.
        keep: Callable[[bytes], Content] = bytes if place is None else place.put
        for one, two, root, size, other, count in rows:
            first = keep(read_part(path, page_file(one), one.hex(), size))
            second = keep(read_part(path, page_file(two), two.hex(), other))
            page, own = read_page(first, second, count, shape, edge_width)
            page_files.put(own, one)
            page_files.put(page.features, two)
            pages.append(page)
            leaves.append(KeptLeaves(own, root))
    return pages, leaves


def read_partition(path: Path, entry: Entry) -> Partition:
    """The partition of a run."""
    index = read_levels_of(path, entry, SHARDS).entries
    directory = directory_of(index)
    none = np.zeros(0, dtype=np.uint8)
    pages = []
    for digest, count in zip(as_bytes(index["shards"]), index["count"].tolist(), strict=True):
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
    columns = as_bytes(index["entries"]), as_bytes(index["top"]), index["count"].tolist()
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
    for shard, digest in zip(starts.tolist(), as_bytes(index["weights"]), strict=True):
        tensors = safetensors.numpy.load(read_part(path, model_file(digest), digest.hex()))
        weights = ShardWeights(tensors.pop("columns"), tensors)
        shard_files.put(weights, digest)
        shards[shard] = weights
    seeded = index[seeds != NO_SEED]
    return shards, dict(zip(seeded["start"].tolist(), seeded["seed"].tolist(), strict=True))


def read_aggregator(path: Path, entry: Entry) -> dict[str, NDArray[Any]]:
    """Read what the aggregator of a run holds."""
    return safetensors.numpy.load(read_part(path, entry["file"], entry["sha256"]))


def check_register(key: bytes, pages: Sequence[RegisterPage]) -> None:
    """Raise an error unless these are the pages of a register, in their order."""
    digits = pages[0].digits if pages else 0
    if len(key) != KEY_SIZE or len(pages) != 16**digits:
        raise CorruptRunError("the register has other pages than it should.")
    for number, page in enumerate(pages):
        slots = page.entries["slot"].astype(np.uint64)
        ordered = bool((slots[1:] > slots[:-1]).all())
        if digits and len(slots):
            ends = slots[[0, -1]] >> np.uint64(64 - 4 * digits)
            ordered = ordered and bool((ends == number).all())
        if page.digits != digits or not ordered:
            raise CorruptRunError("the slots of the register are not ascending.")


def check_coverage(graph: Pages, partition: Pages, context: str) -> None:
    """Raise an error unless the partition holds the nodes that a context puts into shards."""
    ids, _, role = graph.nodes()
    if not np.array_equal(ids[np.isin(role, SHARDED_ROLES[context])], partition.nodes()[0]):
        raise CorruptRunError("the nodes of the partition are not those of the graph's shards.")
