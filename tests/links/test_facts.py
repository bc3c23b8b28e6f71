"""Facts: rules against plain Python, ranks against plain sorting, and the verbs of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.errors import GraphError, ParameterError, UnknownNodeError
from grapheraser.graph.formats.typed import facts_of
from grapheraser.links.facts.answers import _Asked, fitted_facts
from grapheraser.links.facts.cases import key_of
from grapheraser.links.facts.chosen import POOL, Chosen
from grapheraser.links.facts.rows import Rows
from grapheraser.links.facts.rules import Rules
from tests.strategies import HAS_TORCH

Facts = NDArray[np.int64]
RELATIONS = ("likes", "knows", "near")


def some_facts(seed: int, *, entities: int = 30, relations: int = 3, count: int = 120) -> Facts:
    """Facts with a few hubs, and a relation that follows from two others."""
    rng = np.random.default_rng(seed)
    ends = np.minimum(
        rng.integers(entities, size=(count, 2)), rng.integers(entities, size=(count, 2))
    )
    found = {
        (int(h), int(r), int(t))
        for (h, t), r in zip(ends, rng.integers(relations, size=count), strict=True)
    }
    for h, r, t in sorted(found):
        found |= {(h, 2, y) for x, s, y in found if (r, s, x) == (0, 1, t) and rng.random() < 0.7}
    return np.array(sorted(f for f in found if f[0] != f[2]), dtype=np.int64)


def counted(facts: Facts, relations: int, length: int) -> dict[int, tuple[int, int]]:
    """Support and body of all rules with support, by key: every path written out."""
    steps: dict[int, list[tuple[int, int]]] = {}
    for h, r, t in facts.tolist():
        steps.setdefault(h, []).append((2 * r, t))
        steps.setdefault(t, []).append((2 * r + 1, h))
    support: dict[int, int] = {}
    body: dict[int, int] = {}

    def walk(nodes: list[int], code: int) -> None:
        x, y = nodes[0], nodes[-1]
        for step, other in steps[y]:
            if other in nodes:
                continue
            longer = code * (2 * relations + 1) + step + 1
            for known in {s for s, _ in steps[x]}:
                key = longer * 2 * relations + known
                body[key] = body.get(key, 0) + 1
                if (known, other) in steps[x] and longer != known + 1:
                    support[key] = support.get(key, 0) + 1
            if len(nodes) < length:
                walk([*nodes, other], longer)

    for x in steps:
        walk([x], 0)
    return {key: (count, body[key]) for key, count in support.items()}


def as_dict(rules: Rules) -> dict[int, tuple[int, int]]:
    parts = rules.keys.tolist(), rules.support.tolist(), rules.body.tolist()
    return {key: (s, b) for key, s, b in zip(*parts, strict=True)}


@pytest.mark.parametrize("length", [1, 2, 3])
def test_rules_have_the_counts_of_paths_written_out_before_and_after_changes(length: int) -> None:
    facts = some_facts(length, entities=12, count=40)
    rows = Rows.of(facts, 3)
    rules = Rules.of(rows, length)
    assert as_dict(rules) == counted(facts, 3, length)
    gone = np.arange(len(facts)) % 3 == 0
    entries = rows.entries(facts[gone])
    less, _ = rows.without(entries)
    fewer = rules.without(rows, entries)
    assert as_dict(fewer) == counted(facts[~gone], 3, length)
    more, _ = less.extended(facts[gone])
    assert as_dict(fewer.extended(more, more.entries(facts[gone]))) == as_dict(rules)
    assert np.array_equal(more.facts, facts)


def test_cases_are_made_of_what_a_scan_of_the_rest_finds() -> None:
    rng = np.random.default_rng(0)
    facts = some_facts(1, entities=400, count=1500)
    rows, key = Rows.of(facts, 3), key_of(0)
    chosen = Chosen.of(rows, 40, key)
    assert chosen.more.all()  # pools leave tails out
    checked = 0
    for _ in range(30):
        gone = np.isin(facts[:, [0, 2]], rng.choice(rows.ids, size=9)).any(axis=1)
        entries, facts = rows.entries(facts[gone]), facts[~gone]
        after, places = rows.without(entries)
        chosen, rows = chosen.left(rows, entries, after, places, key), after
        assert rows.facts.tolist() == Rows.of(facts, 3).facts.tolist()
        wanted = Chosen.of(rows, 40, key)
        for pool in range(7):
            some = slice(min(POOL, int(wanted.sizes[pool])))
            assert chosen.pools[pool, some].tolist() == wanted.pools[pool, some].tolist()
            assert min(POOL, int(chosen.sizes[pool])) == some.stop
        if chosen.is_enough(40):
            few, first = np.argsort(chosen.marks)[:40], np.argsort(wanted.marks)[:40]
            assert chosen.facts[few].tolist() == wanted.facts[first].tolist()
            checked += 1
    assert checked > 10


@pytest.fixture(scope="module")
def facts() -> Facts:
    return some_facts(0)


def graph_of(facts: Facts, **more: Any) -> ge.Graph:
    return ge.Graph.from_facts(facts, entities=range(30), relations=RELATIONS, **more)


@pytest.fixture(scope="module")
def fitted(facts: Facts) -> ge.LinkEraser:
    return ge.LinkEraser(sample=40).fit(graph_of(facts))


def test_the_facts_of_a_graph_are_those_it_was_made_of(facts: Facts) -> None:
    found = facts_of(graph_of(facts))
    assert np.array_equal(found[np.lexsort(found.T[::-1])], facts)
    some = np.arange(0, 30, 2)
    inside = facts[np.isin(facts[:, [0, 2]], some).all(axis=1)]
    found = facts_of(graph_of(facts), some)
    assert np.array_equal(found[np.lexsort(found.T[::-1])], inside)


def test_ranks_leave_out_known_facts_and_count_ties_half(
    fitted: ge.LinkEraser, facts: Facts
) -> None:
    known = {(h, r, t) for h, r, t in facts.tolist()}
    asked = [(h, 2, t) for h in (1, 3) for t in (20, 25) if (h, 2, t) not in known]
    also = [(1, 2, 28)]
    wanted, scores = [], _Asked(fitted._snapshot)
    ids = scores.rows.ids.tolist()
    for inverse, (head, tail) in enumerate(((0, 2), (2, 0))):
        for fact in asked:
            found = dict(zip(ids, scores.scores(ids.index(fact[head]), 4 + inverse), strict=True))
            every = {*known, *asked, *also}
            true = {f[tail] for f in every if f[1] == 2 and f[head] == fact[head]}
            others = [found.get(e, 0.0) for e in range(30) if e not in true]
            mine = found.get(fact[tail], 0.0)
            wanted.append(1 + sum(s > mine for s in others) + sum(s == mine for s in others) / 2)
    score = fitted.score(asked, known=also)
    assert score.mrr == pytest.approx(np.mean([1 / rank for rank in wanted]))
    assert score.hits[3] == pytest.approx(np.mean([rank <= 3 for rank in wanted]))


def test_a_relation_that_follows_from_two_others_is_found_and_explained() -> None:
    rng = np.random.default_rng(1)
    pairs = rng.integers(40, size=(60, 2))
    world = {(u, 0, 100 + v) for u, v in pairs.tolist()}
    world |= {(100 + v, 1, 200 + v // 8) for v in range(40)}
    follows = {(u, 2, 200 + (v - 100) // 8) for u, r, v in world if r == 0}
    hidden = set(sorted(follows)[::9])
    left = sorted(world | follows - hidden)
    eraser = ge.LinkEraser().fit(ge.Graph.from_facts(left, relations=RELATIONS))
    score = eraser.score(sorted(hidden))
    assert score.mrr > 0.6
    fact = next(iter(sorted(hidden)))
    reasons = eraser.explain((fact[0], "near", fact[2]))
    assert "likes(x, z), knows(z, y) => near(x, y)" in [rule.rule for rule in reasons.rules]
    assert reasons.probability == eraser.predict_proba([fact])[0] > 0.5
    assert fact[2] in eraser.rank(fact[0], relation="near", top=5).nodes
    assert fact[0] in eraser.rank(fact[2], relation="near", top=30, inverse=True).nodes


def test_constants_and_likeness_are_the_same_whether_a_fact_is_known(facts: Facts) -> None:
    fact = facts[17].tolist()
    eraser = ge.LinkEraser(sample=40).fit(graph_of(facts))
    before = [rule for rule in eraser.explain(fact).rules if not rule.rule.endswith("(x, y)")]
    eraser.unlearn(ge.Edges([(fact[0], RELATIONS[fact[1]], fact[2])]))
    after = [rule for rule in eraser.explain(fact).rules if not rule.rule.endswith("(x, y)")]
    assert before == after


def test_a_run_is_saved_loaded_changed_and_verified(facts: Facts, tmp_path: Path) -> None:
    eraser = ge.LinkEraser(sample=40, steps=3).fit(graph_of(facts))
    eraser.save(tmp_path / "run")
    loaded = ge.LinkEraser.load(tmp_path / "run")
    asked = [(1, "near", 5), (4, "likes", 9)]
    assert np.array_equal(loaded.predict_proba(asked), eraser.predict_proba(asked))
    for one in (eraser, loaded):
        receipt = one.unlearn([ge.Nodes([4]), ge.Edges([facts[0, [0, 2]].tolist()])])
        assert receipt.statement == "exact"
    assert loaded.verify().identical
    mine, other = eraser._snapshot.state.tensors(), loaded._snapshot.state.tensors()
    assert all(np.array_equal(mine[name], other[name]) for name in mine)
    with pytest.raises(UnknownNodeError):
        eraser.predict_proba([(4, "likes", 9)])
    assert len(fitted_facts(loaded._snapshot).rules.keys)


def test_facts_of_several_types_are_saved_loaded_and_forgotten_by_the_name_of_a_relation(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    writes = sorted({(int(a), int(b)) for a, b in rng.integers((30, 40), size=(90, 2))})
    at = [(paper, int(rng.integers(5))) for paper in range(40)]
    edges = {
        ("person", "writes", "paper"): {
            "source": [a for a, _ in writes],
            "target": [b for _, b in writes],
        },
        ("paper", "at", "venue"): {"source": [a for a, _ in at], "target": [b for _, b in at]},
    }
    nodes = {"person": {"id": range(30)}, "paper": {"id": range(40)}, "venue": {"id": range(5)}}
    graph = ge.Graph.from_typed_tables(nodes=nodes, edges=edges, target="person")
    ge.LinkEraser(sample=40).fit(graph).save(tmp_path / "run")
    loaded = ge.LinkEraser.load(tmp_path / "run")
    loaded.unlearn([ge.Nodes([2], type="venue"), ge.Edges([writes[0]], type="writes")])
    assert loaded.verify().identical
    assert loaded.graph_.num_edges == len(writes) - 1 + sum(venue != 2 for _, venue in at)


def test_what_makes_no_sense_is_refused(fitted: ge.LinkEraser, facts: Facts) -> None:
    with pytest.raises(GraphError, match="a relation is one of"):
        fitted.rank(1, relation="hates")
    with pytest.raises(ParameterError, match="triples"):
        fitted.predict_proba([(1, 2)])
    with pytest.raises(ParameterError, match="'steps'"):
        ge.LinkEraser(steps=4).fit(graph_of(facts))
    many = ge.Graph.from_facts([(0, r, 1) for r in range(200)])
    with pytest.raises(ParameterError, match="at the most"):
        ge.LinkEraser(steps=3).fit(many)
    untyped = ge.LinkEraser().fit(ge.load_dataset("demo"))
    with pytest.raises(ParameterError, match="no relations"):
        untyped.rank(1, relation="likes")
    with pytest.raises(ParameterError, match="no relations"):
        untyped.explain((0, "likes", 1))


@pytest.mark.skipif(not HAS_TORCH, reason="needs torch")
def test_facts_have_no_shards(facts: Facts) -> None:
    with pytest.raises(ParameterError, match="'members'"):
        ge.LinkEraser(members="both").fit(graph_of(facts))
