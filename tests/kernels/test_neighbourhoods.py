"""The chosen neighbours are those with the smallest hashes, and follow from ids alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.graph import TRAIN, UNLABELLED
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.neighbourhoods import (
    ANY,
    LABELLED,
    OTHERS,
    TRAINED,
    admit,
    chosen_alike,
    chosen_around,
    features_differ,
    is_chosen,
    places_among,
    places_for,
    places_of,
    put_in_order,
)
from grapheraser.kernels.paged import nodes_at
from tests.aggregation.members.oracle import GRAPHS
from tests.aggregation.members.oracle import chosen as chosen_of


def chosen(ids: list[int], allowed: list[bool], most: int, key: int) -> list[int]:
    """The chosen neighbours of node 0, which is next to all nodes."""
    hashes, found = places_for(most)
    own, count = np.uint64(paired(np.uint64(key), np.uint64(ids[0]))), 0
    for i, node in enumerate(ids):
        if allowed[i]:
            count = admit(np.uint64(paired(own, np.uint64(node))), i, hashes, found, count)
    put_in_order(found, count)
    positions: list[int] = found[:count].tolist()
    return positions


@given(st.data())
def test_those_with_the_smallest_hashes_are_chosen_in_order(data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, 10**9), min_size=1, max_size=12, unique=True))
    allowed = data.draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids)))
    most, key = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 2**64 - 1))
    own = np.uint64(paired(np.uint64(key), np.uint64(ids[0])))
    ranked = sorted(
        (i for i in range(len(ids)) if allowed[i]),
        key=lambda i: int(paired(own, np.uint64(ids[i]))),
    )
    assert chosen(ids, allowed, most, key) == sorted(ranked[:most])


def test_whoever_is_not_chosen_changes_nothing_by_leaving() -> None:
    ids = list(range(20))
    before = chosen(ids, [True] * 20, 5, 7)
    for gone in set(range(20)) - set(before):
        allowed = [node != gone for node in ids]
        assert chosen(ids, allowed, 5, 7) == before


def kinds(kind: str) -> dict[int, set[int]]:
    """The ids of each kind in one of the graphs."""
    graph = GRAPHS[kind]
    every, trained = set(graph.ids.tolist()), set(graph.ids[graph.role == TRAIN].tolist())
    labelled = trained - set(graph.ids[graph.y == UNLABELLED].tolist())
    return {ANY: every, TRAINED: trained, LABELLED: labelled, OTHERS: every - labelled}


@pytest.mark.parametrize("kind", ["sparse", "hub", "far ids", "no edges", "many edges"])
def test_in_pages_the_same_are_chosen_among_each_kind(kind: str) -> None:
    graph = GRAPHS[kind]
    table, key = graph.table, np.uint64(99)
    for allowed, nodes in kinds(kind).items():
        assert nodes_at(table, places_of(table, allowed)).tolist() == sorted(nodes)
        asked = np.append(graph.ids[::3], graph.ids.max() + 1)
        among = nodes_at(table, places_among(table, asked, allowed)).tolist()
        assert among == [node for node in asked.tolist() if node in nodes]
        for most in (1, 3, 8, 16, 64):
            hashes, places = places_for(most)
            for node, place in zip(graph.ids.tolist(), graph.places(graph.ids), strict=True):
                count = chosen_around(table, place, allowed, key, hashes, places)
                found = nodes_at(table, places[:count]).tolist()
                assert found == chosen_of(graph, node, nodes, most, 99)


@pytest.mark.parametrize("kind", GRAPHS)
def test_a_neighbour_is_chosen_if_it_is_among_the_chosen(kind: str) -> None:
    graph, key = GRAPHS[kind], np.uint64(9)
    for allowed, most in ((ANY, 3), (LABELLED, 2), (TRAINED, 5), (OTHERS, 1)):
        hashes, found = places_for(most)
        for place in graph.places(graph.ids).tolist():
            count = chosen_around(graph.table, place, allowed, key, hashes, found)
            expected = nodes_at(graph.table, found[:count].copy()).tolist()
            (node,) = nodes_at(graph.table, np.array([place])).tolist()
            asked = graph.neighbours(node).tolist()
            said = [is_chosen(graph.table, place, allowed, key, most, other) for other in asked]
            assert [other for other, yes in zip(asked, said, strict=True) if yes] == expected


@pytest.mark.parametrize("kind", ["sparse", "many edges", "far ids"])
def test_two_graphs_are_told_apart_by_those_who_are_chosen(kind: str) -> None:
    graph = GRAPHS[kind]
    after = graph.without(ge.Nodes(graph.ids[5:7]))
    hashes, places = places_for(3)
    room = hashes, places, np.empty_like(places)
    for allowed, nodes in kinds(kind).items():
        for node in after.ids.tolist():
            was, now = graph.places([node])[0], after.places([node])[0]
            tables = graph.table, was, after.table, now
            count = chosen_alike(*tables, allowed, np.uint64(99), room)
            left = nodes & set(after.ids.tolist())
            expected = chosen_of(after, node, left, 3, 99)
            if expected == chosen_of(graph, node, nodes, 3, 99):
                assert nodes_at(after.table, places[:count]).tolist() == expected
            else:
                assert count == -1


@pytest.mark.parametrize("kind", ["sparse", "dense, in pages"])
def test_two_graphs_are_told_apart_by_the_features_of_a_node(kind: str) -> None:
    graph = GRAPHS[kind]
    cleared = graph.ids[np.diff(graph.x.indptr) > 0][:4]
    after = graph.without(ge.Features(cleared))
    places = zip(graph.places(graph.ids), after.places(graph.ids), strict=True)
    found = [features_differ(graph.table, was, after.table, now) for was, now in places]
    assert graph.ids[found].tolist() == cleared.tolist()
