"""Attacks of 2025: they find who pretends, and no more of what was forgotten than there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.audit.attacks.planted import (
    PROVIDERS,
    challenge_edges,
    halfway,
    hiding,
    honest,
    idle,
)
from grapheraser.audit.attacks.recovery import (
    HIGHEST_DEGREE,
    RANDOM,
    inversion_attack,
    reconstruction_attack,
)
from grapheraser.audit.findings import findings
from grapheraser.audit.statistics import mean_interval
from grapheraser.errors import ParameterError


@pytest.fixture(scope="module")
def run() -> ge.GraphEraser:
    demo = ge.load_dataset("demo")
    graph = demo.subgraph(demo.ids[:700])
    return ge.GraphEraser(num_shards=4, epochs=10).fit(graph)


def test_pretenders_pretend(run: ge.GraphEraser) -> None:
    graph = run.graph_
    edges = graph.edges[:6]
    request = ge.Edges(edges)
    ids = graph.ids
    answers = {name: answer(run, request) for name, answer in PROVIDERS.items()}
    assert answers["honest"].verify().identical
    assert answers["honest"].graph_.num_edges == graph.num_edges - 6
    assert idle(run, request).predict_proba(ids).tobytes() == run.predict_proba(ids).tobytes()
    hidden = hiding(run, request)
    assert hidden.graph_.num_edges == graph.num_edges - 6
    digests = [weights.digest for weights in run.shards_.values()]
    assert [weights.digest for weights in hidden.shards_.values()] == digests
    assert halfway(run, request).graph_.num_edges == graph.num_edges - 3
    assert honest(run, request).graph_.fingerprint == hidden.graph_.fingerprint
    assert not run.receipts_


def test_challenge_edges_catch_every_pretender_and_no_honest_provider(
    run: ge.GraphEraser,
) -> None:
    found = challenge_edges(run, run.graph_)
    assert found.tokens > 0
    own = found.providers["honest"]
    assert (own.planted, own.returned, own.same) == (0.0, 1.0, True)
    assert found.providers["does nothing"].planted == 1.0
    assert found.providers["forgets half"].planted > 0.5
    assert found.caught == {"does nothing": True, "hides": True, "forgets half": True}
    (said,) = findings({"challenge": found.to_dict()})
    assert said.level == "passed"


def test_a_provider_who_does_not_return_fails_the_challenge(run: ge.GraphEraser) -> None:
    section: dict[str, Any] = challenge_edges(run, run.graph_).to_dict()
    section["providers"]["honest"] = {**section["providers"]["hides"]}
    assert findings({"challenge": section})[0].level == "failed"


def test_forgotten_edges_are_recovered_no_better_than_where_they_never_were(
    run: ge.GraphEraser,
) -> None:
    found = inversion_attack(run, run.graph_, candidates=60)
    assert found.same, "an exact eraser with a data-free partition has no dent to find"
    assert found.after == found.never
    assert set(found.cheats) == {"does nothing", "hides"}
    (said,) = findings({"inversion": found.to_dict()})
    assert said.level == "noted"
    worse = found.to_dict()
    worse.update(same=False, never={"auc": {"value": 0.5, "low": 0.45, "high": 0.55}})
    worse["after"] = {"auc": {"value": 0.9, "low": 0.85, "high": 0.95}}
    assert findings({"inversion": worse})[0].level == "leak"


def test_both_versions_reconstruct_what_one_does_not(run: ge.GraphEraser) -> None:
    found = reconstruction_attack(run, run.graph_, requests=5)
    assert found.requests == {RANDOM: 5, HIGHEST_DEGREE: 5}
    assert found.links[HIGHEST_DEGREE].value > 0.7
    assert found.features[RANDOM].value > 0.6
    assert findings({"reconstruction": found.to_dict()})[0].level == "leak"
    assert not run.receipts_


def test_an_attack_without_anything_to_attack_says_so(small: ge.Graph) -> None:
    alone = small.without(ge.Edges(small.edges))
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(alone)
    with pytest.raises(ParameterError, match="training nodes with edges"):
        reconstruction_attack(eraser, alone)
    with pytest.raises(ParameterError, match="4 edges"):
        inversion_attack(eraser, alone)


def test_the_interval_of_a_mean_holds_it_and_narrows() -> None:
    rng = np.random.default_rng(0)
    few, many = (mean_interval(rng.random(n)) for n in (10, 1000))
    assert few.holds(few.value)
    assert many.holds(0.5)
    assert many.high - many.low < few.high - few.low
