"""Forgetting and adding: from one fitted value to the next, with a receipt of what was done."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from grapheraser.eraser.accounting import Deed, write_receipt
from grapheraser.eraser.plan import Request, insertion_digest
from grapheraser.eraser.snapshot import Fitted
from grapheraser.eraser.state import change_state
from grapheraser.partition.placing import place_node


def forget(now: Fitted, request: Request | Sequence[Request]) -> Fitted:
    """What is left without the nodes, edges or features of a request."""
    started = time.perf_counter()
    plan = now.plan(request)
    planned = time.perf_counter()
    graph = now.state.graph.without(plan.removal)
    partition = now.state.partition.restricted_to(graph.train_nodes)
    changed = time.perf_counter()
    state, timings = change_state(
        now.settings, now.state, graph, partition, retrain=plan.retrain, touched=plan.touched
    )
    timings = {"planning": planned - started, "graph": changed - planned, **timings}
    counts = {
        "nodes": len(plan.removal.nodes),
        "edges": len(plan.removal.edges),
        "features": len(plan.removal.features),
        "untrained": plan.untrained_nodes + plan.cut_edges,
    }
    shards = (*plan.retrain, *plan.emptied)
    deed = Deed("unlearn", plan.removal.digest, counts, shards, timings, started)
    return now.then(state, write_receipt(deed, now, state))


def add_node(
    now: Fitted,
    node_id: int,
    features: ArrayLike | sp.sparray,
    label: int,
    neighbours: ArrayLike,
) -> Fitted:
    """What there is with one training node more."""
    started = time.perf_counter()
    graph = now.state.graph.with_node(node_id, features, label, neighbours)
    others = graph.neighbours(node_id)
    cut = now.state.partition
    shard, inputs = place_node(cut, graph, node_id, now.settings.partitioner)
    partition = cut.with_node(node_id, shard, inputs=inputs)
    changed = time.perf_counter()
    touched = np.union1d(others, [node_id])
    state, timings = change_state(
        now.settings, now.state, graph, partition, retrain=(shard,), touched=touched
    )
    timings = {"graph": changed - started, **timings}
    counts = {"nodes": 1, "edges": len(others), "features": 0, "untrained": 0}
    request = insertion_digest(graph, node_id)
    deed = Deed("insert", request, counts, (shard,), timings, started)
    return now.then(state, write_receipt(deed, now, state))
