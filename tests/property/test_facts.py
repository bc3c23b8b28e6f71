"""Facts that come and go, in any order: the state is that of a fresh fit on the raw rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from tests.links.test_facts import RELATIONS, graph_of, some_facts

Fact = tuple[int, int, int]


def fresh(facts: set[Fact], entities: list[int], steps: int) -> ge.LinkEraser:
    """Fit on the raw facts that are left."""
    graph = ge.Graph.from_facts(sorted(facts), entities=entities, relations=RELATIONS)
    return ge.LinkEraser(sample=24, steps=steps).fit(graph)


def request_of(rng: np.random.Generator, facts: set[Fact], entities: list[int]) -> Any:
    """Choose a request, and take its effect on plain sets."""
    kind = int(rng.integers(4))
    if kind == 0 and len(entities) > 6:
        gone = int(rng.choice(entities))
        entities.remove(gone)
        facts -= {fact for fact in facts if gone in (fact[0], fact[2])}
        return "unlearn", ge.Nodes([gone])
    if kind == 1 and len(facts) > 20:
        some = [sorted(facts)[int(i)] for i in rng.choice(len(facts), size=3, replace=False)]
        facts -= set(some)
        return "unlearn", [ge.Edges([(h, RELATIONS[r], t)]) for h, r, t in some]
    if kind == 2:
        new = max(entities) + 7
        other, r = int(rng.choice(entities)), int(rng.integers(3))
        entities.append(new)
        facts.add((new, r, other))
        edge = ge.AddEdges([(new, other)], type=("entity", RELATIONS[r], "entity"))
        return "update", [ge.AddNodes([new], np.zeros((1, 0))), edge]
    h, t = (int(i) for i in rng.choice(entities, size=2, replace=False))
    r = int(rng.integers(3))
    if (h, r, t) in facts:
        facts.remove((h, r, t))
        return "unlearn", ge.Edges([(h, t)], type=("entity", RELATIONS[r], "entity"))
    facts.add((h, r, t))
    return "update", ge.AddEdges([(h, t)], type=("entity", RELATIONS[r], "entity"))


@pytest.mark.parametrize("steps", [2, 3])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_any_sequence_ends_in_the_state_of_a_fresh_fit(steps: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    raw = some_facts(seed, count=140)
    facts, entities = {(h, r, t) for h, r, t in raw.tolist()}, [*range(30)]
    eraser = ge.LinkEraser(sample=24, steps=steps).fit(graph_of(raw))
    for _ in range(5):
        verb, request = request_of(rng, facts, entities)
        getattr(eraser, verb)(request)
        wanted = fresh(facts, entities, steps)
        mine, other = eraser._snapshot.state.tensors(), wanted._snapshot.state.tensors()
        assert mine.keys() == other.keys()
        for name, array in mine.items():
            assert array.tobytes() == other[name].tobytes(), name
        assert eraser.graph_ == wanted.graph_
        asked = [(entities[0], "likes", entities[1]), (entities[2], "near", entities[3])]
        assert np.array_equal(eraser.predict_proba(asked), wanted.predict_proba(asked))
