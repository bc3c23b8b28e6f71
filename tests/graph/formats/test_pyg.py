"""PyG Data goes in and comes out."""

from __future__ import annotations

import re
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from torch_geometric.data import Data, HeteroData, TemporalData

import grapheraser as ge
from grapheraser.errors import GraphError
from tests.graph.oracle import plain
from tests.strategies import small_graphs


@given(small_graphs())
def test_out_and_back_in_is_the_same_graph(graph: ge.Graph) -> None:
    back = ge.Graph.from_pyg(graph.to_pyg(), num_classes=graph.num_classes)
    assert back == graph
    assert back.notes == ()


def test_what_comes_out_is_valid_for_pyg(small: ge.Graph) -> None:
    data = small.to_pyg()
    assert data.validate()
    assert data.is_undirected()
    assert not data.has_self_loops()
    assert data.is_coalesced()
    assert data.num_nodes == small.num_nodes


def test_changing_what_came_out_changes_no_graph(small: ge.Graph) -> None:
    before = plain(small)
    data = small.to_pyg()
    for key in ("x", "y", "edge_index", "node_id"):
        data[key][:] = 1
    assert plain(small) == before


def example(**changes: Any) -> Data:
    fields = {
        "x": torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]),
        "edge_index": torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        "y": torch.tensor([0, 1, 0]),
        **changes,
    }
    return Data(**fields)


def test_the_input_is_not_changed() -> None:
    data = example(train_mask=torch.tensor([True, True, False]))
    copies = {key: value.clone() for key, value in data.to_dict().items()}
    graph = ge.Graph.from_pyg(data)
    data.x[0, 0] = 9
    assert graph.x[0, 0] == 1
    data.x[0, 0] = 1
    assert data.to_dict().keys() == copies.keys()
    assert all(torch.equal(data[key], value) for key, value in copies.items())


def test_sparse_features_are_read_without_making_them_dense() -> None:
    dense = ge.Graph.from_pyg(example())
    x = example().x
    assert ge.Graph.from_pyg(example(x=x.to_sparse())) == dense


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_csr_features_are_read_without_making_them_dense() -> None:
    assert ge.Graph.from_pyg(example(x=example().x.to_sparse_csr())) == ge.Graph.from_pyg(example())


def test_masks_give_the_split_and_node_id_the_ids() -> None:
    data = example(
        node_id=torch.tensor([30, 10, 20]),
        train_mask=torch.tensor([True, False, False]),
        test_mask=torch.tensor([False, True, False]),
    )
    graph = ge.Graph.from_pyg(data)
    assert graph.ids.tolist() == [10, 20, 30]
    assert graph.train_nodes.tolist() == [30]
    assert graph.test_nodes.tolist() == [10]
    assert graph.neighbours(10).tolist() == [20, 30]


def test_labels_as_a_column_are_read_flat() -> None:
    assert ge.Graph.from_pyg(example(y=torch.tensor([[0], [1], [0]]))) == ge.Graph.from_pyg(
        example()
    )


@pytest.mark.parametrize("key", ["x", "edge_index", "y"])
def test_a_missing_field_is_named(key: str) -> None:
    data = example(**{key: None})
    data.num_nodes = 3
    with pytest.raises(GraphError, match=f"found no '{key}'"):
        ge.Graph.from_pyg(data)


def test_end_points_out_of_range_are_an_error() -> None:
    with pytest.raises(GraphError, match=r"in \[0, 2\] \(found 0 to 3\)"):
        ge.Graph.from_pyg(example(edge_index=torch.tensor([[0], [3]])))


def test_as_many_node_ids_as_nodes() -> None:
    with pytest.raises(GraphError, match=r"3 \(found shape \[2\]\)"):
        ge.Graph.from_pyg(example(node_id=torch.tensor([1, 2])))


def test_numpy_fields_are_read_too() -> None:
    data = example()
    data.y = np.array([0, 1, 0])
    assert ge.Graph.from_pyg(data) == ge.Graph.from_pyg(example())


def test_features_of_half_precision_are_taken_as_they_are() -> None:
    x = example().x
    for narrow in (x.half(), x.bfloat16(), x.bfloat16().to_sparse()):
        assert ge.Graph.from_pyg(example(x=narrow)) == ge.Graph.from_pyg(example())


def test_several_splits_are_refused_with_the_way_to_choose_one() -> None:
    masks = torch.ones(3, 10, dtype=torch.bool)
    with pytest.raises(GraphError, match="found 10 columns") as caught:
        ge.Graph.from_pyg(example(train_mask=masks))
    assert "data.train_mask[:, 0]" in str(caught.value.hint)
    assert ge.Graph.from_pyg(example(train_mask=masks[:, :1])).train_nodes.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "mask", [torch.ones(2, dtype=torch.bool), torch.tensor([0, 2]), torch.tensor([0, 2, 1])]
)
def test_a_mask_says_true_or_false_for_every_node(mask: torch.Tensor) -> None:
    for key in ("train_mask", "test_mask"):
        with pytest.raises(GraphError, match=f"'{key}' must say true or false for each of the 3"):
            ge.Graph.from_pyg(example(**{key: mask}))


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"edge_index": torch.tensor([[0.0], [1.0]])}, "dtype float32"),
        ({"edge_index": torch.tensor([[True], [False]])}, "dtype bool"),
        ({"node_id": torch.tensor([[1], [2], [3]])}, r"shape \[3, 1\]"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(changes: dict[str, Any], found: str) -> None:
    with pytest.raises(GraphError, match=rf"found .*{found}"):
        ge.Graph.from_pyg(example(**changes))


def test_weights_features_and_directions_of_edges_are_used() -> None:
    weights, rows = torch.tensor([1.0, 1.0, 2.0, 2.0]), torch.ones(4, 2)
    graph = ge.Graph.from_pyg(example(edge_weight=weights, edge_attr=rows))
    assert graph.notes == ()
    np.testing.assert_array_equal(graph.edge_weight, weights)
    np.testing.assert_array_equal(graph.edge_attr, rows)
    one_way = example(edge_index=torch.tensor([[0, 2], [1, 1]]), edge_attr=torch.tensor([5.0, 6.0]))
    graph = ge.Graph.from_pyg(one_way, directed=True)
    np.testing.assert_array_equal(graph.edge_index, one_way.edge_index)
    np.testing.assert_array_equal(graph.edge_attr, [[5.0], [6.0]])
    assert graph.to_pyg().is_directed()


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1, 1], [1, 0, 2]], "the input was directed: the reverse of 1 edges was added"),
        ([[0, 1, 0], [1, 0, 1]], "1 duplicate edges dropped"),
        ([[0, 1, 2], [1, 0, 2]], "1 self-loops dropped"),
    ],
)
def test_what_is_put_right_is_warned_of(edges: list[list[int]], message: str) -> None:
    with pytest.warns(UserWarning, match=message) as caught:
        ge.Graph.from_pyg(example(edge_index=torch.tensor(edges)), name="mine")
    assert str(caught[0].message).startswith("graph 'mine': ")


