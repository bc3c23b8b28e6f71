"""Services over several labels and over numbers: what is answered, shown and forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.canonical import canonical_json
from grapheraser.receipts import Part
from grapheraser.service.api.keys import Role
from tests.property.test_targets import World, fitted
from tests.service.api.conftest import opened


@pytest.mark.parametrize("kind", ["several", "numbers", "one number"])
def test_targets_are_answered_shown_and_forgotten(kind: str, tmp_path: Path) -> None:
    world = World.of(kind, 3)
    eraser = fitted(world)
    eraser.save(tmp_path / "run")
    with opened(tmp_path / "run") as api:
        nodes = [int(node) for node in eraser.graph_.train_nodes[:4]]
        body = {"inputs": [{"name": "nodes", "datatype": "INT64", "shape": [4], "data": nodes}]}
        (output,) = api.call("POST", "/v2/models/run/infer", Role.READER, json=body).json()[
            "outputs"
        ]
        said = eraser.predict_proba(nodes) if kind == "several" else eraser.predict(nodes)
        assert output["name"] == ("posteriors" if kind == "several" else "numbers")
        assert np.array_equal(np.array(output["data"], said.dtype), said.ravel())
        described = api.call("GET", "/v2/models/run", Role.READER).json()
        assert [one["name"] for one in described["outputs"]] == [output["name"]]
        node = {"node": nodes[0]}
        shown = api.call("POST", "/api/v1/nodes/show", Role.OPERATOR, json=node)
        assert shown.status_code == 200
        found = [one["probability"] for one in shown.json()["posterior"]]
        assert np.array_equal(np.array(found, said.dtype), said.reshape(4, -1)[0])
        answer = api.submit(labels=[nodes[1]], nodes=[nodes[2]])
        assert answer.status_code == 202
        api.work()
        done = api.call("GET", f"/api/v1/requests/{answer.json()['id']}").json()
        assert done["state"] == "completed"
        left = api.service.served.now.model.graph_
        assert left == eraser.graph_.without([ge.Labels([nodes[1]]), ge.Nodes([nodes[2]])])


@pytest.mark.parametrize("how", ["number", "name", "subject"])
def test_one_of_a_nodes_labels_is_forgotten(how: str, tmp_path: Path) -> None:
    """Only the target goes, the same as in Python; the receipt names it; it is told twice."""
    eraser = fitted(World.of("several", 3))
    eraser.save(tmp_path / "run")
    node, other = (int(node) for node in eraser.graph_.train_nodes[:2])
    with opened(tmp_path / "run") as api:
        if how == "subject":
            entry = {"subject": "ada", "labels": [[node, "2"]]}
            answer = api.call("POST", "/api/v1/subjects", Role.OPERATOR, json={"entries": [entry]})
            assert answer.json()["added"] == 1
            ada = {"subject": "ada"}
            found = api.call("POST", "/api/v1/subjects/find", Role.OPERATOR, json=ada).json()
            assert found["items"] == [{"kind": "label", "ids": [str(node), "2"]}]
            answer = api.submit(subject="ada")
        else:
            answer = api.submit(labels=[[node, 2 if how == "number" else "2"], other])
        assert answer.status_code == 202
        api.work()
        name = answer.json()["id"]
        done = api.call("GET", f"/api/v1/requests/{name}").json()
        assert done["state"] == "completed"
        gone = [ge.Labels([node], target=2), *([ge.Labels([other])] if how != "subject" else [])]
        model = api.service.served.now.model
        assert model.graph_ == eraser.graph_.without(gone)
        assert model.verify().identical
        receipt = api.call("GET", f"/api/v1/requests/{name}/receipt").json()
        abouts = [Part.from_json(canonical_json(part)).about for part in receipt["parts"]]
        assert {"forget": "label", "ids": [str(node), "2"]} in abouts
        again = api.submit(labels=[[node, 2]]).json()["id"]
        api.work()
        assert "nothing" in api.call("GET", f"/api/v1/requests/{again}").json()["reason"]


@pytest.mark.parametrize(("kind", "label"), [("several", [1, 0, None]), ("one number", 99.5)])
def test_a_node_is_inserted_with_its_targets(kind: str, label: Any, tmp_path: Path) -> None:
    eraser = fitted(World.of(kind, 3))
    eraser.save(tmp_path / "run")
    with opened(tmp_path / "run") as api:
        new = {"id": 500, "features": {"1": 1.0}, "label": label, "neighbours": [2, 4]}
        answer = api.call("POST", "/api/v1/insertions", Role.OPERATOR, json=new)
        assert answer.status_code == 202
        api.work()
        model = api.service.served.now.model
        found = np.atleast_1d(model.graph_.labels([500])[0]).tolist()
        assert found == ([1, 0, -1] if kind == "several" else [99.5])
        assert model.verify().identical
        wrong = api.call("POST", "/api/v1/insertions", Role.OPERATOR, json=new | {"label": "law"})
        assert wrong.status_code == 400
        odd = new | {"id": 501, "label": [1, 0] if kind == "several" else [1, 0, 0]}
        assert api.call("POST", "/api/v1/insertions", Role.OPERATOR, json=odd).status_code == 400


def test_targets_that_are_not_there_are_refused(tmp_path: Path) -> None:
    fitted(World.of("several", 3)).save(tmp_path / "run")
    with opened(tmp_path / "run") as api:
        answer = api.submit(labels=[[7, "law"]])
        assert answer.status_code == 400
        assert "the targets of this graph are 0, 1, 2" in answer.json()["detail"]
        assert api.submit(labels=[[7, 1, 2]]).status_code == 400
