"""Compile ahead of time what runs of the built-in models will use."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from grapheraser.aggregation import AGGREGATORS
from grapheraser.eraser.settings import Settings
from grapheraser.eraser.warmup import FEW, MANY, compiling, tiny_graph, warm_up
from grapheraser.errors import GraphEraserError, MissingExtraError
from grapheraser.kernels.compiled import cache_folders, compilations
from grapheraser.models import PRESETS
from grapheraser.models.spec import CLOSED_FORM
from grapheraser.nodes.settings import resolve
from grapheraser.partition import PARTITIONERS, partition_graph

# All built-in models by name.
BUILT_IN = (*PRESETS, *CLOSED_FORM)


@dataclass(frozen=True)
class WarmUp:
    """Result of `warm_up_models`.

    Attributes:
        models: names of the models that are ready now.
        kernels: how many had to be compiled.
        seconds: the time that it took.
        folders: where compiled code is read from, in this order.
    """

    models: tuple[str, ...]
    kernels: int
    seconds: float
    folders: tuple[Path, ...]


def warm_up_models(models: Sequence[str], arguments: Mapping[str, Any]) -> WarmUp:
    """Compile what runs of these models will use, whatever their graph, partition, aggregation.

    Args:
        models: names of built-in models.
        arguments: all others of `GraphEraser`, by name.
    """
    started, before = time.perf_counter(), len(compilations())
    for settings in _settings(models, arguments):
        for num_features, few in product((FEW, MANY), (False, True)):
            warm_up(settings, num_features, few=few)
    for method in PARTITIONERS:
        with compiling(), suppress(MissingExtraError):
            partition_graph(tiny_graph(FEW), method, num_shards=3)
    fresh = compilations()[before:]
    if any(done.folder is None for done in fresh):
        raise GraphEraserError(
            f"{len(fresh)} kernels were compiled, but no folder takes the result.",
            hint="set NUMBA_CACHE_DIR to a folder that can be written to.",
        )
    seconds = time.perf_counter() - started
    return WarmUp(tuple(models), len(fresh), seconds, tuple(cache_folders()))


def _settings(models: Sequence[str], arguments: Mapping[str, Any]) -> list[Settings]:
    """The settings of each model, and one of each other aggregation."""
    ways = [{"model": model} for model in models]
    shards = next((model for model in models if model not in CLOSED_FORM), None)
    if shards is not None:
        ways += [{"model": shards, "aggregation": name} for name in AGGREGATORS]
    return [resolve({**arguments, **way}) for way in ways]