@pytest.mark.parametrize(
    ("field", "instead"),
    [
        ("pos", "put positions into 'x'"),
        ("n_id", "name it 'node_id'"),
        ("edge_type", "put it into 'edge_attr'"),
        ("whatever", "delete it from the Data"),
    ],
)
def test_a_field_that_is_not_used_is_warned_of_with_what_to_do(field: str, instead: str) -> None:
    with pytest.warns(UserWarning, match=f"'{field}' is not used: {instead}") as caught:
        graph = ge.Graph.from_pyg(example(**{field: torch.arange(3)}))
    assert len(caught) == len(graph.notes) == 1


def test_masks_give_every_node_its_role() -> None:
    train, val, _ = torch.eye(3, dtype=torch.bool)
    graph = ge.Graph.from_pyg(example(train_mask=train, val_mask=val))
    assert graph.notes == ()
    assert graph.role.tolist() == [1, 3, 0]
    for node, ids in enumerate((graph.train_nodes, graph.validation_nodes, graph.context_nodes)):
        assert ids.tolist() == [node]
    back = graph.to_pyg()
    assert back.val_mask.tolist() == val.tolist()
    assert ge.Graph.from_pyg(back) == graph
    # Without a train mask all other labelled nodes train.
    assert ge.Graph.from_pyg(example(val_mask=val)).train_nodes.tolist() == [0, 2]
    with pytest.raises(GraphError, match="node 0 is both a training and a validation node"):
        ge.Graph.from_pyg(example(train_mask=train, val_mask=train))
    with pytest.raises(GraphError, match="'val_mask' must be one split"):
        ge.Graph.from_pyg(example(train_mask=train, val_mask=torch.ones(3, 20, dtype=torch.bool)))


def test_other_kinds_of_data_are_refused_with_what_to_do() -> None:
    hetero = HeteroData()
    hetero["author"].x = torch.ones(3, 2)
    with pytest.raises(GraphError, match=r"needs .target.*one of author"):
        ge.Graph.from_pyg(hetero)
    with pytest.raises(GraphError, match=r"0, 1, or -1"):
        ge.Graph.from_pyg(example(y=torch.full((3, 4), 7)))
    sparse = Data(x=example().x, y=example().y, adj_t=torch.eye(3).to_sparse_csr())
    with pytest.raises(GraphError, match="found no 'edge_index'") as caught:
        ge.Graph.from_pyg(sparse)
    assert "adj_t" in str(caught.value.hint)


class Frame:
    columns = ("id", "age")


@pytest.mark.parametrize(
    "fit", [ge.GraphEraser("closed-form").fit, ge.LinkEraser().fit, ge.Embedder().fit]
)
@pytest.mark.parametrize(
    ("world", "found", "hint"),
    [
        (networkx.path_graph(3), "networkx.Graph", "Graph.from_networkx"),
        ([Data()], "builtins.list", r"data\[0\]"),
        (Frame(), "Frame", "Graph.from_tables"),
        (sp.eye_array(3), "scipy.", "Graph.from_scipy"),
        ("cora", "builtins.str", "ge.load_dataset"),
        (np.eye(3), "numpy.ndarray", "Graph.from_arrays"),
    ],
)
def test_what_is_no_graph_is_told_what_reads_it(
    fit: Any, world: Any, found: str, hint: str
) -> None:
    with pytest.raises(GraphError, match=f"not a Graph, nor a PyG Data .found .*{found}") as caught:
        fit(world)
    assert re.search(hint, str(caught.value.hint))


def test_events_are_no_graph() -> None:
    ends = torch.tensor([0, 1])
    events = TemporalData(src=ends, dst=ends.flip(0), t=ends, msg=torch.zeros(2, 1))
    with pytest.raises(GraphError, match="TemporalData is a list of events") as caught:
        ge.GraphEraser().fit(events)
    assert "torch.stack([data.src, data.dst])" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("field", "instead"),
    [("edge_time", "part of 'edge_attr'"), ("time", "into 'x'"), ("extra", "part of 'x'")],
)
def test_a_field_that_is_not_used_is_sent_where_it_belongs(field: str, instead: str) -> None:
    pairs = torch.tensor([[0, 1], [1, 0]])
    data = Data(x=torch.eye(2), edge_index=pairs, y=torch.tensor([0, 1]))
    data[field] = torch.ones(2)
    with pytest.warns(UserWarning, match=f"'{field}' is not used: .*{instead}"):
        ge.Graph.from_pyg(data)
