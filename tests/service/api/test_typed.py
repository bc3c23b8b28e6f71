"""Services over typed graphs: facts are asked by triples, and single relations forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.service.api.keys import Role
from grapheraser.service.served.drawing import Drawing
from grapheraser.service.served.drawing import _drawing as drawn_of
from grapheraser.service.served.serving import Published
from tests.property.test_typed import KNOWS, built, world_of
from tests.service.api.conftest import Api, opened

pytestmark = pytest.mark.filterwarnings("ignore:the closed form ignores the weights")
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


def test_a_typed_run_of_classes_is_served_drawn_and_forgets(tmp_path: Path) -> None:
    world = world_of(np.random.default_rng(3), {"a": 40, "b": 120, "c": 4})
    ge.GraphEraser("closed-form").fit(built(world)).save(tmp_path / "typed")
    with opened(tmp_path / "typed") as api:
        body = {"inputs": [{"name": "nodes", "datatype": "INT64", "shape": [2], "data": [0, 3]}]}
        answer = api.call("POST", "/v2/models/typed/infer", Role.READER, json=body).json()
        model = api.service.served.now.model
        assert isinstance(model, ge.GraphEraser)
        assert answer["outputs"][1]["data"] == model.predict([0, 3]).tolist()
        drawing = _drawing(api.service.served.now, model.graph_)
        assert ((drawing.classes >= 0) == (model.graph_.types.of(drawing.ids) == 0)).all()  # type: ignore[union-attr]
        for node in ("a/0", "b/1"):
            shown = api.call("POST", "/api/v1/nodes/show", json={"node": node}).json()
            assert (shown["node"], shown["posterior"] is None) == (node, node == "b/1")
        found = api.call("POST", "/api/v1/nodes/find", json={"text": "c/"}).json()["nodes"]
        assert [line["node"] for line in found] == ["c/0", "c/1", "c/2", "c/3"]
        u, v = next(iter(world["e"][KNOWS]))
        named: list[int | str] = ["c/1", 5]
        api.submit(nodes=named, edges=[[f"a/{u}", "knows", f"a/{v}"]])
        api.work()
        gone: list[Any] = [ge.Nodes(named), ge.Edges([(u, v)], type=KNOWS)]
        left = api.service.served.now.model.graph_
        assert left.fingerprint == built(world).without(gone).fingerprint
        asked, rest = next(
            (ge.Nodes([node], cascade="b"), after)
            for node in range(6, 40)
            if left.num_nodes - (after := left.without(ge.Nodes([node], cascade="b"))).num_nodes > 1
        )
        more: dict[str, Any] = {"nodes": [*asked.ids], "cascade": ["b"]}
        goes = left.num_nodes - rest.num_nodes
        assert api.call("POST", "/api/v1/plan", json=more).json()["counts"] == {"nodes": goes}
        answer = api.submit(**more).json()
        assert answer["counts"] == {"nodes": 1}  # who asks is not told what there is
        api.work()
        assert api.service.served.now.model.graph_.fingerprint == rest.fingerprint
        done = api.call("GET", f"/api/v1/requests/{answer['id']}").json()
        assert (done["state"], done["receipts"]) == ("completed", goes)
        assert api.submit(nodes=[1], cascade=["shop"]).status_code == 400


def _drawing(now: Published, graph: ge.Graph) -> Drawing:
    places = np.zeros((graph.num_nodes, 2), dtype=np.float32)
    none = np.zeros((0, 2), dtype=np.int64)
    return drawn_of(now, graph.ids, None, places, none, settled=True)
