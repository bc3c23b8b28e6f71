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
