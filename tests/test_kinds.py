"""The declaration of kinds, and what is read from it."""

from __future__ import annotations

from typing import Any

import grapheraser as ge
from grapheraser.graph.changes.kinds import requests_for, requests_of
from grapheraser.graph.changes.requests import canonical_form
from grapheraser.graph.ids import name_id
from grapheraser.kinds import (
    CHANGES,
    EDGES,
    GRAPH_NAMES,
    INTERACTIONS,
    ITEMS,
    KINDS,
    LABELS,
    NODES,
    USERS,
    Item,
    forgotten_counts,
    forgotten_item,
    items_of,
    named_by,
    node_forgotten,
)


def test_every_kind_names_a_public_class_that_knows_its_kind() -> None:
    for kind in (*KINDS.values(), *CHANGES.values()):
        assert getattr(ge, kind.class_name).kind is kind


def test_every_change_adds_or_sets_a_kind_that_can_be_forgotten() -> None:
    others = ["users", "items", "interactions", "graphs", "graphs"]
    assert [kind.changes for kind in CHANGES.values()] == [*GRAPH_NAMES, *others]
    counts = [kind.count for kind in CHANGES.values()]
    assert counts[:4] == ["added_nodes", "added_edges", "set_features", "set_labels"]
    assert counts[4:7] == ["added_users", "added_items", "added_interactions"]
    assert counts[7:] == ["added_graphs", "set_graphs"]


def test_names_become_requests_and_names_again() -> None:
    named = {"nodes": [12], "edges": [[3, 17]], "features": [4], "labels": [5]}
    assert canonical_form(requests_of(named)) == named


def test_items_become_names_again() -> None:
    named: dict[str, list[Any]] = {"nodes": [12], "edges": [(3, 17)]}
    assert list(items_of(named)) == [Item(NODES, (12,)), Item(EDGES, (3, 17))]
    assert named_by(items_of(named)) == named


def test_a_part_of_a_receipt_says_what_is_forgotten() -> None:
    assert EDGES.about([3, 17]) == {"forget": "edge", "ids": ["3", "17"]}
    assert forgotten_item(EDGES.about([17, 3])) == Item(EDGES, (3, 17))
    assert forgotten_item(LABELS.about([5], names=["ada"])) == Item(LABELS, (5,))
    assert forgotten_item(CHANGES["add_nodes"].about([5])) is None


def test_what_came_is_no_part_of_what_went() -> None:
    counts = {"nodes": 3, "added_nodes": 1, "labels": 2, "set_labels": 2, "skipped": 4}
    assert forgotten_counts(counts) == {"nodes": 2, "edges": 0, "features": 0, "labels": 0}


def test_users_and_items_are_nodes_that_take_turns() -> None:
    assert [USERS.node(7), ITEMS.node(7)] == [14, 15]
    assert [USERS.number(14), ITEMS.number(15)] == [7, 7]
    assert ge.Users([7]).in_graph == ge.Nodes([14])
    assert ge.Interactions([(7, 3)]).in_graph == ge.Edges([(14, 7)])
    about = {"forget": "interaction", "ids": ["7", "3"]}
    assert forgotten_item(about) == Item(INTERACTIONS, (7, 14))
    assert node_forgotten({"forget": "item", "ids": ["7"]}) == 15
    assert node_forgotten(about) is None


def test_names_of_users_and_items_are_those_of_nodes_on_their_side() -> None:
    (user,), (item,) = ge.Users(["ada"]).ids, ge.Items(["ada"]).ids
    assert (user, item) == (name_id("user/ada"), name_id("item/ada"))
    about = {"forget": "user", "ids": [str(int(user))], "names": ["ada"]}
    assert node_forgotten(about) == user
    assert requests_for([Item(USERS, (int(user),))]) == [ge.Users.of_nodes([int(user)])]
