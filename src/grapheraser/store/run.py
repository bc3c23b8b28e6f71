"""A run as a folder.

    run.json                         the manifest: names and digests of everything below
    graph-<digest>.npz               the current graph
    partition-<digest>.npz           the shard of every training node
    aggregator-<digest>.safetensors  what the aggregator holds
    shards/<digest>.safetensors      one file per shard model
    receipts/000001-<digest>.json    one file per change, canonical JSON

Files are named by their content and never change. A save writes the new ones, then replaces the
manifest in one step, then removes what the manifest no longer names: at any moment the folder is
either the old run or the new one, and forgotten data leaves it.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import safetensors.numpy
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors import SafetensorError

from grapheraser.environment import versions
from grapheraser.errors import CorruptRunError, RunBusyError, StoreError, VerificationError
from grapheraser.graph import Graph
from grapheraser.partition import Partition
from grapheraser.receipts import Receipt
from grapheraser.store.files import holds, make_folder, read_checked, sync_folder, write_atomic
from grapheraser.store.folder import (
    FOLDERS,
    FORMAT,
    MANIFEST,
    VERSION,
    RunLock,
    check_target,
    hold,
    is_part,
    read_manifest,
    sweep,
)
from grapheraser.training import ShardWeights

_TRIES = 10
_UNREADABLE = (
    CorruptRunError,
    KeyError,
    TypeError,
    ValueError,
    EOFError,
    SafetensorError,
    BadZipFile,
)


@dataclass(frozen=True, eq=False)
class StoredRun:
    """Everything that a run folder holds, as values."""

    configuration: dict[str, Any]
    graph: Graph
    partition: Partition
    shards: Mapping[int, ShardWeights]
    aggregator: Mapping[str, NDArray[Any]]
    receipts: tuple[Receipt, ...]


def save_run(
    path: Path, run: StoredRun, *, lock: RunLock | None = None, replace: bool = False
) -> None:
    """Write a run, where `check_target` allows it.

    Pass ``lock`` when the caller has held the run since it read it.
    """
    if lock is not None:
        lock.check(path)
    check_target(path, run.receipts, replace=replace)
    folders = [path / name for name in FOLDERS]
    for folder in folders:
        make_folder(folder)
    sync_folder(path.parent)
    with hold(path) if lock is None else nullcontext():
        check_target(
            path, run.receipts, replace=replace
        )  # again, now that nobody else can change it
        sweep(path)
        try:
            manifest = _write_parts(path, run)
            for folder in (*folders, path):
                sync_folder(folder)
            content = json.dumps(manifest, indent=1, sort_keys=True).encode()
            write_atomic(path / MANIFEST, content)
            sync_folder(path)
        finally:
            sweep(path)  # by whichever manifest is in place


def load_run(path: Path) -> StoredRun:
    """Read a run back, checking every byte of it."""
    manifest = read_manifest(path)
    for _ in range(_TRIES):
        try:
            return _read_parts(path, manifest)
        except _UNREADABLE as error:
            known, manifest = manifest, read_manifest(path)
            if manifest != known:
                continue  # a save has removed what the old manifest names
            if isinstance(error, StoreError):
                raise
            raise CorruptRunError(f"{path}: not a readable run ({error!r}).") from error
    raise RunBusyError(f"{path}: changes faster than it can be read.", hint="try again later.")


def _write_parts(path: Path, run: StoredRun) -> dict[str, Any]:
    """Write every file that is missing or damaged; returns the manifest that names them all."""

    def put(pattern: str, content: bytes) -> dict[str, str]:
        digest = hashlib.sha256(content).hexdigest()
        name = pattern.format(digest[:20])
        if not holds(path / name, content):
            write_atomic(path / name, content)
        return {"file": name, "sha256": digest}

    shards = {
        str(shard): put("shards/{}.safetensors", safetensors.numpy.save(weights.arrays))
        for shard, weights in run.shards.items()
    }
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


def _read_parts(path: Path, manifest: dict[str, Any]) -> StoredRun:
    def get(entry: dict[str, Any]) -> bytes:
        if not is_part(entry["file"]):
            raise CorruptRunError(f"{path / MANIFEST}: {entry['file']!r} is no file of a run.")
        return read_checked(path / entry["file"], entry["sha256"])

    made = manifest["partition"]
    with np.load(io.BytesIO(get(made)), allow_pickle=False) as z:
        partition = Partition(
            nodes=z["nodes"],
            labels=z["labels"],
            num_shards=made["num_shards"],
            method=made["method"],
            capacity=made["capacity"],
            inputs=frozenset(made["inputs"]),
            seed=made["seed"],
        )
    shards = {}
    for shard, entry in sorted(manifest["shards"].items(), key=lambda item: int(item[0])):
        tensors = safetensors.numpy.load(get(entry))
        shards[int(shard)] = ShardWeights(tensors.pop("columns"), tensors)
    try:
        receipts = tuple(Receipt.from_json(get(e).decode()) for e in manifest["receipts"])
    except VerificationError as error:
        raise CorruptRunError(f"{path}: {error.message}") from error
    return StoredRun(
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
    }


def _graph_from(content: bytes, entry: dict[str, Any]) -> Graph:
    with np.load(io.BytesIO(content), allow_pickle=False) as z:
        rows, columns = (int(size) for size in z["x_shape"])
        x = sp.csr_array((z["x_data"], z["x_indices"], z["x_indptr"]), shape=(rows, columns))
        return Graph(
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


def _partition_arrays(partition: Partition) -> dict[str, NDArray[Any]]:
    return {"nodes": partition.nodes, "labels": partition.labels}


def _npz(arrays: dict[str, NDArray[Any]]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _tensors(tensors: Mapping[str, NDArray[Any]]) -> bytes:
    return safetensors.numpy.save({name: np.ascontiguousarray(t) for name, t in tensors.items()})
