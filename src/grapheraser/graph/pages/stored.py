"""A graph store: a folder with the pages of a graph, read where they lie on the disk.

    graph.json                the manifest: what the graph is called, its schema, files, digests
    index-<digest>.npy        an entry of `STORED` for each page, in the order of the ids
    packs/00000.pack          pages one after the other; see `graph.pages.files`

Packs are mapped into memory: the system reads what is touched, and takes the memory back when it
needs it. `store.graphs` writes such folders.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import CorruptRunError, GraphError
from grapheraser.graph.edge_values import EdgeKind
from grapheraser.graph.encoding import Encoding
from grapheraser.graph.labels import LabelKind
from grapheraser.graph.pages.files import (
    GRAPH,
    as_bytes,
    directory_of,
    read_index,
    read_page,
)
from grapheraser.graph.pages.packing import Page
from grapheraser.graph.pages.pages import Pages
from grapheraser.graph.pages.structure import check_structure
from grapheraser.graph.proof.merkle import KeptLeaves, MerkleTree
from grapheraser.graph.types import Types
from grapheraser.progress import progress
from grapheraser.untrusted import MAX_JSON, PLAIN, parse_json, read_plain

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

MANIFEST, PARTIAL = "graph.json", "import.partial"
FORMAT, VERSION = "grapheraser-graph", 1
# Where a page lies: the number of its pack, and where its two parts begin there.
STORED = np.dtype([*GRAPH.descr, ("pack", "<i8"), ("topology_at", "<i8"), ("features_at", "<i8")])
ALIGNED = 64  # parts begin at multiples of this many bytes
MAX_INDEX = 2**30  # bytes: pages of 10**9 nodes
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
    """Tell whether a folder is a graph store, or is to become one."""
    return folder.is_dir() and any((folder / name).exists() for name in (MANIFEST, PARTIAL))


def pack_file(number: int) -> str:
    """Return the name of a pack."""
    return f"packs/{number:05}.pack"


def open_graph(cls: type[Graph], folder: str | Path) -> Graph:
    """Open the graph of a graph store, which `grapheraser import` makes; read where it lies.

    Every byte is checked against its digest once. After that the system reads the pages that
    are touched, and takes their memory back when it needs it.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    try:
        return restored(cls, manifest, *_mapped(folder, manifest))
    except CorruptRunError as error:
        where = "" if str(folder) in error.message else f"{folder}: "
        raise CorruptRunError(f"{where}{error.message}", hint=_AGAIN) from error


def restored(
    cls: type[Graph],
    entry: Mapping[str, Any],
    index: NDArray[np.void],
    pages: Sequence[Page],
    leaves: Iterable[KeptLeaves],
    **known: Any,
) -> Graph:
    """Make the graph that a manifest describes of its pages, and check its structure."""
    shape = int(entry["num_features"]), bool(entry["dense"])
    entries = sum(page.edges.nbytes // 8 for page in pages)
    entries -= int(index["count"].sum()) + len(pages)
    edges = EdgeKind(**entry.get("edges", {}))
    made = Pages.made(directory_of(index), pages, *shape, entries, edges)
    try:
        kind = LabelKind.from_dict(entry)
    except (KeyError, TypeError, ValueError):
        raise CorruptRunError("the kind of the graph's labels is missing or malformed.") from None
    try:
        types = Types.from_dict(entry.get("types"))
    except (KeyError, TypeError, ValueError, GraphError):
        raise CorruptRunError("the types of the graph are malformed.") from None
    check_structure(made, kind, types)
    return cls.of_pages(
        made,
        kind,
        name=str(entry["name"]),
        notes=tuple(map(str, entry["notes"])),
        # What is from before this was kept doesn't tell whether its classes were declared.
        inferred=tuple(map(str, entry.get("inferred", ["classes"]))),
        encoding=Encoding.of_list(entry.get("encoding")),
        types=types,
        tree=MerkleTree.restored(made, leaves),
        **known,
    )


_AGAIN = "import it again: grapheraser import SOURCE --out FOLDER --replace."


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a graph store."""
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
        manifest = parse_json(read_plain(file, MAX_JSON) or b"")
    except (OSError, ValueError, CorruptRunError) as error:
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


def _mapped(
    folder: Path, manifest: Mapping[str, Any]
) -> tuple[NDArray[np.void], list[Page], list[KeptLeaves]]:
    """Map the pages of a graph store and their leaves; check every byte against its digest."""
    index = _read_index(folder, manifest["index"])
    shape = (int(manifest["num_features"]), bool(manifest["dense"]))
    try:
        kind = EdgeKind(**manifest["edges"])
        sizes = [int(size) for size in manifest["packs"]]
    except (TypeError, ValueError) as error:
        raise CorruptRunError(f"{folder / MANIFEST}: malformed ({error}).") from error
    found: list[tuple[Page, KeptLeaves]] = []
    with progress("checking", len(sizes)) as tick:
        for number, size in enumerate(sizes):
            here = index[index["pack"] == number]
            found += _read_pack(folder / pack_file(number), size, here, shape, kind.width)
            tick()
    if len(found) != len(index):
        raise CorruptRunError(f"{folder}: the index names packs that there are not.")
    return index, [page for page, _ in found], [own for _, own in found]


def _read_index(folder: Path, entry: Mapping[str, Any]) -> NDArray[np.void]:
    file = folder / Path(str(entry.get("file"))).name
    try:
        content = read_plain(file, MAX_INDEX, sha256=str(entry.get("sha256")))
    except OSError as error:
        raise CorruptRunError(f"{file}: can't be read ({error.strerror}).") from error
    if content is None:
        raise CorruptRunError(f"{file}: truncated or altered since it was written.")
    return read_index(content, STORED)


def _read_pack(
    file: Path, size: int, index: NDArray[np.void], shape: tuple[int, bool], edge_width: int
) -> Iterator[tuple[Page, KeptLeaves]]:
    """Yield the pages of a pack, as views of it, and their leaves."""
    content = _view(file, size)
    parts = (
        *(index[name].tolist() for name in ("topology_at", "topology_bytes")),
        *(index[name].tolist() for name in ("features_at", "features_bytes", "count")),
        *(as_bytes(index[name]) for name in ("topology", "features", "root")),
    )
    for at, length, other, width, count, one, two, root in zip(*parts, strict=True):
        first, second = content[at : at + length], content[other : other + width]
        for part, digest, named in ((first, one, length), (second, two, width)):
            if len(part) != named or hashlib.sha256(part).digest() != digest:
                raise CorruptRunError(f"{file}: truncated or altered since it was written.")
        page, own = read_page(first, second, count, shape, edge_width)
        yield page, KeptLeaves(own, root)


def _view(file: Path, size: int) -> memoryview:
    """Map a file of this size into memory for as long as anybody holds a part of it."""
    try:
        handle = os.open(file, PLAIN)
    except OSError as error:
        raise CorruptRunError(f"{file}: can't be read ({error.strerror}).") from error
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size != size:
            raise CorruptRunError(f"{file}: truncated or altered since it was written.")
        return (
            memoryview(mmap.mmap(handle, size, access=mmap.ACCESS_READ))
            if size
            else memoryview(b"")
        )
    finally:
        os.close(handle)
