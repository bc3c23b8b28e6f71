"""Edges are seen until they are forgotten."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.audit.attacks.edges import candidate_edges, confidence_drop, edge_attack
from grapheraser.audit.attacks.shadow import fitted, parameters
from grapheraser.errors import ParameterError


@pytest.mark.long
def test_edges_are_seen_until_they_are_forgotten(demo: ge.Graph) -> None:
    eraser = fitted(parameters(ge.GraphEraser(partition="hash", num_shards=4, epochs=15)), demo)
    result = edge_attack(eraser, demo, runs=12, candidates=80, targets=3, requests=8)
    assert result.before.auc.low > 0.55
    assert result.after.auc.value < result.before.auc.low
    assert result.after.auc.holds(0.5)
    assert result.drop.auc.low > 0.95
    assert result.to_dict()["candidates"] == 80


def test_candidate_edges_share_no_end_and_are_trained_on(demo: ge.Graph) -> None:
    edges = candidate_edges(demo, 50, 0)
    assert len(np.unique(edges)) == 100
    assert np.isin(edges, demo.train_nodes).all()
    assert demo.has_edges(edges).all()


def test_a_graph_without_edges_is_refused(small: ge.Graph) -> None:
    bare = small.without(ge.Edges(map(tuple, small.edges.tolist())))
    eraser = ge.GraphEraser(num_shards=2, epochs=2).fit(bare)
    with pytest.raises(ParameterError, match="4 edges"):
        confidence_drop(eraser, bare)
