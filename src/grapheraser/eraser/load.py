"""Reading a run back by the task that its manifest names, all of it checked; and upgrading one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapheraser.aggregation import ChecksTensors, Ensemble
from grapheraser.engines import ShardModels
from grapheraser.eraser.replay import known_replay
from grapheraser.eraser.settings import Settings, check, restore
from grapheraser.eraser.snapshot import Seals, Snapshot
from grapheraser.eraser.state import State, trained_shards
from grapheraser.eraser.task import NODES, TASK, Task
from grapheraser.errors import (
    CorruptRunError,
    GraphEraserError,
    RunKindError,
    RunVersionError,
    VerificationError,
)
from grapheraser.inference import check_weights
from grapheraser.receipts import Ends, digest_of
from grapheraser.store import StoredRun, load_run
from grapheraser.store.folder import HISTORY
from grapheraser.store.manifest import OLDEST, VERSION, read_manifest
from grapheraser.store.reading import read_graph, read_partition

if TYPE_CHECKING:
    from grapheraser.eraser.base import Eraser

# Erasers by the name of their task, as far as they are imported.
ERASERS: dict[str, type[Eraser]] = {}
# Where the built-in ones are defined; only that of the run at hand is imported.
_HOMES = {
    NODES: "grapheraser.nodes",
    "links": "grapheraser.links",
    "recommendation": "grapheraser.recommendation",
    "embeddings": "grapheraser.embeddings",
    "graphs": "grapheraser.graphs",
}


def load_eraser(path: str | Path, **own: Any) -> Eraser:
    """Read a run of any task back.

    ``own`` is as its class takes it: `executor`, `device`, and parts of the user's own.
    """
    return eraser_of(task_of(Path(path)), path).load(path, **own)


def task_of(path: Path) -> str:
    """Return the name of the task that a run in a folder is of."""
    return task_named(read_manifest(path).get("configuration"))


def eraser_of(task: str, path: str | Path) -> type[Eraser]:
    """Return the class of the erasers of a task."""
    if task in _HOMES and task not in ERASERS:
        import_module(_HOMES[task])
    if task not in ERASERS:
        raise RunKindError(
            f"{path}: a run of task '{task}', which is not known here.",
            hint="import the module that defines it first, or use the version that made the run.",
        )
    return ERASERS[task]


def load(
    task: Task, path: Path, names: Iterable[str], own: Mapping[str, Any], changes: Mapping[str, Any]
) -> Snapshot:
    """Return the snapshot of a run.

    ``names`` are those of the constructor's arguments, ``own`` parts of the user's own by argument,
    ``changes`` arguments that may differ from those of the fit.
    """
    run = load_run(path)
    _check_task(path, task_named(run.configuration), task)
    try:
        configuration, ends = _split(run.configuration)
        seals = _seals(run)
        for said in (configuration, dict(run.state)):
            digest_of(said)  # a ValueError where it can't be spelled
        arguments = {**task.added, **restore(configuration, own), **changes}
        if arguments.keys() != set(names):
            raise LookupError(arguments.keys() ^ set(names))
        settings = task.resolve(arguments, configuration["resolved"])
        told = known_replay(settings.own_code, configuration["resolved"])
        settings = replace(settings, replay=told)
        check(configuration, settings, own)
        state = _checked_state(settings, run)
    except CorruptRunError as error:
        raise CorruptRunError(f"{path}: {error.message}", hint=error.hint) from error
    except GraphEraserError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise CorruptRunError(f"{path}: its settings don't fit ({error!r}).") from error
    kept = (configuration, run.receipts, ends, seals, dict(run.state), run.manifest)
    return Snapshot(task, arguments, settings, state, *kept)


def task_named(configuration: Any) -> str:
    """Return the name of the task that a configuration is of."""
    named = configuration.get(TASK, NODES) if isinstance(configuration, Mapping) else NODES
    return str(named)


def _check_task(path: Path, found: str, task: Task) -> None:
    if found == task.name:
        return
    other = eraser_of(found, path).task
    raise RunKindError(
        f"{path}: a run that predicts {other.predicts}, not {task.predicts}.",
        hint=f"load it with ge.{other.owner}.load(path).",
    )


def _checked_state(settings: Settings, run: StoredRun) -> State:
    """Return the state of a run that was read, all that compiled code indexes by checked."""
    if run.graph.context != settings.context:
        raise CorruptRunError("its graph has another context than its settings.")
    model = settings.training.model
    check_weights(model, run.shards, run.graph)
    if trained_shards(run.graph, run.partition, model) != tuple(run.shards):
        raise CorruptRunError("the shards with weights are not those with labelled nodes.")
    shards = ShardModels.of(run.shards)
    ensemble = Ensemble(run.graph, run.partition, shards, model, settings.seed)
    if isinstance(settings.aggregator, ChecksTensors):
        settings.aggregator.check_tensors(run.aggregator, ensemble)
    return State(ensemble, settings.aggregator.restore(run.aggregator), run.seeds)


def _split(kept: dict[str, Any]) -> tuple[dict[str, Any], Ends]:
    """Return the settings of a saved run, and the ends of its receipts."""
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


_OWN = ("model", "partition", "aggregation", "training")


def upgrade(path: Path, own: Callable[[Any], Mapping[str, Any]] = lambda _: {}) -> Eraser:
    """Return a run of an earlier version, fitted anew by this one: a run with a log of its own.

    Graph, partition, settings and seed are carried over, so whoever was forgotten stays forgotten.
    Receipts belong to the old log: they stay valid, and stay in the old folder. ``own`` leads from
    the run's configuration to its parts of the user's own, by argument.
    """
    manifest = read_manifest(path, oldest=OLDEST)
    if manifest["version"] == VERSION and not _unsealed(manifest):
        raise RunVersionError(
            f"{path}: in version {VERSION} of the format, which is this one: nothing to upgrade."
        )
    try:
        configuration = manifest["configuration"]
        graph = read_graph(path, manifest["graph"])
        partition = read_partition(path, manifest["partition"])
        brought = own(configuration)
        parts = {name: brought.get(name) for name in _OWN if name in configuration["arguments"]}
        made = eraser_of(task_named(configuration), path)(**restore(configuration, parts))
    except GraphEraserError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise CorruptRunError(f"{path}: can't be carried over ({error!r}).") from error
    return made._fit(graph, partition)


def _unsealed(manifest: Mapping[str, Any]) -> bool:
    """Tell whether the state of a run says less of itself than one of this version does."""
    described = manifest["state"].get("described")
    return not (isinstance(described, Mapping) and "class_names" in described)
