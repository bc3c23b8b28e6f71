"""What a run of whole graphs gives away of graphs that it has forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.audit.attacks.tasks import graph_attack
from grapheraser.audit.findings import findings
from grapheraser.audit.report import audit_run
from grapheraser.errors import ParameterError
from grapheraser.reports.pages.audit import audit_page
from tests.graphs.collections import collection_of, random_parts


def fitted(**options: Any) -> ge.CollectionEraser:
    collection = collection_of(random_parts(140, seed=2), test=range(90, 140), **options)
    return ge.CollectionEraser().fit(collection)


@pytest.fixture(scope="module")
def section() -> dict[str, Any]:
    eraser = fitted()
    return graph_attack(eraser, eraser.graph_, candidates=30, requests=10).to_dict()


def test_forgotten_graphs_are_judged_as_if_they_had_never_been_there(
    section: dict[str, Any],
) -> None:
    assert section["same"]
    assert section["after"] == section["never"]
    assert section["before"]["auc"]["value"] > section["after"]["auc"]["value"]


def test_whoever_kept_an_answer_sees_that_the_graph_went(section: dict[str, Any]) -> None:
    assert section["moved"]["auc"]["low"] > 0.5
    (found,) = findings({"graphs": section})
    assert found.level == "leak"


def test_a_model_that_remembers_is_found(section: dict[str, Any]) -> None:
    (found,) = findings({"graphs": {**section, "same": False}})
    assert found.level == "failed"
    high = {**section["after"], "auc": {"value": 0.99, "low": 0.98, "high": 1.0}}
    (found,) = findings({"graphs": {**section, "after": high}})
    assert "kept partition" in found.meaning


@pytest.mark.parametrize("labels", ["several", "numbers"])
def test_other_labels_are_attacked_too(labels: str) -> None:
    draw = np.random.default_rng(0)
    several, numbers = draw.integers(-1, 2, (140, 2)), draw.random((140, 2))
    y: Any = several if labels == "several" else numbers
    collection = collection_of(random_parts(140, seed=2))
    rows = [collection[i] for i in range(140)]
    offset = np.append(0, np.cumsum([len(row.nodes) for row in rows]))
    edges = [row.edges + first for row, first in zip(rows, offset, strict=False)]
    made = ge.Collection.from_arrays(
        offset, np.concatenate(edges), y, labels=labels, test=range(90, 140)
    )
    eraser = ge.CollectionEraser().fit(made)
    assert graph_attack(eraser, eraser.graph_, candidates=20, requests=2).same


def test_a_run_of_graphs_is_audited_whole(tmp_path: Path) -> None:
    eraser = fitted()
    eraser.unlearn([ge.Graphs([4]), ge.Nodes([0], graph=5)])
    eraser.save(tmp_path / "run")
    report = audit_run(tmp_path / "run", minutes=0.1)
    assert report.passed
    assert [*report.sections] == ["verification", "search", "graphs"]
    assert report.run["forgotten"]["graphs"] == 1
    assert report.run["forgotten"]["graph_nodes"] == 1
    page = audit_page(report.to_dict())
    assert "Does the model still know graphs because it once saw them?" in page
    assert "139 graphs" in page


def test_too_few_graphs_can_not_be_attacked() -> None:
    eraser = ge.CollectionEraser().fit(collection_of(random_parts(20)))
    with pytest.raises(ParameterError, match="test graphs with labels"):
        graph_attack(eraser, eraser.graph_)
