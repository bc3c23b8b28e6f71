"""Raw arrays become a checked graph, or an error that says what was found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import grapheraser as ge
from grapheraser.errors import GraphError, InputError, ParameterError

X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
EDGES = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
Y = np.array([0, 1, 0])


def build(**changes: Any) -> ge.Graph:
    return ge.Graph.from_arrays(**{"x": X, "edge_index": EDGES, "y": Y, **changes})


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "edge to an unknown node": ({"edge_index": [[0], [3]]}, r"among the 3 node ids \(found 3\)"),
    "negative end point": ({"edge_index": [[0], [-1]]}, r"\(found -1\)"),
    "edge between ids that are gaps": (
        {"ids": [2, 4, 6], "edge_index": [[2], [3]]},
        r"\(found 3\)",
    ),
    "edges as triples": ({"edge_index": [[0, 1, 2]]}, r"shape \[2, m\] \(found \[1, 3\]"),
    "edges as pairs": ({"edge_index": [[0, 1], [1, 2], [0, 2]]}, r"hint: .*edges\.T"),
    "edges as floats": ({"edge_index": [[0.0], [1.0]]}, r"integer array.*float64"),
    "edges without nodes": (
        {"x": np.zeros((0, 2)), "y": [], "edge_index": [[0], [1]]},
        r"among the 0 node ids \(found 0\)",
    ),
    "NaN feature": ({"x": [[1, 2], [3, np.nan], [0, 0]]}, r"finite \(found nan in row 1; 1 such"),
    "infinite feature": ({"x": [[1, 2], [3, 4], [np.inf, 0]]}, r"finite \(found inf in row 2"),
    "feature beyond float32": ({"x": [[1, 2], [3, 4], [1e300, 0]]}, r"finite \(found inf in row 2"),
    "NaN in a sparse matrix": (
        {"x": sp.csr_array(np.array([[0, 0], [0, -np.inf], [0, 0.0]]))},
        r"finite \(found -inf in row 1",
    ),
    "features as text": ({"x": [["a"], ["b"], ["c"]]}, "numeric matrix"),
    "flat features": ({"x": [1.0, 2.0, 3.0]}, "numeric matrix .found 1-d"),
    "too few labels": ({"y": [0, 1]}, r"match the 3 feature rows \(found 2\)"),
    "too many labels": ({"y": [0, 1, 0, 1]}, r"match the 3 feature rows \(found 4\)"),
    "label above the classes": ({"num_classes": 2, "y": [0, 1, 2]}, r"in \[0, 1\].*\(found 2\)"),
    "label below -1": ({"y": [0, 1, -2]}, r"\(found -2\)"),
    "labels that are not finite": ({"y": [0.5, np.inf, 0.0]}, "must be finite"),
    "several labels of others": ({"y": np.full((3, 2), 7)}, "0, 1, or -1"),
    "too few ids": ({"ids": [0, 1]}, r"3 rows \(found 2 ids\)"),
    "negative id": ({"ids": [-1, 1, 2], "edge_index": [[], []]}, r"non-negative \(found -1\)"),
    "id twice": ({"ids": [1, 1, 2], "edge_index": [[], []]}, r"unique \(found 1 twice\)"),
    "train and test": ({"train": [0, 1], "test": [1]}, "node 1 is both"),
    "unknown train node": ({"train": [7]}, "training node 7 is not a node id"),
    "unknown validation node": ({"validation": [7]}, "validation node 7 is not a node id"),
    "two roles": ({"test": [1], "validation": [1]}, "node 1 is both a test and a validation node"),
    "unknown test node": ({"test": [7]}, "test node 7 is not a node id"),
    "more columns than can be counted": (
        {"x": sp.csr_array((3, 2**31))},
        "at most 2147483647 feature columns",
    ),
    "complex features": ({"x": sp.csr_array(1j * X)}, "numeric matrix .*complex128"),
    "ragged features": ({"x": [[1.0], [2.0, 3.0], [4.0]]}, "features must be a plain array"),
    "ragged edges": ({"edge_index": [[0], [1, 2]]}, "edge_index must be a plain array"),
    "ragged labels": ({"y": [0, [1], 0]}, "labels must be a plain array"),
    "end point beyond int64": (
        {"edge_index": np.array([[0], [2**64 - 1]], dtype=np.uint64)},
        r"below 2\*\*63 \(found 18446744073709551615\)",
    ),
    "label that int64 would wrap to none": (
        {"y": np.array([0, 1, 2**64 - 1], dtype=np.uint64)},
        r"below 2\*\*63 \(found 18446744073709551615\)",
    ),
    "more classes than can be counted": ({"num_classes": 2**31}, "at most 2147483647 classes"),
    "train node without label": ({"y": [0, -1, 1], "train": [0, 1]}, "node 1 has none"),
}


@pytest.mark.parametrize("case", BAD)
def test_each_kind_of_bad_input_has_its_own_error(case: str) -> None:
    changes, message = BAD[case]
    with pytest.raises(GraphError, match=message):
        build(**changes)


def test_booleans_are_two_classes() -> None:
    graph = build(y=[True, False, True])
    assert graph.y.tolist() == [1, 0, 1]
    assert graph.num_classes == 2


def test_ids_that_are_not_integers_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"integers, or names\. Got 0.0 \(dtype float64\)"):
        build(ids=[0.0, 1.0, 2.0])


@pytest.mark.parametrize("ids", [np.array([0, 1, 2**63], dtype=np.uint64), [0, 1, 2**64]])
def test_ids_beyond_int64_are_refused_not_wrapped(ids: Any) -> None:
    for changes in ({"ids": ids}, {"train": ids}, {"test": ids}):
        with pytest.raises(ParameterError, match=r"node ids must be (below 2\*\*63|64-bit)"):
            build(**changes)


@pytest.mark.parametrize("classes", ["2", 2.5, True])
def test_a_number_of_classes_is_an_int(classes: Any) -> None:
    with pytest.raises(ParameterError, match="'num_classes' of Graph must be an int"):
        build(num_classes=classes)


def test_tensors_of_half_precision_are_taken_as_they_are() -> None:
    assert build(x=torch.tensor(X).bfloat16()) == build()


def test_columns_outside_of_a_sparse_matrix_are_refused() -> None:
    x = sp.csr_array(X)
    x.indices[0] = 9
    with pytest.raises(GraphError, match="malformed"):
        build(x=x)


def test_bad_input_is_a_value_error_too() -> None:
    with pytest.raises(ValueError, match="node 1 is both") as caught:
        build(train=[0, 1], test=[1])
    assert isinstance(caught.value, InputError)


def test_directed_input_is_symmetrised_and_said_so() -> None:
    graph = build(edge_index=[[0, 1], [1, 2]])
    assert graph == build()
    (note,) = graph.notes
    assert note.startswith("the input was directed: the reverse of 2 edges was added")
    assert "directed=True keeps directions" in note


def test_a_format_that_lists_each_edge_once_is_not_called_directed() -> None:
    assert build(edge_index=[[0, 1], [1, 2]], each_edge_once=True).notes == ()


def test_self_loops_are_dropped_and_said_so() -> None:
    graph = build(edge_index=np.concatenate([EDGES, [[0, 2], [0, 2]]], axis=1))
    assert graph == build()
    assert graph.notes == ("2 self-loops dropped",)


def test_duplicates_are_dropped_and_said_so() -> None:
    graph = build(edge_index=np.concatenate([EDGES, EDGES[:, :1]], axis=1))
    assert graph == build()
    assert graph.notes == ("1 duplicate edges dropped",)


def test_clean_input_has_no_notes() -> None:
    assert build().notes == ()


def test_labelled_nodes_outside_of_the_test_set_are_trained_on() -> None:
    graph = build(y=[0, -1, 1], test=[2])
    assert graph.train_nodes.tolist() == [0]
    assert graph.test_nodes.tolist() == [2]


def test_num_classes_is_kept_when_the_last_class_is_not_there() -> None:
    assert build(num_classes=5).num_classes == 5
    assert build().num_classes == 2


@pytest.mark.parametrize("kind", ["dense", "csr", "coo", "matrix"])
def test_features_may_come_dense_or_sparse_and_are_kept_sparse(kind: str) -> None:
    forms: dict[str, Any] = {
        "dense": np.array,
        "csr": sp.csr_array,
        "coo": sp.coo_array,
        "matrix": sp.csr_matrix,
    }
    graph = build(x=forms[kind](X))
    assert isinstance(graph.x, sp.csr_array)
    assert graph.x.nnz == 3
    assert graph == build()


def test_explicit_zeros_and_split_entries_do_not_matter() -> None:
    rows, columns = [0, 0, 1, 2, 2], [0, 1, 1, 0, 0]
    x = sp.coo_array(([1.0, 0.0, 2.0, 1.0, 2.0], (rows, columns)), shape=(3, 2))
    assert build(x=x) == build()


def test_an_empty_graph_can_be_built() -> None:
    graph = build(x=np.zeros((0, 2)), edge_index=[[], []], y=[])
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (0, 0, 2)


def test_what_was_handed_in_is_not_changed_and_not_shared() -> None:
    x, edges, y, ids = sp.csr_array(X), EDGES.copy(), Y.copy(), np.array([2, 0, 1])
    graph = build(x=x, edge_index=edges, y=y, ids=ids)
    assert (x.toarray() == X).all()
    assert (edges == EDGES).all()
    fingerprint = ge.Graph.from_arrays(X, EDGES, Y, ids=[2, 0, 1]).fingerprint
    for array in (x.data, edges, y, ids):
        assert array.flags.writeable
        array[:] = 1
    assert graph.fingerprint == fingerprint


def test_notes_do_not_outlive_a_change() -> None:
    graph = build(edge_index=[[0, 1, 1], [1, 0, 1]])
    assert graph.notes == ("1 self-loops dropped",)
    assert graph.without(ge.Nodes([1])).notes == ()
    assert graph.without(ge.Features([0])).notes == ()
