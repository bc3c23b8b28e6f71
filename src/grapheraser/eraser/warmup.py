"""Compile kernels before they are needed, by a rehearsal: a run on a graph of a dozen nodes.

`fit` compiles what it uses as it goes. The first one on a machine has a second process rehearse the
run meanwhile, with the requests that may follow it (`compile_ahead`). `warm_up` rehearses in this
process and returns when everything is compiled: for ``grapheraser warmup``, and for whoever times
a fit.

numba compiles one function at a time in each process. The second one rehearses the members' fits in
the opposite order, so that both meet in the middle, and then the requests, which no fit waits for.
Both keep what they compile in one folder, where the other finds it, and wait for a kernel that the
other has begun (see `kernels.compiled`). What the second leaves undone is compiled here. It ends by
itself, some seconds after the fit, and nobody waits for it.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from grapheraser.aggregation import PooledAggregator, log_linear
from grapheraser.aggregation.members.counting import NAMES as COUNTING
from grapheraser.aggregation.sample.membership import few_labels
from grapheraser.engines import TrainingConfig
from grapheraser.eraser.plan import plan_removal
from grapheraser.eraser.settings import Settings, closed_form
from grapheraser.eraser.state import State, change_state, fit_state
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
from grapheraser.graph.pages.structure import check_structure
from grapheraser.kernels.compiled import can_keep, is_kept, watched
from grapheraser.models import CustomModel
from grapheraser.partition import partition_graph
from grapheraser.progress import counted

# It ends before garbage matters.
_CODE = """
import gc, pickle, sys
gc.disable()
pickle.load(sys.stdin.buffer).run_ahead()
"""


def is_first_use() -> bool:
    """Return whether next to nothing is compiled yet: not even what every pool needs."""
    return not is_kept(log_linear._solve)


def start_process(rehearsal: Any) -> subprocess.Popen[bytes] | None:
    """Have a rehearsal ``run_ahead`` in another process, where there is a processor for it."""
    if processors() < 2 or not sys.executable or not can_keep():
        return None
    try:
        content = pickle.dumps(rehearsal)
        process = subprocess.Popen(
            [sys.executable, "-c", _CODE],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(content)
    except (OSError, pickle.PicklingError, AttributeError, TypeError):
        return None  # this process compiles what it needs
    atexit.register(_leave, process)
    return process


def _leave(process: subprocess.Popen[bytes]) -> None:
    """Let a process end by itself, without Python's warning that it still runs."""
    if process.poll() is None:
        process.returncode = 0


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Regressions on few features and on many have kernels of their own; see `members.features`.
FEW, MANY = 170, 600
_REQUESTS: tuple[Request, ...] = (Nodes([0]), Edges([(4, 5)]), Features([7]), Labels([1]))


@contextmanager
def compiling(*, shown: bool = True) -> Iterator[None]:
    """Show what has to be compiled inside, in place of any other progress."""
    if not shown:
        yield
        return
    with counted("compiling kernels, once per machine:") as begin, watched(begin):
        yield


