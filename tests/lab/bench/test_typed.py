"""What the benchmark of typed graphs compares, on a graph that is small enough to write out."""

from __future__ import annotations

import numpy as np

from grapheraser.aggregation.members import paths
from grapheraser.graph import Graph
from grapheraser.graph.formats.typed import RelationEdges, assembled
from grapheraser_lab.bench import typed
from grapheraser_lab.rivals.typed import ends_of


def a_graph() -> Graph:
    knows = RelationEdges(np.array([0, 1]), np.array([1, 2]))
    has = RelationEdges(np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1]))
    parts = {"a": typed._labelled(np.array([0, 1, 0, 1]), 0), "b": typed._bare(2)}
    joined = {("a", "knows", "a"): knows, ("a", "has", "b"): has}
    return assembled(Graph, parts, joined, "a", name="four")


def test_the_rows_of_a_rival_count_the_ends_and_labels_of_paths_without_the_node_itself() -> None:
    graph = a_graph()
    assert graph.num_train == 1
    node = int(graph.train_nodes[0])
    label = int(graph.labels([node])[0])
    knows = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    has = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    labels = np.zeros((4, 2))
    labels[node, label] = 1

    def around(ends: np.ndarray) -> np.ndarray:
        return np.where(np.eye(4, dtype=bool), 0, ends)

    expected = [knows, knows @ labels + 0.5, around(knows @ knows)]
    expected += [around(knows @ knows) @ labels + 0.5, knows @ has, has]
    expected += [around(has @ has.T), around(has @ has.T) @ labels + 0.5]
    found = [block.toarray() for block in ends_of(graph)]
    assert len(found) == len(expected)
    for mine, wanted in zip(found, expected, strict=True):
        assert np.array_equal(mine, wanted)


def test_settings_that_are_tried_are_put_back() -> None:
    before = paths.RIDGE_OF_FEW, paths.KNOWN
    with typed._set({"RIDGE_OF_FEW": 7.0, "KNOWN": 2}):
        assert (paths.RIDGE_OF_FEW, paths.KNOWN) == (7.0, 2)
        assert paths.PathRegression().of_few().ridge == 7.0
    assert before == (paths.RIDGE_OF_FEW, paths.KNOWN)
