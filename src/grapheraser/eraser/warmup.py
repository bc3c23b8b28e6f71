"""Compiled code made ready before it is needed, so that no request waits for a compiler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.aggregation import AGGREGATORS
from grapheraser.aggregation.pooled import PooledAggregator
from grapheraser.aggregation.sample.membership import few_labels
from grapheraser.aggregation.solvers.log_linear import pool_weights
from grapheraser.eraser.beside import is_worth_it, members_beside
from grapheraser.eraser.plan import plan_removal
from grapheraser.eraser.settings import Settings, resolve
from grapheraser.eraser.state import change_state, fit_state
from grapheraser.errors import GraphEraserError, MissingExtraError
from grapheraser.execution import LocalExecutor
from grapheraser.graph import (
    UNLABELLED,
    Edges,
    Features,
    Graph,
    Labels,
    Nodes,
    Request,
    coalesce,
)
from grapheraser.graph.structure import check_structure
from grapheraser.kernels.compiled import (
    cache_folders,
    compilations,
    compiled_elsewhere,
    watched,
)
from grapheraser.models import PRESETS, CustomModel
from grapheraser.models.spec import CLOSED_FORM
from grapheraser.partition import PARTITIONERS, partition_graph
from grapheraser.progress import counted
from grapheraser.training import TrainingConfig

# All built-in models by name.
BUILT_IN = (*PRESETS, *CLOSED_FORM)
# Regressions on few features and on many have kernels of their own; see `members.features`.
_FEW, _MANY = 170, 600


@contextmanager
def compiling() -> Iterator[None]:
    """Show what has to be compiled inside, in place of any other progress."""
    with counted("compiling kernels, once per machine:") as begin, watched(begin):
        yield


def warm_up(
    settings: Settings, num_features: int, *, weighted: bool = False, few: bool = False
) -> None:
    """Make ready what a run with these settings will use, where that is our own code.

    The first time ever this compiles, and the result is kept on disk; the first time in a process
    it loads what was kept; after that it does nothing.

    Args:
        settings: of the run.
        num_features: columns of its graph.
        weighted: whether the edges of its graph carry anything.
        few: whether its labels are few, see `few_labels`.
    """
    ours = _is_ours(settings.aggregator) and _is_ours(settings.engine)
    if ours and not isinstance(settings.training.model, CustomModel):
        # What a user trains with need not suit tiny graphs, and is no code of ours.
        training = TrainingConfig(replace(settings.training.model, lr=0.01), epochs=1)
        # A user's parts need not be hashable, and these have no part in what is compiled.
        executor = LocalExecutor(workers=1)
        tiny = replace(settings, training=training, executor=executor, partitioner=None)
        with compiling():
            rehearse = partial(_rehearse, many=num_features > _FEW, weighted=weighted, few=few)
            if _has_two_parts(tiny) and is_worth_it():
                _rehearse_beside(tiny, num_features, rehearse)
            rehearse(tiny)


def warm_up_for(settings: Settings, graph: Graph) -> None:
    """Compile what a run with these settings will use on this graph."""
    few = few_labels(graph.with_context(settings.context))
    warm_up(settings, graph.num_features, weighted=graph.edge_kind.width > 0, few=few)


def warm_up_aloud(arguments: Mapping[str, Any], num_features: int) -> None:
    """The same for all arguments of `GraphEraser`; prints the name of each kernel to compile.

    For a process beside one that rehearses shards: what both need, and the other comes to late,
    is compiled first.
    """
    with watched(partial(print, flush=True)):
        pool_weights(np.zeros((1, 1, 2)), np.zeros(1, dtype=np.int64), np.ones(1))
        warm_up(resolve(arguments), num_features)


def _has_two_parts(settings: Settings) -> bool:
    pool = settings.aggregator
    return isinstance(pool, PooledAggregator) and pool.shards and bool(pool.members)


def _rehearse_beside(
    tiny: Settings, num_features: int, rehearse: Callable[[Settings], None]
) -> None:
    """Rehearse shards here and members in another process, where both have much to compile."""
    pool = tiny.aggregator
    assert isinstance(pool, PooledAggregator)
    with suppress(OSError), members_beside(pool.members, num_features) as kernels:
        shards = replace(tiny, aggregator=replace(pool, members=()))
        rehearse(shards)
        compiled_elsewhere(kernels)


@dataclass(frozen=True)
class WarmUp:
    """What `warm_up_models` did.

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
        for num_features, few in product((_FEW, _MANY), (False, True)):
            warm_up(settings, num_features, few=few)
    for method in PARTITIONERS:
        with compiling(), suppress(MissingExtraError):
            partition_graph(_tiny_graph(_FEW), method, num_shards=3)
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


def _is_ours(part: object) -> bool:
    return type(part).__module__.startswith("grapheraser.")


@lru_cache(maxsize=64)
def _rehearse(tiny: Settings, *, many: bool, weighted: bool, few: bool) -> None:
    """Fit, ask and change graphs of a dozen nodes, with many features or a dozen."""
    num_features = _MANY if many else 12
    graph = _tiny_graph(num_features, 4 if few else 12, weighted=weighted)
    _walk(tiny, graph, (Nodes([0]), Edges([(4, 5)]), Features([7]), Labels([1])))


def _walk(tiny: Settings, graph: Graph, requests: Sequence[Request]) -> None:
    state = fit_state(tiny, graph, partition_graph(graph, "random", num_shards=3))
    _ = graph.fingerprint
    for request in requests:
        removal = coalesce(state.graph, request)
        plan = plan_removal(state.graph, state.partition, removal, tiny.halo_key)
        rest = state.graph.without(removal)
        partition = state.partition.without(plan.trained)
        state, _seconds = change_state(
            tiny,
            state,
            rest,
            partition,
            retrain=plan.stale,
            touched=plan.touched,
            gone=removal.nodes,
        )
        _ = rest.fingerprint
    state.aggregator.predict_proba(state.ensemble, np.arange(2))
    check_structure(graph.pages, graph.num_classes)  # as every run that is read


def _tiny_graph(num_features: int, labels: int = 12, *, weighted: bool = False) -> Graph:
    """A ring of a dozen nodes; those beyond so many labels are context nodes."""
    n = 12
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n])
    x, weights = np.eye(n, num_features), np.ones(n) if weighted else None
    y, test = np.where(np.arange(n) < labels, np.arange(n) % 2, UNLABELLED), [n - 1]
    return Graph.from_arrays(x, ring, y, test=test, each_edge_once=True, edge_weight=weights)
