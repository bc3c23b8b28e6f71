"""Keeping a snapshot in a folder, and reading it back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from grapheraser.eraser.check import checked_state
from grapheraser.eraser.seals import Seals
from grapheraser.eraser.settings import Settings, check, resolve, restore
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.errors import CorruptRunError, GraphEraserError, RunKindError, VerificationError
from grapheraser.receipts import Ends, digest_of
from grapheraser.store import RunLock, StoredRun, load_run, save_run
from grapheraser.store.folder import HISTORY
from grapheraser.training.training import check_recordable

# From arguments, and from what those of a loaded run were resolved to.
Resolve: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any] | None], Settings]

# What a run predicts, where that is not the class of nodes.
TASK, LINKS = "task", "links"


def save(now: Snapshot, path: Path, *, lock: RunLock | None = None, replace: bool = False) -> None:
    """Write a snapshot to a folder; see `GraphEraser.save`."""
    check_recordable(now.arguments.get("training"))
    state = now.state
    run = StoredRun(
        configuration=now.configuration | {HISTORY: now.ends.to_dict()},
        graph=state.graph,
        partition=state.partition,
        shards=state.shards,
        aggregator=dict(state.aggregator.tensors),
        receipts=now.receipts,
        register=now.seals.register,
        state=now.document,
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
        seals = _seals(run)
        for said in (configuration, dict(run.state)):
            digest_of(said)  # a ValueError where it can't be spelled
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
    described = dict(run.state)
    return Snapshot(arguments, settings, state, configuration, run.receipts, ends, seals, described)


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


def _split(kept: dict[str, Any]) -> tuple[dict[str, Any], Ends]:
    """The settings of a saved run, and the ends of its receipts."""
    configuration = {key: value for key, value in kept.items() if key != HISTORY}
    try:
        return configuration, Ends.from_dict(kept[HISTORY])
    except (VerificationError, KeyError) as error:
        raise CorruptRunError(
            "does not say what it was fitted on, nor which receipts there are."
        ) from error


def _seals(run: StoredRun) -> Seals:
    try:
        nonce, versions = bytes.fromhex(run.state["nonce"]), dict(run.state["versions"])
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptRunError(f"does not describe its state ({error!r}).") from error
    return Seals(run.register, nonce, versions)
