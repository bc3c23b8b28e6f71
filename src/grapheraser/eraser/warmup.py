"""Compiled code made ready before it is needed, so that no request waits for a compiler."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from grapheraser.eraser.plan import plan_removal
from grapheraser.eraser.settings import Settings
from grapheraser.eraser.state import change_state, fit_state
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Edges, Features, Graph, Nodes, coalesce
from grapheraser.models import CustomModel
from grapheraser.partition import partition_graph


def warm_up(settings: Settings) -> None:
    """Make ready what a run with these settings will use, where that is our own code.

    The first time ever this compiles (and numba keeps the result on disk); the first time in a
    process it loads what was kept; after that it does nothing.
    """
    ours = _is_ours(settings.aggregator) and _is_ours(settings.engine)
    if ours and not isinstance(settings.training.model, CustomModel):
        training = replace(settings.training, epochs=1)
        # A user's parts need not be hashable, and these have no part in what is compiled.
        executor = LocalExecutor(workers=1)
        _rehearse(replace(settings, training=training, executor=executor, partitioner=None))


def _is_ours(part: object) -> bool:
    return type(part).__module__.startswith("grapheraser.")


@lru_cache(maxsize=64)
def _rehearse(tiny: Settings) -> None:
    """Fit, ask and change a graph of a dozen nodes."""
    graph = _tiny_graph()
    state = fit_state(tiny, graph, partition_graph(graph, "random", num_shards=3))
    _ = graph.fingerprint
    for request in (Nodes([0]), Edges([(4, 5)]), Features([7])):
        removal = coalesce(state.graph, request)
        plan = plan_removal(state.graph, state.partition, removal, tiny.halo_key)
        rest = state.graph.without(removal)
        partition = state.partition.without(plan.trained)
        state, _seconds = change_state(
            tiny,
            state,
            rest,
            partition,
            retrain=plan.retrain,
            touched=plan.touched,
            gone=removal.nodes,
        )
        _ = rest.fingerprint
    state.aggregator.predict_proba(state.ensemble, np.arange(2))


def _tiny_graph() -> Graph:
    n = 12
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n])
    return Graph.from_arrays(np.eye(n), ring, np.arange(n) % 2, test=[n - 1], each_edge_once=True)
