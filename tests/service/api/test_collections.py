"""The service of a collection: labels of graphs, and erasure of graphs and their parts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import grapheraser as ge
from grapheraser.receipts import read_parts
from grapheraser.service.api.keys import Role
from tests.graphs.collections import collection_of, random_parts
from tests.service.api.conftest import Api, opened

PARTS = random_parts(30, seed=4)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    ge.CollectionEraser().fit(collection_of(PARTS)).save(tmp_path / "lab")
    with opened(tmp_path / "lab") as made:
        yield made
    shutil.rmtree(tmp_path / "lab")


def test_graphs_are_judged_and_erased(api: Api) -> None:
    tensor = {"name": "graphs", "datatype": "INT64", "shape": [2], "data": [3, 4]}
    found = api.call("POST", "/v2/models/lab/infer", Role.READER, json={"inputs": [tensor]})
    assert found.status_code == 200, found.text
    whole = next(i for i, (_, edges, _) in enumerate(PARTS) if len(edges) > 2)
    pair = [int(end) for end in PARTS[whole][1][0]]
    gone = 7 if whole != 7 else 8
    body = {"graphs": [gone], "graph_edges": [[whole, *pair]]}
    planned = api.call("POST", "/api/v1/plan", Role.OPERATOR, json=body)
    assert planned.status_code == 200, planned.text
    name = api.call("POST", "/api/v1/requests", Role.OPERATOR, json=body).json()["id"]
    api.work()
    done = api.call("GET", f"/api/v1/requests/{name}", Role.OPERATOR).json()
    assert done["state"] == "completed", done
    receipt = api.call("GET", f"/api/v1/requests/{name}/receipt", Role.OPERATOR)
    parts = read_parts(receipt.text)
    assert {part.in_words for part in parts} == {
        f"forget graph {gone}",
        f"forget graph edge {whole}-{pair[0]}-{pair[1]}",
    }
    for part in parts:
        part.check(None)
    asked = api.call("POST", "/api/v1/graphs/show", Role.OPERATOR, json={"graph": gone})
    assert asked.status_code == 400
    assert "is not in the collection" in asked.json()["detail"]


def test_a_graph_is_shown_with_the_nodes_that_decide(api: Api) -> None:
    shown = api.call("POST", "/api/v1/graphs/show", Role.OPERATOR, json={"graph": 3})
    assert shown.status_code == 200, shown.text
    view, model = shown.json(), api.service.served.now.model
    assert isinstance(model, ge.CollectionEraser)
    said, small = model.explain(3), model.collection_[3]
    assert [one["node"] for one in view["nodes"]] == small.nodes.tolist()
    assert [one["decides"] for one in view["nodes"]] == [*said.nodes.values()]
    assert view["drawing"].count("<circle") == len(small.nodes)
    assert view["alike"][0]["graph"] == str(said.alike[0].graph)
    assert int(view["posterior"][0]["name"]) == model.predict([3])[0]
    assert (
        api.call("POST", "/api/v1/graphs/show", Role.READER, json={"graph": 3}).status_code == 403
    )
