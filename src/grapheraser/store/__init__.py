"""The only room that touches the disk of a run: files, the folder, and the run in it."""

from grapheraser.store.digests import aggregator_digest, shard_digest, shards_digest
from grapheraser.store.files import TEMPORARY, read_text, write_file, write_text
from grapheraser.store.folder import (
    FoundFile,
    RunLock,
    check_target,
    found_files,
    locked,
    stray_files,
)
from grapheraser.store.manifest import LOCK, MANIFEST, named_files, read_manifest
from grapheraser.store.pages import page_arrays, page_names
from grapheraser.store.run import StoredRun, load_receipts, load_run, save_run

__all__ = [
    "LOCK",
    "MANIFEST",
    "TEMPORARY",
    "FoundFile",
    "RunLock",
    "StoredRun",
    "aggregator_digest",
    "check_target",
    "found_files",
    "load_receipts",
    "load_run",
    "locked",
    "named_files",
    "page_arrays",
    "page_names",
    "read_manifest",
    "read_text",
    "save_run",
    "shard_digest",
    "shards_digest",
    "stray_files",
    "write_file",
    "write_text",
]
