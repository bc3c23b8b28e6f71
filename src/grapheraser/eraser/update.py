"""Changing: check a list of changes, place new nodes, retrain what sees them, relearn."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grapheraser.eraser.carry_out import carry_out
from grapheraser.eraser.plan import Ids, Plan, leaving_shards, plan_edit
from grapheraser.eraser.snapshot import AnySnapshot, Snapshot
from grapheraser.graph import Edit, Graph, GraphChange
from grapheraser.graph.roles import SHARDED_ROLES
from grapheraser.partition import Partition
from grapheraser.partition.placing import place_nodes
from grapheraser.training.edge_arguments import check_new_weights


def update(
    now: AnySnapshot, changes: GraphChange | Sequence[GraphChange], *, action: str = "update"
) -> AnySnapshot:
    """The snapshot after a list of changes, and its receipt."""
    started = time.perf_counter()
    plan, graph, partition = planned(now, changes)
    timings = {"planning": time.perf_counter() - started}
    return carry_out(now, plan, graph, partition, action=action, timings=timings, started=started)


def planned(
    now: Snapshot, changes: GraphChange | Sequence[GraphChange]
) -> tuple[Plan, Graph, Partition]:
    """What a list of changes takes, and the graph and the partition that it leads to."""
    edit, state, halo = now.edit(changes), now.state, now.settings.halo_key
    graph = state.graph.updated(edit)
    now.check_left(graph)
    check_new_weights(now.settings.training.model, graph, edit.entries.values)
    partition = state.partition.without(leaving_shards(state.graph, state.partition, edit.removal))
    entering = _entering(graph, partition, edit)
    shards, inputs = place_nodes(partition, graph, entering, now.settings.partitioner)
    partition = partition.with_nodes(entering, shards, inputs=inputs)
    before = state.graph, state.partition
    plan = plan_edit(before, (graph, partition), edit, entering, halo)
    return replace(plan, notes=now.shrunk(partition.num_nodes)), graph, partition


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
