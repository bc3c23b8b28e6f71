"""The service of a recommender: items for users, and erasure by user."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.receipts import read_parts
from grapheraser.service.api.keys import Role
from tests.recommendation.worlds import random_matrix
from tests.service.api.conftest import Api, opened

MATRIX = random_matrix(30, 24)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    ge.Recommender().fit(MATRIX).save(tmp_path / "shop")
    with opened(tmp_path / "shop") as made:
        yield made
    shutil.rmtree(tmp_path / "shop")


def asked(api: Api, user: int) -> dict[str, list[float]]:
    tensor = {"name": "users", "datatype": "INT64", "shape": [1], "data": [user]}
    found = api.call("POST", "/v2/models/shop/infer", Role.READER, json={"inputs": [tensor]})
    return {output["name"]: output["data"] for output in found.json()["outputs"]}


def test_users_are_recommended_items_by_the_inference_protocol(api: Api) -> None:
    about = api.call("GET", "/v2/models/shop", Role.READER).json()
    assert [tensor["name"] for tensor in about["inputs"]] == ["users"]
    assert {tensor["name"] for tensor in about["outputs"]} == {"items", "scores"}
    found = asked(api, 7)
    model: Any = api.parts.served.now.model
    items, scores = model.recommend([7], return_scores=True)
    assert found["items"] == items[0].tolist()
    assert found["scores"] == pytest.approx(scores[0], rel=1e-5)


def test_a_user_is_erased_and_gets_a_receipt(api: Api) -> None:
    planned = api.call("POST", "/api/v1/plan", Role.OPERATOR, json={"users": [7]}).json()
    assert planned["counts"] == {"users": 1}
    body = {"users": [7, 99], "interactions": [[8, int(MATRIX[[8]].indices[0])]]}
    sent = api.call("POST", "/api/v1/requests", Role.OPERATOR, json=body)
    assert sent.status_code == 202, sent.text
    name = sent.json()["id"]
    api.work()
    done = api.call("GET", f"/api/v1/requests/{name}", Role.OPERATOR).json()
    assert done["state"] == "completed"
    assert done["counts"] == {"users": 2, "interactions": 1}
    receipt = api.call("GET", f"/api/v1/requests/{name}/receipt", Role.OPERATOR)
    parts = read_parts(receipt.text)
    assert {part.in_words for part in parts} >= {"forget user 7"}
    for part in parts:
        part.check(None)
    tensor = {"name": "users", "datatype": "INT64", "shape": [1], "data": [7]}
    gone = api.call("POST", "/v2/models/shop/infer", Role.READER, json={"inputs": [tensor]})
    assert gone.status_code == 400


def test_nodes_are_no_users(api: Api) -> None:
    sent = api.call("POST", "/api/v1/requests", Role.OPERATOR, json={"nodes": [7]})
    api.work()
    name = sent.json()["id"]
    done = api.call("GET", f"/api/v1/requests/{name}", Role.OPERATOR).json()
    assert done["state"] == "failed"
    assert "does not have" in done["reason"]
