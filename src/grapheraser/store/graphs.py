"""Writing graph stores; `graph.pages.stored` says what such a folder holds, and reads it."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.canonical import canonical_json
from grapheraser.errors import ParameterError, StoreError
from grapheraser.graph import Graph
from grapheraser.graph.pages.files import features_content, index_content, topology_content
from grapheraser.graph.pages.pages import Pages
from grapheraser.graph.pages.stored import (
    ALIGNED,
    FORMAT,
    MANIFEST,
    PARTIAL,
    STORED,
    VERSION,
    is_stored,
    pack_file,
)
from grapheraser.graph.proof.merkle import KeptLeaves, Leaves
from grapheraser.progress import progress
from grapheraser.store.files import failure_of, flush, make_folder, write_atomic
from grapheraser.store.folder import hold
from grapheraser.store.manifest import LOCK

PACK_PAGES = 1024  # pages of a pack
SPILL = "spill"


def write_graph(graph: Graph, folder: Path, *, replace: bool = False) -> None:
    """Write a graph that is in memory as a graph store."""
    check_room(folder, replace=replace)
    make_folder(folder)
    with hold(folder):
        check_room(folder, replace=replace)  # again, now that nobody else can change it
        begin(folder)
        finish(folder, _packs(graph, folder), schema_of(graph))


def _packs(graph: Graph, folder: Path) -> list[NDArray[np.void]]:
    """Write all pages; returns the parts of the index."""
    pages, leaves = graph.pages, graph.tree.leaves
    parts: list[NDArray[np.void]] = []
    starts = range(0, len(pages.pages), PACK_PAGES)
    with progress("writing", len(starts)) as tick:
        for number, low in enumerate(starts):
            high = min(low + PACK_PAGES, len(pages.pages))
            parts.append(write_pack(folder, number, pages, leaves, range(low, high)))
            tick()
    return parts


def schema_of(graph: Graph) -> dict[str, Any]:
    """Return what the manifest says of a graph."""
    return {
        "name": graph.name,
        "notes": list(graph.notes),
        "num_features": graph.num_features,
        "dense": graph.pages.dense,
        "num_classes": graph.num_classes,
        "class_names": list(graph.class_names),
        **graph.label_kind.to_dict(),
        "inferred": list(graph.inferred),
        "edges": graph.edge_kind._asdict(),
        **({"encoding": graph.encoding.to_list()} if graph.encoding else {}),
        **({"types": graph.types.to_dict()} if graph.types else {}),
    }


def check_room(folder: Path, *, replace: bool) -> None:
    """Raise an error unless a folder can take a graph store; with ``replace`` in place of one."""
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{folder}: a file; a graph store is a folder.")
    if folder.is_dir() and any(file.name != LOCK for file in folder.iterdir()):
        if not is_stored(folder):
            raise StoreError(f"{folder} holds something that is no graph store; choose another.")
        if not replace:
            raise ParameterError(
                f"{folder}: holds a graph store.", hint="add --replace, or name another folder."
            )


def begin(folder: Path, partial: bytes = b"") -> None:
    """Begin a graph store; ``partial`` is kept until it is finished."""
    clear(folder)
    write_atomic(folder / PARTIAL, partial)
    make_folder(folder / "packs")


def clear(folder: Path) -> None:
    """Remove a graph store, the manifest first: half of one is none."""
    try:
        (folder / MANIFEST).unlink(missing_ok=True)
        for name in ("packs", SPILL):
            shutil.rmtree(folder / name, ignore_errors=True)
        for file in (*folder.glob("index-*.npy"), folder / PARTIAL):
            file.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"can't remove the graph in {folder}: {error.strerror}.") from error


def write_pack(
    folder: Path,
    number: int,
    pages: Pages,
    leaves: Sequence[Leaves | KeptLeaves],
    chosen: Sequence[int],
) -> NDArray[np.void]:
    """Write some pages into a pack; returns their part of the index."""
    index = np.zeros(len(chosen), dtype=STORED)
    file = folder / pack_file(number)
    try:
        with open(file, "wb") as out:
            for row, at in zip(index, chosen, strict=True):
                count, page = int(pages.directory.counts[at]), pages.pages[at]
                row["start"], row["size"] = pages.directory.starts[at], pages.directory.sizes[at]
                row["count"], row["pack"] = count, number
                row["root"] = np.frombuffer(leaves[at].root, dtype="V32")[0]
                shape = count, pages.num_features, pages.dense
                for name, content in (
                    ("topology", topology_content(page, leaves[at].leaves)),
                    ("features", features_content(page.features, *shape)),
                ):
                    out.write(bytes(-out.tell() % ALIGNED))
                    row[f"{name}_at"], row[f"{name}_bytes"] = out.tell(), len(content)
                    digest = hashlib.sha256(content).digest()
                    row[name] = np.frombuffer(digest, dtype="V32")[0]
                    out.write(content)
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        raise failure_of(file, error, "the import goes on from here next time") from error
    return index


def finish(folder: Path, parts: Sequence[NDArray[np.void]], schema: Mapping[str, Any]) -> None:
    """Write the index, then the manifest: from then on the folder holds a graph."""
    index = np.concatenate([np.zeros(0, dtype=STORED), *parts])
    content = index_content(index)
    digest = hashlib.sha256(content).hexdigest()
    name = f"index-{digest[:20]}.npy"
    write_atomic(folder / name, content)
    packs = [(folder / pack_file(number)).stat().st_size for number in range(len(parts))]
    manifest = {"format": FORMAT, "version": VERSION, **schema, "packs": packs}
    manifest["index"] = {"file": name, "sha256": digest}
    flush([folder / "packs", folder])
    write_atomic(folder / MANIFEST, (canonical_json(manifest) + "\n").encode())
    shutil.rmtree(folder / SPILL, ignore_errors=True)
    (folder / PARTIAL).unlink(missing_ok=True)
    flush([folder])
