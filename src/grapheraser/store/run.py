"""A run as a folder.

    run.json                         the manifest: names and digests of everything below
    graph-<digest>.npz               the current graph
    partition-<digest>.npz           the shard of every training node
    aggregator-<digest>.safetensors  what the aggregator holds
    shards/<digest>.safetensors      one file per shard model, and per checkpoint inside a shard
    receipts/000001-<digest>.json    one file per change, canonical JSON

Files are named by their content and never change. A save writes the new ones, then replaces the
manifest in one step, then removes what the manifest no longer names: at any moment the folder is
either the old run or the new one, and what was forgotten does not stay behind.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import safetensors.numpy
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors import SafetensorError

from grapheraser.errors import (
    CorruptRunError,
    RunNotFoundError,
    RunVersionError,
    StoreError,
    VerificationError,
)
from grapheraser.graph import Graph
from grapheraser.partition import Partition
from grapheraser.receipt import Receipt
from grapheraser.store.files import (
    TEMPORARY,
    RunLock,
    locked,
    read_checked,
    sync_folder,
    write_atomic,
)
from grapheraser.training import Checkpoint, ShardWeights
from grapheraser.versions import versions

__all__ = ["RunLock", "RunState", "load_run", "locked", "save_run"]

MANIFEST = "run.json"
# Raise it when what is kept changes its meaning, not only its shape.
FORMAT, VERSION = "grapheraser-run", 2
_FILES = ("graph-*", "partition-*", "aggregator-*")


@dataclass(frozen=True, eq=False)
class RunState:
    """Everything that a run folder holds, as values."""

    configuration: dict[str, Any]
    graph: Graph
    partition: Partition
    shards: Mapping[int, ShardWeights]
    aggregator: Mapping[str, NDArray[Any]]
    receipts: tuple[Receipt, ...]


def save_run(path: Path, run: RunState, *, lock: RunLock | None = None) -> None:
    """Write a run; an existing run in that folder is replaced, anything else is refused.

    ``lock`` says that the caller holds the run already, from reading it on.
    """
    if path.exists() and not (path / MANIFEST).exists() and _occupied(path):
        raise StoreError(f"{path} holds something that is not a run; choose another folder.")
    try:
        for folder in (path, path / "shards", path / "receipts"):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"can't make the folder {path}: {error.strerror}.") from error
    with locked(path) if lock is None else nullcontext():
        old = _files_of(_manifest(path)) if (path / MANIFEST).exists() else {}
        try:
            manifest = _write_parts(path, run, old)
            content = json.dumps(manifest, indent=1, sort_keys=True).encode()
            write_atomic(path / MANIFEST, content)
        except BaseException:
            _remove_strangers(path, old)
            raise
        sync_folder(path)
        _remove_strangers(path, _files_of(manifest))


def load_run(path: Path) -> RunState:
    """Read a run back, checking every byte of it."""
    manifest = _manifest(path)
    try:
        return _read_parts(path, manifest)
    except (KeyError, TypeError, ValueError, EOFError, SafetensorError, BadZipFile) as error:
        if isinstance(error, StoreError):
            raise
        raise CorruptRunError(f"{path}: not a readable run ({error!r}).") from error


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((path / MANIFEST).read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise RunNotFoundError(
            f"{path}: there is no run here ({MANIFEST} is missing).",
            hint="grapheraser fit DATASET --out RUN makes one.",
        ) from None
    except (OSError, ValueError) as error:
        raise CorruptRunError(f"{path / MANIFEST}: not readable ({error}).") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CorruptRunError(f"{path / MANIFEST}: not the manifest of a run.")
    if manifest.get("version") != VERSION:
        raise RunVersionError(
            f"{path}: written in version {manifest.get('version')} of the format; this is version "
            f"{VERSION}.",
            hint="use the release of grapheraser that wrote it, or fit again.",
        )
    return manifest


def _write_parts(path: Path, run: RunState, old: Mapping[str, str]) -> dict[str, Any]:
    """Write all files that are not there yet; returns the manifest that names them."""

    def put(pattern: str, content: bytes) -> dict[str, str]:
        digest = hashlib.sha256(content).hexdigest()
        name = pattern.format(digest[:20])
        if old.get(name) != digest:
            write_atomic(path / name, content)
        return {"file": name, "sha256": digest}

    shards = {}
    for shard, weights in run.shards.items():
        entry: dict[str, Any] = put("shards/{}.safetensors", safetensors.numpy.save(weights.arrays))
        if weights.checkpoints:
            entry["checkpoints"] = [
                put("shards/{}.safetensors", safetensors.numpy.save(checkpoint.arrays))
                for checkpoint in weights.checkpoints
            ]
        shards[str(shard)] = entry
    receipts = [
        put(f"receipts/{receipt.sequence:06}-{{}}.json", receipt.to_json().encode())
        for receipt in run.receipts
    ]
    partition, graph = run.partition, run.graph
    return {
        "format": FORMAT,
        "version": VERSION,
        "written_by": versions(),
        "configuration": run.configuration,
        "graph": {
            **put("graph-{}.npz", _npz(graph_arrays(graph))),
            "name": graph.name,
            "notes": list(graph.notes),
        },
        "partition": {
            **put("partition-{}.npz", _npz(_partition_arrays(partition))),
            "num_shards": partition.num_shards,
            "method": partition.method,
            "capacity": partition.capacity,
            "inputs": sorted(partition.inputs),
            "seed": partition.seed,
        },
        "shards": shards,
        "aggregator": put("aggregator-{}.safetensors", _tensors(run.aggregator)),
        "receipts": receipts,
    }


def _read_parts(path: Path, manifest: dict[str, Any]) -> RunState:
    def get(entry: dict[str, Any]) -> bytes:
        return read_checked(path / entry["file"], entry["sha256"])

    cut = manifest["partition"]
    with np.load(io.BytesIO(get(cut)), allow_pickle=False) as z:
        partition = Partition(
            nodes=z["nodes"],
            labels=z["labels"],
            num_shards=cut["num_shards"],
            method=cut["method"],
            capacity=cut["capacity"],
            inputs=frozenset(cut["inputs"]),
            seed=cut["seed"],
        )
    shards = {}
    for shard, entry in sorted(manifest["shards"].items(), key=lambda item: int(item[0])):
        tensors = safetensors.numpy.load(get(entry))
        kept = [safetensors.numpy.load(get(part)) for part in entry.get("checkpoints", ())]
        checkpoints = tuple(Checkpoint(part.pop("columns"), part) for part in kept)
        if checkpoints:
            tensors.pop("checkpoints")
        shards[int(shard)] = ShardWeights(tensors.pop("columns"), tensors, checkpoints)
    try:
        receipts = tuple(Receipt.from_json(get(e).decode()) for e in manifest["receipts"])
    except VerificationError as error:
        raise CorruptRunError(f"{path}: {error.message}") from error
    return RunState(
        configuration=manifest["configuration"],
        graph=_graph_from(get(manifest["graph"]), manifest["graph"]),
        partition=partition,
        shards=shards,
        aggregator=safetensors.numpy.load(get(manifest["aggregator"])),
        receipts=receipts,
    )


def graph_arrays(graph: Graph) -> dict[str, NDArray[Any]]:
    """A graph as plain arrays."""
    return {
        "ids": graph.ids,
        "indptr": graph.indptr,
        "indices": graph.indices,
        "x_data": graph.x.data,
        "x_indices": graph.x.indices,
        "x_indptr": graph.x.indptr,
        "x_shape": np.array(graph.x.shape),
        "y": graph.y,
        "role": graph.role,
        "num_classes": np.array(graph.num_classes),
        "leaves": graph.leaves,
    }


def _graph_from(content: bytes, entry: dict[str, Any]) -> Graph:
    with np.load(io.BytesIO(content), allow_pickle=False) as z:
        rows, columns = (int(size) for size in z["x_shape"])
        x = sp.csr_array((z["x_data"], z["x_indices"], z["x_indptr"]), shape=(rows, columns))
        graph = Graph(
            ids=z["ids"],
            indptr=z["indptr"],
            indices=z["indices"],
            x=x,
            y=z["y"],
            role=z["role"],
            num_classes=int(z["num_classes"]),
            name=entry["name"],
            notes=tuple(entry["notes"]),
        )
        # Kept with the graph, so that the first request does not wait for every node's digest.
        graph.__dict__["leaves"] = z["leaves"]
        return graph


def _partition_arrays(partition: Partition) -> dict[str, NDArray[Any]]:
    return {"nodes": partition.nodes, "labels": partition.labels}


def _npz(arrays: dict[str, NDArray[Any]]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _tensors(tensors: Mapping[str, NDArray[Any]]) -> bytes:
    return safetensors.numpy.save({name: np.ascontiguousarray(t) for name, t in tensors.items()})


def _files_of(manifest: dict[str, Any]) -> dict[str, str]:
    entries = [manifest["graph"], manifest["partition"], manifest["aggregator"]]
    entries += [*manifest["shards"].values(), *manifest["receipts"]]
    entries += [kept for s in manifest["shards"].values() for kept in s.get("checkpoints", ())]
    return {entry["file"]: entry["sha256"] for entry in entries}


def _remove_strangers(path: Path, named: Mapping[str, str]) -> None:
    """Remove what the manifest doesn't name: forgotten data, and leftovers of a crash."""
    for pattern in (*_FILES, "shards/*", "receipts/*"):
        for file in path.glob(pattern):
            if file.relative_to(path).as_posix() not in named:
                file.unlink(missing_ok=True)
    (path / (MANIFEST + TEMPORARY)).unlink(missing_ok=True)


def _occupied(path: Path) -> bool:
    """Whether a path without a manifest holds anything else than a first save that crashed."""
    own = (*_FILES, "shards", "receipts", ".lock", MANIFEST + TEMPORARY)
    return not path.is_dir() or any(
        not any(fnmatch(file.name, pattern) for pattern in own) for file in path.iterdir()
    )
