from __future__ import annotations

import numpy as np
import pytest

from grapheraser.graph import Graph
from grapheraser.service.api.v1.graph import find_nodes


def numbered(ids: list[int]) -> Graph:
    n = len(ids)
    return Graph.from_arrays(np.ones((n, 1)), np.zeros((2, 0), int), np.zeros(n, int), ids=ids)


def named(names: list[str]) -> Graph:
    n = len(names)
    return Graph.from_arrays(np.ones((n, 1)), np.zeros((2, 0), int), np.zeros(n, int), ids=names)


def test_ids_are_found_by_their_first_digits_the_exact_one_first() -> None:
    ids = [1, 12, 17, 120, 129, 130, 1234, 2**62]
    graph = numbered(ids)
    for text in ("1", "12", "120", "13", "4", "9", str(2**62)):
        begin = [node for node in ids if str(node).startswith(text)]
        assert find_nodes(graph, f" {text} ", 10).tolist() == sorted(
            begin, key=lambda i: (len(str(i)), i)
        )
    assert find_nodes(graph, "1", 2).tolist() == [1, 12]


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "012", "9" * 40, "  ", "²"])
def test_what_is_no_id_finds_nothing(text: str) -> None:
    assert find_nodes(numbered([0, 1, 2, 12]), text, 10).tolist() == []


def test_zero_is_an_id_like_others() -> None:
    assert find_nodes(numbered([0, 1, 10]), "0", 10).tolist() == [0]


def test_names_are_found_exact_then_by_beginning_then_by_what_they_hold() -> None:
    graph = named(["anna", "Ann", "joanna", "bob", "annika"])
    found = graph.names_of(find_nodes(graph, "ANN", 10)).tolist()
    assert found[0] == "Ann"
    assert set(found[1:3]) == {"anna", "annika"}
    assert found[3:] == ["joanna"]
    assert len(find_nodes(graph, "a", 2)) == 2
