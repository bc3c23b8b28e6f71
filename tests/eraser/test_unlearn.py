"""Forgetting at the edges: fewer nodes than shards, and requests that are none."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import ParameterError, UnknownNodeError
from tests.strategies import small_graph


def test_fewer_nodes_than_shards_are_the_state_of_a_fresh_fit() -> None:
    graph = small_graph()
    eraser = ge.GraphEraser(num_shards=8, epochs=2).fit(graph)
    receipt = eraser.unlearn(ge.Nodes(graph.train_nodes[3:]))
    assert receipt.statement == "exact"
    afresh = ge.GraphEraser(num_shards=8, epochs=2).fit(eraser.graph_)
    expected = {name: array.tobytes() for name, array in afresh._snapshot.state.tensors().items()}
    assert {n: a.tobytes() for n, a in eraser._snapshot.state.tensors().items()} == expected
    assert eraser.verify().identical


def test_what_is_no_request_and_no_node_is_told() -> None:
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(small_graph())
    for nothing in (np.array(5), np.array(None)):
        with pytest.raises(ParameterError, match="a change must be"):
            eraser.plan(nothing)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="a request must be"):
            eraser.unlearn(nothing)  # type: ignore[arg-type]
    for nobody in ([], [1, 2], None, True):
        with pytest.raises(ParameterError, match="'node' of explain must be one node id"):
            eraser.explain(nobody)  # type: ignore[arg-type]
    with pytest.raises(UnknownNodeError, match="node '1' is not in the graph"):
        eraser.explain("1")