@dataclass(frozen=True)
class Rehearsal:
    """A run on a tiny graph that uses the kernels of a real one."""

    settings: Settings  # those of the real run, but for what need not suit a tiny graph
    many: bool  # whether its graph has more than `FEW` feature columns
    weighted: bool  # whether the edges of its graph carry anything
    few: bool  # whether its labels are few, see `few_labels`

    def run(self) -> None:
        """Fit, forget something of each kind, predict."""
        state = self._after_requests(self.settings, self._fitted(self.settings))
        state.aggregator.predict_proba(state.ensemble, np.arange(2))
        # As every run that is read.
        check_structure(state.graph.pages, state.graph.label_kind, state.graph.types)

    def run_ahead(self) -> None:
        """Run in another order than a fit that goes on in another process, requests last.

        The two never have to compile the same kernel at the same time, except where they meet.
        """
        pool = self.settings.aggregator
        assert isinstance(pool, PooledAggregator)
        # A real fit takes them the other way round.
        groups = [("features",), ("pattern", "interactions", "surprises"), COUNTING]
        groups = [tuple(name for name in group if name in pool.members) for group in groups]
        parts = [
            closed_form(replace(pool, members=group, shards=False), seed=self.settings.seed)
            for group in groups
            if group
        ]
        states = [self._fitted(part) for part in parts]
        for part, state in zip(parts, states, strict=True):
            self._after_requests(part, state)
        if self.settings.engine.name == "cpu":  # no second process loads torch or takes the GPU
            self.run()

    def _graph(self) -> Graph:
        return tiny_graph(MANY if self.many else 12, 4 if self.few else 12, weighted=self.weighted)

    def _fitted(self, settings: Settings) -> State:
        graph = self._graph()
        num_shards = 1 if settings.training.model.closed_form else 3
        state = fit_state(settings, graph, partition_graph(graph, "random", num_shards=num_shards))
        _ = graph.fingerprint
        return state

    def _after_requests(self, settings: Settings, state: State) -> State:
        for request in _REQUESTS:
            removal = coalesce(state.graph, request)
            plan = plan_removal(state.graph, state.partition, removal, settings.halo_key)
            rest = state.graph.without(removal)
            state, _seconds = change_state(
                settings,
                state,
                rest,
                state.partition.without(plan.trained),
                retrain=plan.stale,
                touched=plan.touched,
                gone=removal.nodes,
            )
            _ = rest.fingerprint
        return state


def compile_ahead(settings: Settings, graph: Graph) -> None:
    """On a first use, start a process that compiles what a run on this graph will use."""
    pool = settings.aggregator
    if isinstance(pool, PooledAggregator) and pool.members and is_first_use():
        rehearsal = _rehearsal_on(settings, graph)
        if rehearsal is not None:
            start_process(rehearsal)


def warm_up(
    settings: Settings, num_features: int, *, weighted: bool = False, few: bool = False
) -> None:
    """Compile what a run with these settings will use, where that is our own code.

    The first time ever this compiles, and the result is kept on disk; the first time in a process
    it loads what was kept; after that it does nothing. ``weighted``: the edges of its graph carry
    something; ``few``: its labels are few, see `few_labels`.
    """
    _run(_rehearsal(settings, num_features, weighted=weighted, few=few))


def warm_up_for(settings: Settings, graph: Graph) -> None:
    """Compile what a run with these settings will use on this graph."""
    compile_ahead(settings, graph)
    _run(_rehearsal_on(settings, graph))


def _run(rehearsal: Rehearsal | None) -> None:
    if rehearsal is not None:
        with compiling():
            _run_once(rehearsal)


@lru_cache(maxsize=64)
def _run_once(rehearsal: Rehearsal) -> None:
    rehearsal.run()


def _rehearsal_on(settings: Settings, graph: Graph) -> Rehearsal | None:
    few = few_labels(graph.with_context(settings.context))
    weighted = graph.edge_kind.width > 0
    return _rehearsal(settings, graph.num_features, weighted=weighted, few=few)


def _rehearsal(
    settings: Settings, num_features: int, *, weighted: bool, few: bool
) -> Rehearsal | None:
    """Return the rehearsal of a run; None where parts of it are a user's own."""
    ours = _is_ours(settings.aggregator) and _is_ours(settings.engine)
    if not ours or isinstance(settings.training.model, CustomModel):
        return None
    # What a user trains with need not suit tiny graphs, and is no code of ours.
    training = TrainingConfig(replace(settings.training.model, lr=0.01), epochs=1)
    # A user's parts need not be hashable, and these have no part in what is compiled.
    executor = LocalExecutor(workers=1)
    tiny = replace(settings, training=training, executor=executor, partitioner=None)
    return Rehearsal(tiny, num_features > FEW, weighted, few)


def _is_ours(part: object) -> bool:
    return type(part).__module__.startswith("grapheraser.")


def tiny_graph(num_features: int, labels: int = 12, *, weighted: bool = False) -> Graph:
    """A ring of a dozen nodes; those beyond so many labels are context nodes."""
    n = 12
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n])
    x, weights = np.eye(n, num_features), np.ones(n) if weighted else None
    y, test = np.where(np.arange(n) < labels, np.arange(n) % 2, UNLABELLED), [n - 1]
    return Graph.from_arrays(x, ring, y, test=test, each_edge_once=True, edge_weight=weights)
