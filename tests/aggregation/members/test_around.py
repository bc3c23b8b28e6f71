"""Labels around a node, counted by dictionaries."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.aggregation.members.around import FAR, NEAR, one_hop, two_hops
from tests.aggregation.members.oracle import GRAPHS, chosen, known, labels_key


def by_class(graph: ge.Graph, nodes: list[int]) -> list[int]:
    y = known(graph)
    return np.bincount([y[v] for v in nodes], minlength=graph.num_classes).tolist()


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("kind", GRAPHS)
def test_one_step_away_are_the_neighbours_that_are_trained_on(kind: str, seed: int) -> None:
    graph, key = GRAPHS[kind], labels_key(seed)
    found = one_hop(graph, graph.places(graph.ids), seed)
    for row, node in zip(found.tolist(), graph.ids.tolist(), strict=True):
        assert row == by_class(graph, chosen(graph, node, known(graph), NEAR, key))


@pytest.mark.parametrize("kind", GRAPHS)
def test_two_steps_lead_over_any_node_and_not_back(kind: str) -> None:
    graph, key = GRAPHS[kind], labels_key(3)
    found = two_hops(graph, graph.places(graph.ids), 3)
    for row, node in zip(found.tolist(), graph.ids.tolist(), strict=True):
        ends: list[int] = []
        for middle in chosen(graph, node, graph.ids.tolist(), FAR, key):
            ends += chosen(graph, middle, known(graph), FAR + 1, key)
        assert row == by_class(graph, [end for end in ends if end != node])


def test_a_hub_counts_with_some_of_its_neighbours() -> None:
    graph = GRAPHS["hub"]
    at = int(graph.degree.argmax())
    hub = graph.places(graph.ids[[at]])
    assert graph.degree[at] > 80 > NEAR
    assert one_hop(graph, hub, 0).sum() == NEAR
    assert two_hops(graph, hub, 0).sum() <= FAR * (FAR + 1)
    assert not np.array_equal(one_hop(graph, hub, 0), one_hop(graph, hub, 1))


def test_a_node_without_neighbours_has_nothing_around_it() -> None:
    graph = GRAPHS["sparse"]
    isolated = graph.places(graph.ids[graph.degree == 0])
    assert len(isolated)
    assert not one_hop(graph, isolated, 0).any()
    assert not two_hops(graph, isolated, 0).any()
