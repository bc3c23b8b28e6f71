"""Keeping a snapshot in a folder."""

from __future__ import annotations

from pathlib import Path

from grapheraser.engines.training import check_recordable
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.store import RunLock, StoredRun, save_run
from grapheraser.store.folder import HISTORY
from grapheraser.store.keys import known_keys
from grapheraser.store.manifest import is_signed


def save(now: Snapshot, path: Path, *, lock: RunLock | None = None, replace: bool = False) -> None:
    """Write a snapshot to a folder; see `Eraser.save`."""
    check_recordable(now.arguments.get("training"))
    state = now.state
    run = StoredRun(
        configuration=now.configuration | {HISTORY: now.ends.to_dict()},
        graph=state.graph,
        partition=state.partition,
        shards=state.shards,
        # What an aggregator keeps beside its tensors is no part of the state.
        aggregator={**state.aggregator.tensors, **getattr(state.aggregator, "kept", {})},
        receipts=now.receipts,
        register=now.seals.register,
        state=now.document,
        seeds=state.seeds,
    )
    # A state that nobody has compared with its last receipt is not vouched for.
    sound = now.loaded is None or is_signed(now.loaded, known_keys()) is True
    save_run(path, run, lock=lock, replace=replace, sign=sound)
