"""Services over several labels and over numbers: what is answered, shown and forgotten."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
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
