"""What a link run gives away of edges that it has forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.audit.attacks.tasks import _alike, _common, link_attack
from grapheraser.audit.findings import findings
from grapheraser.audit.report import audit_run
from grapheraser.errors import ParameterError
from grapheraser.reports.pages.audit import audit_page
from tests.links.graphs import bipartite_graph


@pytest.fixture(scope="module")
def links() -> ge.LinkEraser:
    demo = ge.load_dataset("demo")
    return ge.LinkEraser(sample=100).fit(demo.subgraph(demo.ids[:700]))


@pytest.fixture(scope="module")
def section(links: ge.LinkEraser) -> dict[str, Any]:
    return link_attack(links, candidates=40, requests=8).to_dict()


def test_forgotten_edges_score_as_if_they_had_never_been_there(section: dict[str, Any]) -> None:
    assert section["same"]
    assert section["after"] == section["never"]


def test_an_answer_about_the_pair_itself_hardly_moves(section: dict[str, Any]) -> None:
    """A pair is always judged without its edge; what is around it does move."""
    assert section["pair"]["auc"]["low"] < 0.6
    assert section["around"]["auc"]["value"] > section["pair"]["auc"]["value"]


def test_edges_are_compared_with_pairs_as_alike(links: ge.LinkEraser) -> None:
    graph = links.graph_
    edges, others = _alike(graph, 40, 0)
    assert not graph.has_edges(others).any()
    assert [_common(graph, u, v) for u, v in edges] == [_common(graph, u, v) for u, v in others]


def test_a_model_that_remembers_is_found(section: dict[str, Any]) -> None:
    (found,) = findings({"links": section})
    assert found.level in ("leak", "noted")
    (found,) = findings({"links": {**section, "same": False}})
    assert found.level == "failed"
    high = {**section["after"], "auc": {"value": 0.99, "low": 0.98, "high": 1.0}}
    (found,) = findings({"links": {**section, "after": high}})
    assert found.level == "leak"


def test_a_link_run_is_audited_whole(links: ge.LinkEraser, tmp_path: Path) -> None:
    links.save(tmp_path / "run")
    report = audit_run(tmp_path / "run", minutes=0.05)
    assert report.passed
    assert [*report.sections] == ["verification", "search", "links"]
    page = audit_page(report.to_dict())
    assert "Does the model still suggest edges because it once saw them?" in page
    assert ge.LinkEraser.load(tmp_path / "run").receipts_ == links.receipts_


def test_bipartite_runs_are_asked_about_pairs_of_both_sides() -> None:
    graph, second = bipartite_graph()
    shop = ge.LinkEraser(sides=second, sample=50).fit(graph)
    assert link_attack(shop, candidates=20, requests=4).same


def test_too_few_edges_can_not_be_compared() -> None:
    path = ge.Graph.from_arrays(np.eye(4), [[0, 1, 2], [1, 2, 3]], np.zeros(4, dtype=int))
    with pytest.raises(ParameterError, match="pairs that are as alike"):
        link_attack(ge.LinkEraser().fit(path), candidates=2, requests=2)
