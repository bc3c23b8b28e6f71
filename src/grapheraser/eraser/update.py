"""Growing: place a new node, retrain the shards that see it, relearn, write the receipt."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from grapheraser.eraser.record import counts_of, write_receipt
from grapheraser.eraser.snapshot import AnySnapshot
from grapheraser.eraser.state import change_state
from grapheraser.graph import Graph
from grapheraser.graph.ids import one_id
from grapheraser.kernels.paged import edge_value_rows, feature_rows
from grapheraser.partition import Partition
from grapheraser.partition.halo import halo_edges_to
from grapheraser.partition.placing import place_node
from grapheraser.receipts import digest_of
from grapheraser.training.edge_arguments import check_new_weights


def insert(
    now: AnySnapshot,
    node_id: int | str,
    features: ArrayLike | sp.sparray,
    label: int,
    neighbours: ArrayLike,
    **carried: ArrayLike | None,
) -> AnySnapshot:
    """The snapshot with one more training node, and its receipt."""
    started = time.perf_counter()
    node_id = one_id(node_id, "node_id", "insert")
    graph = now.state.graph.with_node(node_id, features, label, neighbours, **carried)
    check_new_weights(now.settings.training.model, graph, node_id)
    others = graph.neighbours(node_id)
    partition = now.state.partition
    shard, inputs = place_node(partition, graph, node_id, now.settings.partitioner)
    partition = partition.with_node(node_id, shard, inputs=inputs)
    retrain = _shards_that_see(graph, partition, node_id, now.settings.halo_key)
    placed = time.perf_counter()
    after, seconds = change_state(
        now.settings,
        now.state,
        graph,
        partition,
        retrain=retrain,
        touched=np.union1d(others, [node_id]),
        gone=np.zeros(0, dtype=np.int64),
    )
    receipt = write_receipt(
        now,
        after,
        action="insert",
        request=_digest(graph, node_id),
        counts=counts_of(nodes=1, edges=len(others)),
        shards=retrain,
        timings={"graph": placed - started, **seconds},
        started=started,
    )
    return now.then(after, receipt)


def _shards_that_see(
    graph: Graph, partition: Partition, node: int, halo: int | None
) -> tuple[int, ...]:
    """The shard of a node, and those with the node in their halo, ascending."""
    seeing = np.array([node])
    if halo is not None:
        members = halo_edges_to(graph, partition, seeing, halo)[:, 0]
        seeing = np.concatenate([seeing, members])
    return tuple(np.unique(partition.shard_of(seeing)).tolist())


def _digest(graph: Graph, node: int) -> str:
    """SHA-256 of an insertion, from the graph that it led to; the requester can compute it.

    It covers all that was handed in: id, label, neighbours, the features that are not 0, and what
    edges carry where they do.
    """
    places = graph.places([node])
    _, columns, values = feature_rows(graph.table, places)
    content = {
        "insert": int(node),
        "label": int(graph.labels([node])[0]),
        "neighbours": graph.neighbours(node).tolist(),
        "columns": columns.tolist(),
        "values": values.tolist(),
    }
    if graph.edge_kind.width:
        content["edges"] = edge_value_rows(graph.table, places).tolist()
    return digest_of(content)
