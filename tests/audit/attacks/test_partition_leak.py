"""What a kept partition remembers of deleted data."""

from __future__ import annotations

from typing import Any

import grapheraser as ge
from grapheraser.audit.attacks.partition_leak import partition_leak


def leak(graph: ge.Graph, method: str, **options: Any) -> Any:
    return partition_leak(graph, method, num_shards=6, candidates=4, **options)


def test_hash_has_nothing_to_remember(demo: ge.Graph) -> None:
    found = leak(demo, "hash")
    assert found.agreement == 1
    assert found.edge.auc == found.edge_recut.auc
    assert found.node is not None
    assert found.node.auc.value == 0.5


def test_metis_remembers_edges_and_nodes(demo: ge.Graph) -> None:
    found = leak(demo, "metis")
    assert found.agreement < 1
    assert found.edge.auc.low > found.edge_recut.auc.value > 0.5
    assert found.node is not None
    assert found.node.auc.value > 0.9


def test_random_knows_who_was_there_but_no_edges(demo: ge.Graph) -> None:
    found = leak(demo, "random")
    assert found.edge.auc.holds(0.5)
    assert found.node is not None
    assert found.node.auc.value > 0.9
