"""Upgrading: fit the data and the settings of an earlier version's run anew, in a new folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapheraser.eraser.load import eraser_of, task_named
from grapheraser.eraser.settings import restore
from grapheraser.errors import CorruptRunError, GraphEraserError, RunVersionError
from grapheraser.store.manifest import OLDEST, VERSION, read_manifest
from grapheraser.store.reading import read_graph, read_partition

if TYPE_CHECKING:
    from grapheraser.eraser.base import Eraser

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
