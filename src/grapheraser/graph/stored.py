"""A graph store: a folder with the pages of a graph, read where they lie on the disk.

    graph.json                the manifest: what the graph is called, its schema, files, digests
    index-<digest>.npy        an entry of `STORED` for each page, in the order of the ids
    packs/00000.pack          pages one after the other; see `graph.page_files`

Packs are mapped into memory: the system reads what is touched, and takes the memory back when it
needs it. `store.graphs` writes such folders.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import CorruptRunError, GraphError
from grapheraser.graph.edge_values import EdgeKind
from grapheraser.graph.merkle import KeptLeaves, MerkleTree
from grapheraser.graph.packing import Page
from grapheraser.graph.page_files import (
    GRAPH,
    digests,
    directory_of,
    read_features,
    read_index,
    read_topology,
)
from grapheraser.graph.pages import Pages
from grapheraser.graph.structure import check_structure
from grapheraser.progress import progress

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

MANIFEST, PARTIAL = "graph.json", "import.partial"
FORMAT, VERSION = "grapheraser-graph", 1
# Where a page lies: the number of its pack, and where its two parts begin there.
STORED = np.dtype([*GRAPH.descr, ("pack", "<i8"), ("topology_at", "<i8"), ("features_at", "<i8")])
ALIGNED = 64  # parts begin at multiples of this many bytes
_FIELDS: dict[str, type] = {
    "name": str,
    "notes": list,
    "num_features": int,
    "dense": bool,
    "num_classes": int,
    "class_names": list,
    "edges": dict,
    "packs": list,
    "index": dict,
}


def is_stored(folder: Path) -> bool:
    """Whether a folder is a graph store, or is to become one."""
    return folder.is_dir() and any((folder / name).exists() for name in (MANIFEST, PARTIAL))


def pack_file(number: int) -> str:
    """The name of a pack."""
    return f"packs/{number:05}.pack"


def open_graph(make: type[Graph], folder: Path) -> Graph:
    """The graph of a graph store; see `Graph.open`."""
    manifest = read_manifest(folder)
    try:
        pages, leaves = _mapped(folder, manifest)
        check_structure(pages, manifest["num_classes"])
    except CorruptRunError as error:
        where = "" if str(folder) in error.message else f"{folder}: "
        raise CorruptRunError(f"{where}{error.message}", hint=_AGAIN) from error
    return make.of_pages(
        pages,
        manifest["num_classes"],
        name=manifest["name"],
        notes=tuple(manifest["notes"]),
        class_names=tuple(manifest["class_names"]),
        tree=MerkleTree.restored(pages, leaves),
    )


_AGAIN = "import it again: grapheraser import SOURCE --out FOLDER --replace."


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a graph store."""
    file = folder / MANIFEST
    if not file.exists():
        if (folder / PARTIAL).exists():
            raise GraphError(
                f"{folder}: its import has not finished.",
                hint="run the same `grapheraser import` again: it goes on where it stopped.",
            )
        raise GraphError(
            f"{folder}: there is no graph here ({MANIFEST} is missing).",
            hint="grapheraser import SOURCE --out FOLDER makes one.",
        )
    try:
        manifest = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptRunError(f"{file}: not readable ({error}).", hint=_AGAIN) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CorruptRunError(f"{file}: not the manifest of a graph store.", hint=_AGAIN)
    if manifest.get("version") != VERSION:
        raise CorruptRunError(
            f"{folder}: written in version {manifest.get('version')} of the format; this is "
            f"version {VERSION}.",
            hint=_AGAIN,
        )
    wrong = [name for name, kind in _FIELDS.items() if not isinstance(manifest.get(name), kind)]
    if wrong:
        raise CorruptRunError(f"{file}: '{wrong[0]}' is missing or malformed.", hint=_AGAIN)
    return manifest


def _mapped(folder: Path, manifest: Mapping[str, Any]) -> tuple[Pages, list[KeptLeaves]]:
    """The pages of a graph store and their leaves, every byte checked against its digest."""
    index = _read_index(folder, manifest["index"])
    shape = (int(manifest["num_features"]), bool(manifest["dense"]))
    try:
        kind = EdgeKind(**manifest["edges"])
        sizes = [int(size) for size in manifest["packs"]]
    except (TypeError, ValueError) as error:
        raise CorruptRunError(f"{folder / MANIFEST}: malformed ({error}).") from error
    pages: list[Page] = []
    leaves: list[KeptLeaves] = []
    with progress("checking", len(sizes)) as tick:
        for number, size in enumerate(sizes):
            here = index[index["pack"] == number]
            _read_pack(folder / pack_file(number), size, here, (*shape, kind.width), pages, leaves)
            tick()
    if len(pages) != len(index):
        raise CorruptRunError(f"{folder}: the index names packs that there are not.")
    entries = sum(page.edges.nbytes // 8 for page in pages)
    entries -= int(index["count"].sum()) + len(pages)
    return Pages.made(directory_of(index), pages, *shape, entries, kind), leaves


def _read_index(folder: Path, entry: Mapping[str, Any]) -> NDArray[np.void]:
    file = folder / Path(str(entry.get("file"))).name
    try:
        content = file.read_bytes()
    except OSError as error:
        raise CorruptRunError(f"{file}: can't be read ({error.strerror}).") from error
    if hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        raise CorruptRunError(f"{file}: truncated or altered since it was written.")
    return read_index(content, STORED)


def _read_pack(
    file: Path,
    size: int,
    index: NDArray[np.void],
    shape: tuple[int, bool, int],
    pages: list[Page],
    leaves: list[KeptLeaves],
) -> None:
    """Add the pages of a pack, as views of it."""
    content = _view(file, size)
    *columns, edge_width = shape
    parts = (
        *(index[name].tolist() for name in ("topology_at", "topology_bytes")),
        *(index[name].tolist() for name in ("features_at", "features_bytes", "count")),
        *(digests(index, name) for name in ("topology", "features", "root")),
    )
    for at, length, other, width, count, one, two, root in zip(*parts, strict=True):
        first, second = content[at : at + length], content[other : other + width]
        for part, digest, named in ((first, one, length), (second, two, width)):
            if len(part) != named or hashlib.sha256(part).digest() != digest:
                raise CorruptRunError(f"{file}: truncated or altered since it was written.")
        topology, (block, *rest) = read_topology(first), read_features(second)
        fits = len(topology.leaves) == count and rest == [count, *columns]
        if not fits or len(topology.values) != 4 * edge_width * topology.num_entries:
            raise CorruptRunError(f"{file}: the index and the pages don't fit.")
        pages.append(Page(topology.nodes, topology.edges, block, topology.values, topology.names))
        leaves.append(KeptLeaves(topology.leaves, root))


def _view(file: Path, size: int) -> memoryview:
    """A file of this size, mapped into memory for as long as anybody holds a part of it."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        raise CorruptRunError(f"{file}: can't be read ({error.strerror}).") from error
    try:
        if os.fstat(handle).st_size != size:
            raise CorruptRunError(f"{file}: truncated or altered since it was written.")
        return (
            memoryview(mmap.mmap(handle, size, access=mmap.ACCESS_READ))
            if size
            else memoryview(b"")
        )
    finally:
        os.close(handle)
