"""Nodes that are not in the graph are judged as test nodes would be, and leave nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation import AGGREGATORS
from grapheraser.errors import GraphError, ParameterError, UnknownNodeError
from grapheraser.graph.roles import SHARDED_ROLES
from tests.strategies import (
    TwoHops,
    Weighing,
    small_graph,
    small_graphs,
    with_edge_values,
)


def as_test_node(
    eraser: ge.GraphEraser, row: NDArray[Any], near: Any, weight: Any = None, attr: Any = None
) -> NDArray[np.float32]:
    """The same state on a graph that is built anew, with one more test node."""
    graph = eraser.graph_
    node = int(graph.ids[-1]) + 1
    edges = graph.ids[graph.edge_index].T
    new = np.array([(node, other) for other in near] + [(other, node) for other in near], int)
    parts: dict[str, Any] = {}
    for name, old, given_ in (
        ("edge_weight", graph.edge_weight, weight),
        ("edge_attr", graph.edge_attr, attr),
    ):
        if old is not None:
            parts[name] = np.concatenate([old, given_, given_]) if len(near) else old
    longer = ge.Graph.from_arrays(
        np.concatenate([graph.x.toarray(), [row]]),
        np.concatenate([edges, new.reshape(-1, 2)]).T,
        [*graph.y, -1],
        ids=[*graph.ids, node],
        train=graph.train_nodes,
        validation=graph.validation_nodes,
        test=[*graph.test_nodes, node],
        num_classes=graph.num_classes,
        directed=graph.directed,
        **parts,
    ).with_context(graph.context)
    state = eraser._snapshot.state
    ensemble = replace(state.ensemble, graph=longer)
    return state.aggregator.predict_proba(ensemble, longer.positions([node]))[0]


@pytest.mark.parametrize(
    ("model", "aggregation"),
    [
        *(("gcn", aggregation) for aggregation in AGGREGATORS),
        *((model, "routed") for model in ("sage", "gat", "gin", "mlp", TwoHops, "closed-form")),
    ],
)
@settings(max_examples=2)
@given(st.data())
def test_a_new_node_gets_what_a_test_node_would(
    model: Any, aggregation: str, data: st.DataObject
) -> None:
    graph = data.draw(small_graphs())
    context = data.draw(st.sampled_from(list(SHARDED_ROLES)))
    options: dict[str, Any] = {"num_shards": 3, "epochs": 2, "context": context}
    eraser = ge.GraphEraser(model, aggregation=aggregation, **options).fit(graph)
    before = eraser._snapshot
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.integers(0, 3, size=(3, graph.num_features)).astype(np.float32)
    near = [rng.choice(graph.ids, count, replace=False).tolist() for count in (0, 2, 9)]
    found = eraser.predict_proba_new(x, near)
    for row, others, got in zip(x, near, found, strict=True):
        assert got.tobytes() == as_test_node(eraser, row, others).tobytes()
    assert eraser._snapshot is before
    assert eraser.predict_new(x, near).tolist() == found.argmax(axis=1).tolist()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "model", ["gcn", pytest.param(ge.CustomModel(Weighing, hops=2), marks=pytest.mark.gnn)]
)
def test_new_edges_count_with_what_they_carry(model: Any, directed: bool) -> None:
    columns = 0 if model == "gcn" else 1
    graph = with_edge_values(small_graph(), columns=columns, directed=directed)
    eraser = ge.GraphEraser(model, num_shards=2, epochs=2).fit(graph)
    near, weights = graph.ids[[1, 5, 9]], [0.5, 0.0, 2.0]
    attr = np.arange(3.0)[:, None] if columns else None
    row = graph.x[[2]].toarray()[0]
    found = eraser.predict_proba_new(
        [row], [near], edge_weight=[weights], edge_attr=None if attr is None else [attr]
    )
    assert found[0].tobytes() == as_test_node(eraser, row, near, weights, attr).tobytes()
    with pytest.raises(GraphError, match=r"each of the .* new edges needs one"):
        eraser.predict_new([row], [near])
    if model == "gcn":
        with pytest.raises(GraphError, match="must not be negative"):
            eraser.predict_new([row], [near], edge_weight=[[1, -1, 1]])


def test_a_node_is_judged_alone(demo: ge.Graph) -> None:
    """What else is asked about has no part in an answer."""
    eraser = ge.GraphEraser(num_shards=4, epochs=2).fit(demo)
    hub = int(demo.ids[demo.degree.argmax()])
    x, near = demo.x[:20], [[hub, int(node)] for node in demo.ids[20:40]]
    together = eraser.predict_proba_new(x, near)
    for at in range(0, 20, 7):
        alone = eraser.predict_proba_new(x[[at]], [near[at]])
        assert alone[0].tobytes() == together[at].tobytes()
    assert eraser.predict_proba_new(x[:0], []).shape == (0, demo.num_classes)


def test_an_id_is_found_where_the_largest_is_taken(small: ge.Graph) -> None:
    last = small.updated(ge.AddNodes([2**63 - 1], np.ones((1, 12)), [0]))
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(last)
    assert eraser.predict_new(np.ones((1, 12)), [[2**63 - 1]]).shape == (1,)


BAD: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "one row": ([1.0] * 12, [[3]], ParameterError, "one row per node"),
    "columns": (np.ones((1, 13)), [[]], GraphError, "12 columns"),
    "NaN": (np.full((1, 12), np.nan), [[]], GraphError, "finite"),
    "flat neighbours": (np.ones((1, 12)), [3], ParameterError, "a list for each of 1 nodes"),
    "too few lists": (np.ones((2, 12)), [[]], ParameterError, "a list for each of 2 nodes"),
    "no list": (np.ones((1, 12)), 3, ParameterError, "a list for each"),
    "unknown": (np.ones((1, 12)), [[998, 999]], UnknownNodeError, "nodes 998 and 999 are not"),
    "weights": (np.ones((1, 12)), [[]], ParameterError, "'edge_weight' of predict_new"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_nodes_have_their_own_errors(small: ge.Graph, case: str) -> None:
    x, near, error, message = BAD[case]
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(small)
    with pytest.raises(error, match=message):
        eraser.predict_new(x, near, edge_weight=[1.0] if case == "weights" else None)
