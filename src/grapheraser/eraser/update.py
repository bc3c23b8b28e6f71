"""Changing: check a list of changes, place new nodes, retrain what sees them, relearn."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from grapheraser.engines.graph_checks import check_new_weights
from grapheraser.eraser.change import change, completed
from grapheraser.eraser.plan import Ids, Plan, leaving_shards, plan_edit
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.graph import Edit, Graph, GraphChange, edit_of
from grapheraser.graph.changes.requests import as_tuple
from grapheraser.graph.roles import SHARDED_ROLES
from grapheraser.partition import Partition
from grapheraser.partition.placing import place_nodes


def update(now: Snapshot, changes: Any, *, action: str = "update") -> Snapshot:
    """Return the snapshot after a list of changes, with its receipt."""
    started = time.perf_counter()
    parts = now.task.changes_of(now, as_tuple(changes))
    plan, graph, partition = plan_changes(now, parts)
    timings = {"planning": time.perf_counter() - started}
    return change(now, plan, graph, partition, action=action, timings=timings, started=started)


def plan_changes(now: Snapshot, changes: Sequence[GraphChange]) -> tuple[Plan, Graph, Partition]:
    """Work out what a list of changes takes, and the graph and partition that it leads to."""
    state, halo = now.state, now.settings.halo_key
    edit = edit_of(state.graph, changes)
    now.task.check_edit(now, edit)
    graph = state.graph.updated(edit)
    now.task.check_left(state.graph, graph)
    check_new_weights(now.settings.training.model, graph, edit.entries.values)
    partition = state.partition.without(leaving_shards(state.graph, state.partition, edit.removal))
    entering = _entering(graph, partition, edit)
    shards, inputs = place_nodes(partition, graph, entering, now.settings.partitioner)
    partition = partition.with_nodes(entering, shards, inputs=inputs)
    before = state.graph, state.partition
    plan = plan_edit(before, (graph, partition), edit, entering, halo)
    return completed(now, plan, partition.num_nodes), graph, partition


def _entering(graph: Graph, partition: Partition, edit: Edit) -> Ids:
    """Sorted ids of the nodes that have to be placed: new ones, and those that got a label."""
    nodes = np.union1d(edit.nodes, edit.labels)
    placed = np.isin(graph.roles(nodes), SHARDED_ROLES[graph.context])
    outside = len(edit.nodes) - int(np.isin(edit.nodes, nodes[placed]).sum())
    if outside:
        warnings.warn(
            f"{outside} of {len(edit.nodes)} new nodes have no label: under context='none' they "
            "are in no shard, and nothing is learned from them (context='unlabelled' would put "
            "them into one).",
            stacklevel=2,
        )
    nodes = nodes[placed]
    return nodes[~partition.contains(nodes)]
