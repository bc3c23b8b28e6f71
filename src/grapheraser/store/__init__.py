"""The store stage: the only one that touches the disk."""

from grapheraser.store.files import TEMPORARY, write_file, write_text
from grapheraser.store.folder import (
    LOCK,
    MANIFEST,
    RunLock,
    check_target,
    locked,
    named_files,
    stray_files,
)
from grapheraser.store.run import RunState, load_run, save_run

__all__ = [
    "LOCK",
    "MANIFEST",
    "TEMPORARY",
    "RunLock",
    "RunState",
    "check_target",
    "load_run",
    "locked",
    "named_files",
    "save_run",
    "stray_files",
    "write_file",
    "write_text",
]
