"""The store stage: the only one that touches the disk."""

from grapheraser.store.run import RunState, load_run, locked, save_run

__all__ = ["RunState", "load_run", "locked", "save_run"]
