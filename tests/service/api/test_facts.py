"""A service over facts: asked by triples, and made to forget single ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.service.api.keys import Role
from tests.service.api.conftest import Api, opened

INFER = "/v2/models/facts/infer"


def graph() -> ge.Graph:
    triples = [(f"p{i}", "lives in", f"c{i % 4}") for i in range(20)]
    triples += [(f"c{i}", "in", f"land{i % 2}") for i in range(4)]
    triples += [(f"p{i}", "citizen of", f"land{i % 2}") for i in range(15)]
    return ge.Graph.from_facts([*triples, ("p1", "works in", "c1")])


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    ge.LinkEraser().fit(graph()).save(tmp_path / "facts")
    with opened(tmp_path / "facts") as made:
        yield made


def asked(*facts: tuple[str, ...]) -> dict[str, Any]:
    data = [word for fact in facts for word in fact]
    shape = [len(facts), len(facts[0])]
    return {"inputs": [{"name": "facts", "datatype": "BYTES", "shape": shape, "data": data}]}


def test_facts_are_predicted_and_single_ones_forgotten(api: Api) -> None:
    facts = [("p17", "citizen of", "land1"), ("p17", "citizen of", "land0")]
    described = api.call("GET", "/v2/models/facts", Role.READER).json()
    assert described["inputs"] == [{"name": "facts", "datatype": "BYTES", "shape": [-1, 3]}]
    found = api.call("POST", INFER, Role.READER, json=asked(*facts)).json()["outputs"][0]
    expected = ge.LinkEraser().fit(graph()).predict_proba(facts)
    assert np.array_equal(np.float32(found["data"]), expected)
    wrong = api.call("POST", INFER, Role.READER, json=asked(("p1", "p2")))
    assert (wrong.status_code, wrong.json()["detail"]) == (
        400,
        "the shape of facts must be [n, 3].",
    )
    answer = api.submit(edges=[["p1", "works in", "c1"]], nodes=["p2"])
    assert answer.status_code == 202
    api.work()
    done = api.call("GET", f"/api/v1/requests/{answer.json()['id']}").json()
    assert done["state"] == "completed"
    parts = api.call("GET", f"/api/v1/requests/{answer.json()['id']}/receipt").text
    assert "works in" in parts
    left = api.service.served.now.model.graph_
    gone = graph().without([ge.Edges([("p1", "works in", "c1")]), ge.Nodes(["p2"])])
    assert np.array_equal(left.facts, gone.facts)
    assert left.contains(["p1", "c1"]).all()  # lives in
    unknown = api.submit(edges=[["p1", "eats", "c1"]])
    assert unknown.status_code == 400
