"""A run as a folder; see `store.manifest` for the files in it.

Files are named by their content and never change. A save writes the new ones, then replaces the
manifest in one step, then removes what the manifest no longer names: at any moment the folder is
either the old run or the new one, and forgotten data leaves it. What the folder holds already is
neither written nor read nor listed, so a save costs what has changed since the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from numpy.typing import NDArray
from safetensors import SafetensorError

from grapheraser.engines import ShardWeights
from grapheraser.errors import CorruptRunError, RunBusyError, StoreError, VerificationError
from grapheraser.graph import Graph
from grapheraser.graph.proof.register import Register
from grapheraser.partition import Partition
from grapheraser.receipts import Ends, Receipt, Receipts
from grapheraser.store.files import Batch, flush, make_folder, remove
from grapheraser.store.folder import (
    HISTORY,
    RunLock,
    check_target,
    hold,
    is_marked,
    mark,
    sweep,
    unmark,
)
from grapheraser.store.manifest import (
    FOLDERS,
    FORMAT,
    MANIFEST,
    VERSION,
    direct_files,
    is_part,
    manifest_content,
    read_manifest,
    remembered,
    signed_manifest,
    stored_receipts,
)
from grapheraser.store.reading import (
    check_coverage,
    read_aggregator,
    read_graph,
    read_partition,
    read_register,
    read_shards,
)
from grapheraser.store.writing import StoredFiles, Writer
from grapheraser.untrusted import MAX_JSON

_TRIES = 10
_UNREADABLE = (
    CorruptRunError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    EOFError,
    SafetensorError,
    BadZipFile,
)


@dataclass(frozen=True, eq=False)
class StoredRun:
    """Everything that a run folder holds, as values; receipts are read when they are asked for.

    ``state`` is the document of the state, which receipts name by its digest; ``seeds`` are those
    of the shards that were seeded afresh, and ``manifest`` the one that a run was read by.
    """

    configuration: dict[str, Any]
    graph: Graph
    partition: Partition
    shards: Mapping[int, ShardWeights]
    aggregator: Mapping[str, NDArray[Any]]
    receipts: Sequence[Receipt]
    register: Register
    state: Mapping[str, Any]
    seeds: Mapping[int, int] = field(default_factory=dict)
    manifest: Mapping[str, Any] | None = None


def save_run(
    path: Path,
    run: StoredRun,
    *,
    lock: RunLock | None = None,
    replace: bool = False,
    sign: bool = True,
) -> None:
    """Write a run, where `check_target` allows it.

    Pass ``lock`` when the caller has held the run since it read it. Where the folder should hold
    exactly this run already, every file is checked, and written again if it is damaged. ``sign``
    says that the state is known to be that of the last receipt: the manifest may be signed.
    """
    if lock is not None:
        lock.check(path)
    check_target(path, run.receipts, run.configuration, replace=replace)
    missing = [folder for name in FOLDERS if not (folder := path / name).is_dir()]
    for folder in [path, *missing] if missing else ():
        make_folder(folder)
    if missing:
        flush([path.parent, path, *missing])
    with hold(path) if lock is None else nullcontext():
        # Again, now that nobody else can change it.
        check_target(path, run.receipts, run.configuration, replace=replace)
        if is_marked(path) or not (path / MANIFEST).exists():
            sweep(path)
        unswept = is_marked(path)
        kept = StoredFiles.by_manifest(path, run.receipts)
        try:
            mark(path)
            gone = _write(path, run, kept, sign=sign)
            if kept.manifest and not unswept:
                remove([path / name for name in sorted(filter(is_part, gone))])
                unmark(path)
            else:
                sweep(path)
        except BaseException:
            sweep(path)  # by whichever manifest is in place
            raise


def _write(path: Path, run: StoredRun, kept: StoredFiles, *, sign: bool) -> set[str]:
    """Write what the folder lacks, then the manifest; returns the names that it no longer names."""
    # When a page was written would tell which of them a request touched.
    with Batch(dated=False) as batch:
        writer = Writer(path, batch, kept)
        manifest = _put(writer, run)
        content = manifest_content(signed_manifest(manifest) if sign else manifest)
        if len(content) > MAX_JSON:
            raise StoreError(f"{MANIFEST} would have {len(content):,} bytes; {MAX_JSON:,} can be.")
        named = direct_files(manifest)
        if content == kept.manifest:
            writer = Writer(path, batch, kept.intact(path, named, run.receipts))
            _put(writer, run)
        if writer.folders:
            batch.commit(path)
    with Batch() as batch:
        if content == kept.manifest:
            flush(writer.folders)
        else:
            batch.write(path / MANIFEST, content)
            batch.commit(path, *writer.folders)
            flush([path])
    for part, index in writer.indexes.items():
        remembered.put(path, part, manifest[part]["sha256"], index)
    return {*kept.names - named.keys(), *writer.gone()}


def _put(writer: Writer, run: StoredRun) -> dict[str, Any]:
    """Put all parts of a run; returns the manifest that names them."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "configuration": run.configuration,
        "graph": writer.graph(run.graph),
        "partition": writer.partition(run.partition),
        "register": writer.register(run.register),
        "aggregator": writer.aggregator(run.aggregator),
        "state": dict(run.state),
        "receipts": writer.receipts(run.receipts),
        "shards": writer.shards(run.shards, run.seeds),
    }


def load_run(path: Path) -> StoredRun:
    """Read a run back, checking every byte of it but those of receipts before the last."""
    manifest = read_manifest(path)
    for _ in range(_TRIES):
        try:
            return _read(path, manifest)
        except _UNREADABLE as error:
            known, manifest = manifest, read_manifest(path)
            if manifest != known:
                continue  # a save has removed what the old manifest names
            if isinstance(error, StoreError):
                raise
            raise CorruptRunError(f"{path}: not a readable run ({error!r}).") from error
    raise RunBusyError(f"{path}: changes faster than it can be read.", hint="try again later.")


def load_receipts(path: Path) -> tuple[Receipts, Ends]:
    """The receipts of a run and where they begin and end, without reading anything else."""
    manifest = read_manifest(path)
    try:
        ends = Ends.from_dict(manifest["configuration"][HISTORY])
    except (VerificationError, KeyError, TypeError) as error:
        raise CorruptRunError(
            f"{path}: does not say what it was fitted on, nor which receipts there are."
        ) from error
    return stored_receipts(path, manifest), ends


def _read(path: Path, manifest: dict[str, Any]) -> StoredRun:
    graph = read_graph(path, manifest["graph"])
    partition = read_partition(path, manifest["partition"])
    check_coverage(graph.pages, partition.pages, graph.context)
    shards, seeds = read_shards(path, manifest["shards"])
    return StoredRun(
        configuration=manifest["configuration"],
        graph=graph,
        partition=partition,
        shards=shards,
        aggregator=read_aggregator(path, manifest["aggregator"]),
        receipts=stored_receipts(path, manifest),
        register=read_register(path, manifest["register"]),
        state=manifest["state"],
        seeds=seeds,
        manifest=manifest,
    )
