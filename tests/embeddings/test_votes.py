"""Votes against plain loops over dictionaries, and the rows that a change moves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.embeddings.votes import Rule, Tally
from grapheraser.seeding import GOLDEN, MIX_A, MIX_B
from tests.links.graphs import hub_graph

MASK = 2**64 - 1
COLUMNS = 70  # more than one word, and not a whole one


SHOWN = np.array([False, True, True, True])


def rule_of(most: int = 3, rarity: int = 2, seed: int = 0, shift: int = 63) -> Rule:
    return Rule.of(seed, COLUMNS, len(SHOWN), most, rarity, shift)


def hashed(*numbers: int) -> int:
    """Hash numbers one after another: splitmix64's finaliser, in Python's whole numbers."""
    value, *others = numbers
    for number in others:
        z = (value + number * int(GOLDEN)) & MASK
        z = ((z ^ z >> 30) * int(MIX_A)) & MASK
        z = ((z ^ z >> 27) * int(MIX_B)) & MASK
        value = z ^ z >> 31
    return value


def landmarks(rule: Rule, node: int) -> list[int]:
    """The signs before the first step, bit by bit."""
    own, found = hashed(int(rule.landmarks), node), []
    for column in range(64 * rule.words):
        word, bit = divmod(column, 64)
        words = [hashed(own, 64 * word + i) for i in range(rule.rarity)]
        there = all(value >> bit & 1 for value in words)
        positive = hashed(own, 64 * word + 63) >> bit & 1
        found.append((1 if positive else -1) if there else 0)
    return found


def chosen(rule: Rule, node: int, near: list[int]) -> list[int]:
    """Those that count: of each type one, then a second of each, the smallest hashes first."""
    order = {u: hashed(int(rule.choice), node, u) for u in near}
    of_type: dict[int, list[int]] = {}
    for u in sorted(near, key=lambda u: order[u]):
        of_type.setdefault(u >> rule.shift, []).append(u)
    ranked = sorted((i, order[u], u) for some in of_type.values() for i, u in enumerate(some))
    return [u for _, _, u in ranked[: rule.most]]


def counted(rule: Rule, graph: ge.Graph) -> list[dict[int, NDArray[np.int64]]]:
    """The votes of every step by node, as the text has it."""
    nodes = graph.ids.tolist()
    signs = {node: np.array(landmarks(rule, node)) for node in nodes}
    steps = []
    for _ in range(rule.steps):
        votes = {}
        for node in nodes:
            near = chosen(rule, node, graph.neighbours(node).tolist())
            votes[node] = sum((signs[u] for u in near), np.zeros(64 * rule.words, np.int64))
        steps.append(votes)
        signs = {n: np.where(v == 0, signs[n], np.sign(v)) for n, v in votes.items()}
    return steps


@pytest.mark.parametrize("shift", [63, 3])  # of one type; of as many as ids divided by 8
@pytest.mark.parametrize("most", [1, 3, 31])
def test_votes_are_those_of_plain_loops(most: int, shift: int) -> None:
    graph, rule = hub_graph(), rule_of(most, shift=shift)
    tally = Tally(rule, graph)
    for step, expected in enumerate(counted(rule, graph), start=1):
        found = tally.votes(graph, graph.places(graph.ids), step)
        assert np.array_equal(found, [expected[node] for node in graph.ids.tolist()])
    assert any(votes.any() for votes in expected.values())


def test_a_change_moves_the_rows_that_are_named_and_leaves_the_signs_of_a_fresh_count() -> None:
    graph, rule = hub_graph(), rule_of()
    tally = Tally(rule, graph)
    named = differing = 0
    for node in graph.ids[::3].tolist():
        before = Tally(rule, graph)
        touched, rest = np.sort(graph.neighbours(node)), graph.without(ge.Nodes([node]))
        moved = tally.move(rest, touched, np.array([node]), SHOWN)
        fresh = Tally(rule, rest)
        assert np.array_equal(tally.signs(), fresh.signs())
        for other in rest.ids.tolist():
            same = len(graph.neighbours(other)) == len(rest.neighbours(other))
            same &= all(
                np.array_equal(
                    before.votes(graph, graph.places([other]), step),
                    fresh.votes(rest, rest.places([other]), step),
                )
                for step in range(2, rule.steps + 1)
            )
            assert same or other in moved
            named, differing = named + (other in moved), differing + (not same)
        graph = rest
    assert differing <= named <= 1.1 * differing + 5  # hardly any is named in vain
