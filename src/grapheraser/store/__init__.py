"""The store stage: the only one that touches the disk."""

from grapheraser.store.files import write_file, write_text
from grapheraser.store.run import RunLock, RunState, load_run, locked, save_run

__all__ = ["RunLock", "RunState", "load_run", "locked", "save_run", "write_file", "write_text"]
