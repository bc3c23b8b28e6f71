"""What a lineage says to have changed is all that has changed."""

from __future__ import annotations

import pickle

import numpy as np

import grapheraser as ge
from grapheraser.graph.lineage import _REMEMBERED, Lineage
from grapheraser.graph.pages import Pages
from grapheraser.graph.register import Register
from tests.store.runs import paged_graph


def differing(old: Pages, new: Pages) -> frozenset[int]:
    pairs = zip(old.pages, new.pages, strict=True)
    return frozenset(number for number, (one, other) in enumerate(pairs) if one is not other)


def test_every_version_knows_what_differs_from_those_before() -> None:
    graph = paged_graph()
    versions = [graph]
    for node in (3, 500, 501, 899):
        versions.append(versions[-1].without([ge.Nodes([node])]))
    versions.append(versions[-1].without([ge.Features([7]), ge.Labels([300])]))
    assert len(graph.pages.pages) == 4
    seen = set()
    for at, later in enumerate(versions):
        for earlier in versions[: at + 1]:
            found = later.pages.lineage.since(earlier.pages.lineage.token)
            assert found == differing(earlier.pages, later.pages)
            seen.add(found)
        for other in versions[at + 1 :]:
            assert later.pages.lineage.since(other.pages.lineage.token) is None
    assert len(seen) > 2


def test_other_blocks_begin_anew() -> None:
    graph = paged_graph(apart=16**3)
    fewer = graph.without([ge.Nodes(graph.ids[3:].tolist())])
    assert len(fewer.pages.pages) < len(graph.pages.pages)
    assert fewer.pages.lineage.since(graph.pages.lineage.token) is None


def test_the_pages_of_a_register_have_one_too() -> None:
    register = Register.of(np.arange(5_000))
    assert len(register.pages) > 1
    gone = np.array([17, 18])
    after = register.changed(gone, np.array([9_000]))
    pairs = zip(register.pages, after.pages, strict=True)
    changed = frozenset(number for number, (one, other) in enumerate(pairs) if one is not other)
    assert after.lineage.since(register.lineage.token) == changed
    assert 1 <= len(changed) <= 3


def test_it_does_not_grow_and_does_not_travel() -> None:
    lineage = first = Lineage()
    for number in range(3 * _REMEMBERED):
        lineage = lineage.changed([number])
    assert len(lineage.before) == _REMEMBERED
    assert lineage.since(first.token) is None
    back = pickle.loads(pickle.dumps(lineage))
    assert back.before == ()
    assert back.since(lineage.token) is None
