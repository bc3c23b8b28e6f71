"""The only room that touches the disk of a run: files, the folder, and the run in it."""

from grapheraser.store.files import TEMPORARY, read_text, write_file, write_text
from grapheraser.store.folder import (
    LOCK,
    MANIFEST,
    FoundFile,
    RunLock,
    check_target,
    found_files,
    locked,
    named_files,
    read_manifest,
    stray_files,
)
from grapheraser.store.run import StoredRun, load_run, save_run

__all__ = [
    "LOCK",
    "MANIFEST",
    "TEMPORARY",
    "FoundFile",
    "RunLock",
    "StoredRun",
    "check_target",
    "found_files",
    "load_run",
    "locked",
    "named_files",
    "read_manifest",
    "read_text",
    "save_run",
    "stray_files",
    "write_file",
    "write_text",
]
