"""Keeping a snapshot in a folder, and reading it back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from grapheraser.eraser.check import checked_state
from grapheraser.eraser.settings import Settings, check, resolve, restore
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.errors import CorruptRunError, GraphEraserError, RunKindError
from grapheraser.receipts import Ends, digest_of
from grapheraser.store import RunLock, StoredRun, load_run, save_run
from grapheraser.store.folder import HISTORY
from grapheraser.training.training import check_recordable

# From arguments, and from what those of a loaded run were resolved to.
Resolve: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any] | None], Settings]

# Beside the settings in a saved run, and no part of their digest.
_ENDS = HISTORY
# What a run predicts, where that is not the class of nodes.
TASK, LINKS = "task", "links"


def save(now: Snapshot, path: Path, *, lock: RunLock | None = None, replace: bool = False) -> None:
    """Write a snapshot to a folder; see `GraphEraser.save`."""
    check_recordable(now.arguments.get("training"))
    state = now.state
    run = StoredRun(
        configuration=now.configuration | ({} if now.ends is None else {_ENDS: asdict(now.ends)}),
        graph=state.graph,
        partition=state.partition,
        shards=state.shards,
        aggregator=dict(state.aggregator.tensors),
        receipts=now.receipts,
        seeds=state.seeds,
    )
    save_run(path, run, lock=lock, replace=replace)


def load(
    path: Path,
    names: Iterable[str],
    own: Mapping[str, Any],
    changes: Mapping[str, Any],
    *,
    task: str | None = None,
    resolve: Resolve = resolve,
) -> Snapshot:
    """The snapshot of a run; see `GraphEraser.load`.

    Args:
        path: the run's folder.
        names: of the constructor's arguments.
        own: parts of the user's own by argument; None where nothing was brought.
        changes: arguments that may differ from those of the fit.
        task: what the run has to predict; None for the classes of nodes.
        resolve: from arguments to settings.
    """
    run = load_run(path)
    _check_task(path, run.configuration, task)
    try:
        configuration, ends = _split(run.configuration)
        digest_of(configuration)  # a ValueError where it can't be spelled
        arguments = {**restore(configuration, own), **changes}
        if arguments.keys() != set(names):
            raise LookupError(arguments.keys() ^ set(names))
        settings = resolve(arguments, configuration["resolved"])
        check(configuration, settings, own)
        state = checked_state(settings, run)
    except CorruptRunError as error:
        raise CorruptRunError(f"{path}: {error.message}", hint=error.hint) from error
    except GraphEraserError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise CorruptRunError(f"{path}: its settings don't fit ({error!r}).") from error
    return Snapshot(arguments, settings, state, configuration, run.receipts, ends)


def task_of(configuration: Mapping[str, Any]) -> str | None:
    """What a saved run predicts; None for the classes of nodes."""
    task = configuration.get(TASK)
    return None if task is None else str(task)


def _check_task(path: Path, configuration: Mapping[str, Any], task: str | None) -> None:
    found = task_of(configuration)
    if found != task:
        kinds = {None: "the classes of nodes", LINKS: "links"}
        owners = {None: "GraphEraser", LINKS: "LinkEraser"}
        raise RunKindError(
            f"{path}: a run that predicts {kinds.get(found, repr(found))}, not {kinds[task]}.",
            hint=f"load it with ge.{owners[found]}.load(path)." if found in owners else None,
        )


def _split(kept: dict[str, Any]) -> tuple[dict[str, Any], Ends | None]:
    """The settings of a saved run, and the ends of its receipts where it has them."""
    configuration = {key: value for key, value in kept.items() if key != _ENDS}
    try:
        return configuration, Ends(**kept[_ENDS])
    except (KeyError, TypeError):
        return configuration, None
