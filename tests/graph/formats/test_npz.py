"""The compact npz format: read as written, and refused when it is damaged."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.errors import GraphError
from tests.graph.oracle import plain
from tests.strategies import called, small_graph, with_names


def fields() -> dict[str, Any]:
    return {
        "x_data": np.array([1, 2, 3], dtype=np.uint8),
        "x_indices": np.array([0, 1, 0], dtype=np.uint16),
        "x_indptr": np.array([0, 1, 2, 3], dtype=np.int32),
        "x_shape": np.array([3, 2]),
        "edge_index": np.array([[0, 1], [1, 2]], dtype=np.int32),
        "y": np.array([0, 1, 0], dtype=np.int16),
    }


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "mine.npz"
    arrays = {key: value for key, value in {**fields(), **changes}.items() if value is not None}
    np.savez_compressed(path, **arrays)
    return path


def test_the_file_becomes_the_graph(tmp_path: Path) -> None:
    x = np.array([[1, 0], [0, 2], [3, 0]])
    expected = ge.Graph.from_arrays(x, [[0, 1], [1, 2]], [0, 1, 0])
    graph = ge.Graph.from_npz(write(tmp_path))
    assert graph == expected
    assert graph.name == "mine"
    assert graph.notes == (), "each edge once is the format, not a mistake"


@pytest.mark.parametrize("key", list(fields()))
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    with pytest.raises(GraphError, match=rf"\['{key}'\] are missing"):
        ge.Graph.from_npz(write(tmp_path, **{key: None}))


BAD: dict[str, dict[str, Any]] = {
    "column out of range": {"x_indices": np.array([0, 7, 0])},
    "column that int32 would wrap": {"x_indices": np.array([0, 2**32 + 1, 0])},
    "column beyond int64": {"x_indices": np.array([0, 2**64 - 1, 0], dtype=np.uint64)},
    "column that is no integer": {"x_indices": np.array([0, 1.7, 0])},
    "row pointer that int32 would wrap": {"x_indptr": np.array([0, 2**32 + 1, 2, 3])},
    "more columns than int32 can count": {"x_shape": np.array([3, 2**31])},
    "infinite shape": {"x_shape": np.array([np.inf, 2])},
    "complex features": {"x_data": np.array([1j, 2, 3])},
    "end point beyond int64": {"edge_index": np.array([[0], [2**64 - 1]], dtype=np.uint64)},
    "label beyond int64": {"y": np.array([0, 2**64 - 1, 0], dtype=np.uint64)},
    "classes beyond counting": {"num_classes": np.array([2**31])},
    "short row pointers": {"x_indptr": np.array([0, 1, 3])},
    "descending row pointers": {"x_indptr": np.array([0, 2, 1, 3])},
    "shape of one number": {"x_shape": np.array([3])},
    "edge to nowhere": {"edge_index": np.array([[0], [9]])},
    "labels of another length": {"y": np.array([0, 1])},
    "features as text": {"x_data": np.array(["a", "b", "c"])},
    "pickled objects": {"y": np.array([{}, {}, {}], dtype=object)},
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_content_is_an_error(tmp_path: Path, case: str) -> None:
    with pytest.raises(GraphError):
        ge.Graph.from_npz(write(tmp_path, **BAD[case]))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="no such file"):
        ge.Graph.from_npz(tmp_path / "nothing.npz")


def test_a_foreign_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text.npz"
    path.write_text("not an archive")
    with pytest.raises(GraphError, match="not a readable npz"):
        ge.Graph.from_npz(path)


def test_a_truncated_file_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path)
    content = path.read_bytes()
    for length in range(0, len(content), 37):
        path.write_bytes(content[:length])
        with pytest.raises(GraphError):
            ge.Graph.from_npz(path)


@given(st.data())
def test_a_damaged_file_never_ends_in_anything_but_a_graph_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = write(tmp_path_factory.mktemp("npz"))
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with suppress(GraphError):  # damage to a time stamp does no harm
        ge.Graph.from_npz(path)


def test_what_edges_carry_is_read_too(tmp_path: Path) -> None:
    carried = {"edge_weight": np.array([0.5, 2.0]), "edge_attr": np.ones((2, 3))}
    for directed in (False, True):
        graph = ge.Graph.from_npz(write(tmp_path, directed=np.array(directed), **carried))
        assert graph.directed == directed
        assert graph.edge_weight is not None
        assert sorted(set(graph.edge_weight.tolist())) == [0.5, 2.0]
        assert graph.edge_index.shape[1] == (2 if directed else 4)
    with pytest.raises(GraphError, match="one number per edge"):
        ge.Graph.from_npz(write(tmp_path, edge_weight=np.ones(3)))
    with pytest.raises(GraphError, match="'directed' must be a single 0 or 1"):
        ge.Graph.from_npz(write(tmp_path, directed=np.array([1, 1])))


def variants() -> dict[str, ge.Graph]:
    """Graphs with everything that there is to keep."""
    base = small_graph(split="mixed")
    rng = np.random.default_rng(0)
    m = base.num_edges
    carried: dict[str, Any] = {"edge_weight": rng.random(m), "edge_attr": rng.normal(size=(m, 2))}
    roles: dict[str, Any] = {"train": base.train_nodes, "test": base.test_nodes}
    roles["validation"] = base.validation_nodes
    ids: dict[str, Any] = {"ids": base.ids, "num_classes": 9}
    arguments: Any = (base.x, base.edges.T, base.y)
    dense = rng.normal(size=(base.num_nodes, 3))
    words = np.array(["Ärger", "b", "c"], dtype=object)[base.y]
    directed: Any = {**carried, **roles, **ids, "directed": True}
    made: Any = ge.Graph.from_arrays
    return {
        "plain": base,
        "weighted": made(*arguments, **carried, **ids, each_edge_once=True),
        "directed": made(*arguments, **directed),
        "dense": made(dense, *arguments[1:], **roles, **ids),
        "named": with_names(base).without(ge.Nodes([called(base.ids[0])])),
        "words": made(*arguments[:2], words, ids=base.ids),
        "no edges": ge.Graph.from_arrays(np.eye(3), [[], []], [0, -1, 1]),
    }


@pytest.mark.parametrize("kind", variants())
def test_what_is_written_is_read_back(tmp_path: Path, kind: str) -> None:
    graph = variants()[kind]
    graph.to_npz(tmp_path / "mine.npz")
    again = ge.Graph.from_npz(tmp_path / "mine.npz")
    assert again == graph
    assert plain(again) == plain(graph)
    assert again.num_classes == graph.num_classes
    assert again.role.tolist() == graph.role.tolist()
    assert again.class_names == graph.class_names
    assert again.pages.dense == graph.pages.dense
    assert (again.names is None) == (graph.names is None)
    assert again.names_of(again.ids).tolist() == graph.names_of(graph.ids).tolist()
    again.to_npz(tmp_path / "twice.npz")
    assert (tmp_path / "twice.npz").read_bytes() == (tmp_path / "mine.npz").read_bytes()


MORE: dict[str, tuple[dict[str, Any], str]] = {
    "a role that there is not": ({"role": np.array([0, 1, 7])}, "'role' must be 0, 1, 2 or 3"),
    "roles of others": ({"role": np.array([0, 1])}, "'role' must be"),
    "ids of others": ({"ids": np.array([4, 5])}, "3 rows"),
    "names without places": ({"names": np.zeros(3, np.uint8)}, "'names' must be bytes"),
    "names out of place": (
        {"names": np.zeros(3, np.uint8), "names_indptr": np.array([0, 2, 1, 3])},
        "must be ascending",
    ),
    "names that are no text": (
        {"names": np.full(3, 255, np.uint8), "names_indptr": np.array([0, 1, 2, 3])},
        "can't decode",
    ),
    "ids and names": (
        {"names": np.zeros(0, np.uint8), "names_indptr": np.zeros(1, int), "ids": np.arange(3)},
        "not both",
    ),
    "classes of none": ({"num_classes": np.array([1])}, "labels must be in"),
    "many numbers of classes": ({"num_classes": np.array([2, 3])}, "a single number"),
}


@pytest.mark.parametrize("case", MORE)
def test_malformed_nodes_and_classes_are_errors(tmp_path: Path, case: str) -> None:
    changes, message = MORE[case]
    with pytest.raises(GraphError, match=message):
        ge.Graph.from_npz(write(tmp_path, **changes))


def test_a_key_that_is_not_known_is_warned_about(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"keys \['node_year'\] are not used"):
        ge.Graph.from_npz(write(tmp_path, node_year=np.arange(3)))


def test_names_of_classes_may_be_an_array_of_strings_and_a_source_is_for_people(
    tmp_path: Path,
) -> None:
    classes = np.array([f"class {c}" for c in range(2)])
    path = write(tmp_path, class_names=classes, source=np.array("somewhere"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = ge.Graph.from_npz(path)
    assert graph.class_names == ("class 0", "class 1")
