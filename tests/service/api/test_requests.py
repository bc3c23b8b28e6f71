"""Submitting, looking, cancelling and collecting, as callers see it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.canonical import canonical_json
from grapheraser.receipts import Part
from grapheraser.receipts.keys import PublicKey
from grapheraser.service.api.keys import Role
from grapheraser.service.queue.requests import OUT_OF_SCOPE
from grapheraser.store.keys import KeyFolder
from tests.service.api.conftest import Api


def nodes(api: Api, count: int) -> list[int]:
    return [int(node) for node in api.service.served.now.model.graph_.train_nodes[:count]]


def test_a_request_is_accepted_carried_out_and_receipted(api: Api) -> None:
    (node,) = nodes(api, 1)
    sent = api.submit(nodes=[node])
    assert sent.status_code == 202
    view = sent.json()
    assert view["state"] == "received"
    assert view["counts"] == {"nodes": 1}
    assert view["out_of_scope"] == list(OUT_OF_SCOPE)
    assert sent.headers["Location"] == f"/api/v1/requests/{view['id']}"
    api.work()
    done = api.call("GET", sent.headers["Location"], Role.REQUESTER).json()
    assert (done["state"], done["version"], done["receipts"]) == ("completed", 1, 1)
    receipt = api.call("GET", sent.headers["Location"] + "/receipt", Role.REQUESTER).json()
    part = Part.from_json(canonical_json(receipt["parts"][0]))
    part.check(PublicKey(KeyFolder().signing_key().public))
    assert part.about == {"forget": "node", "ids": [str(node)]}
    raw = api.call("GET", sent.headers["Location"] + "/receipt/1", Role.REQUESTER)
    assert Part.from_json(raw.text) == part
    steps = api.call("GET", sent.headers["Location"] + "/events", Role.REQUESTER).json()
    assert [step["state"] for step in steps] == [
        *("received", "planned", "retraining", "published", "erased", "completed")
    ]


def test_what_is_left_is_what_a_fresh_fit_gives(api: Api) -> None:
    graph = api.service.served.now.model.graph_
    gone = nodes(api, 3)
    for node in gone:
        assert api.submit(nodes=[node]).status_code == 202
    api.work()
    served = api.service.served.now.model
    fresh = ge.GraphEraser(num_shards=3, epochs=3).fit(graph.without(ge.Nodes(gone)))
    assert isinstance(served, ge.GraphEraser)
    ids = served.graph_.ids
    assert served.predict_proba(ids).tobytes() == fresh.predict_proba(ids).tobytes()


def test_a_replayed_key_gives_the_request_that_is_there(api: Api) -> None:
    one, other = nodes(api, 2)
    first = api.submit(key="mine", nodes=[one])
    again = api.submit(key="mine", nodes=[one])
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    changed = api.submit(key="mine", nodes=[other])
    assert changed.status_code == 409
    somebody_else = api.submit(Role.OPERATOR, key="mine", nodes=[other])
    assert somebody_else.status_code == 202
    assert somebody_else.json()["id"] != first.json()["id"]
    api.work()
    after = api.submit(key="mine", nodes=[one])
    assert after.json()["id"] == first.json()["id"]
    assert after.json()["state"] == "completed"


def test_pending_requests_can_be_cancelled_and_others_not(api: Api) -> None:
    one, other = nodes(api, 2)
    name = api.submit(nodes=[one]).json()["id"]
    cancelled = api.call("DELETE", f"/api/v1/requests/{name}", Role.REQUESTER)
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    done = api.submit(nodes=[other]).json()["id"]
    api.work()
    assert api.call("DELETE", f"/api/v1/requests/{done}", Role.REQUESTER).status_code == 409
    assert api.service.served.now.model.graph_.contains([one, other]).tolist() == [True, False]


def test_requesters_see_their_own_requests_alone(api: Api) -> None:
    one, other = nodes(api, 2)
    mine = api.submit(nodes=[one]).json()["id"]
    theirs = api.submit(Role.OPERATOR, nodes=[other]).json()["id"]
    seen = api.call("GET", "/api/v1/requests", Role.REQUESTER).json()["requests"]
    assert [request["id"] for request in seen] == [mine]
    everything = api.call("GET", "/api/v1/requests", Role.AUDITOR).json()["requests"]
    assert [request["id"] for request in everything] == [theirs, mine]
    for path in ("", "/receipt", "/events"):
        answer = api.call("GET", f"/api/v1/requests/{theirs}{path}", Role.REQUESTER)
        assert answer.status_code == 404
    assert api.call("DELETE", f"/api/v1/requests/{theirs}", Role.REQUESTER).status_code == 404


def test_lists_have_pages_and_filters(api: Api) -> None:
    made = [api.submit(nodes=[node]).json()["id"] for node in nodes(api, 5)]
    api.call("DELETE", f"/api/v1/requests/{made[0]}")
    first = api.call("GET", "/api/v1/requests?limit=2").json()
    assert [request["id"] for request in first["requests"]] == [made[4], made[3]]
    rest = api.call("GET", f"/api/v1/requests?limit=5&cursor={first['cursor']}").json()
    assert [request["id"] for request in rest["requests"]] == [made[2], made[1], made[0]]
    assert rest["cursor"] is None
    chosen = api.call("GET", "/api/v1/requests?state=cancelled").json()["requests"]
    assert [request["id"] for request in chosen] == [made[0]]


def test_a_receipt_can_be_destroyed_and_is_gone_then(api: Api) -> None:
    name = api.submit(nodes=nodes(api, 1)).json()["id"]
    path = f"/api/v1/requests/{name}/receipt"
    assert api.call("GET", path, Role.REQUESTER).status_code == 409
    api.work()
    assert api.call("GET", path, Role.REQUESTER).status_code == 200
    assert api.call("GET", path, Role.REQUESTER).status_code == 200
    assert api.call("DELETE", path, Role.REQUESTER).status_code == 204
    gone = api.call("GET", path, Role.REQUESTER)
    assert (gone.status_code, gone.json()["type"]) == (404, "urn:grapheraser:problem:no-receipt")


def test_a_node_twice_is_forgotten_once(api: Api) -> None:
    (node,) = nodes(api, 1)
    inside = api.submit(nodes=[node, node]).json()["id"]
    again = api.submit(nodes=[node]).json()["id"]
    api.work()
    for name in (inside, again):
        assert api.call("GET", f"/api/v1/requests/{name}").json()["state"] == "completed"
    later = api.submit(nodes=[node]).json()["id"]
    api.work()
    found = api.call("GET", f"/api/v1/requests/{later}").json()
    assert found["state"] == "completed"
    assert found["reason"]
    assert found["receipts"] == 0


def test_an_edge_whose_end_is_gone_is_completed_with_a_reason(api: Api) -> None:
    graph = api.service.served.now.model.graph_
    node = next(int(n) for n in graph.train_nodes if len(graph.neighbours(int(n))))
    other = int(graph.neighbours(node)[0])
    api.submit(nodes=[node])
    api.work()
    late = api.submit(edges=[[node, other]]).json()["id"]
    api.work()
    found = api.call("GET", f"/api/v1/requests/{late}").json()
    assert (found["state"], found["receipts"]) == ("completed", 0)
    assert found["reason"]


def test_unknown_nodes_end_completed_with_a_reason(api: Api) -> None:
    known = nodes(api, 1)
    unknown = api.submit(nodes=[10**9]).json()["id"]
    partly = api.submit(nodes=[*known, 10**9 + 1]).json()["id"]
    api.work()
    found = api.call("GET", f"/api/v1/requests/{unknown}").json()
    assert (found["state"], found["receipts"]) == ("completed", 0)
    assert found["reason"]
    found = api.call("GET", f"/api/v1/requests/{partly}").json()
    assert (found["state"], found["receipts"]) == ("completed", 1)


BAD_BODIES: dict[str, Any] = {
    "nothing": {},
    "empty": {"nodes": []},
    "a name where ids are": {"nodes": ["ada"]},
    "a float": {"nodes": [1.5]},
    "a bool": {"nodes": [True]},
    "too large": {"nodes": [2**63]},
    "negative": {"nodes": [-1]},
    "half an edge": {"edges": [[1]]},
    "an unknown key": {"nodes": [1], "colour": "red"},
    "a deadline without a zone": {"nodes": [1], "deadline": "2030-01-01T00:00:00"},
    "no deadline": {"nodes": [1], "deadline": "soon"},
    "a null character": {"subject": "a\0b"},
    "no object": [1, 2],
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES)
def test_bad_bodies_are_problems_and_change_nothing(shared: Api, body: Any) -> None:
    answer = shared.call("POST", "/api/v1/requests", json=body)
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= answer.json().keys()
    assert shared.call("GET", "/api/v1/requests").json()["requests"] == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"nodes": [1]',
        b"[" * 100_000,
        b'{"nodes": [' + b"9" * 5000 + b"]}",
        json.dumps({"subject": "\ud800"}).encode(),
    ],
    ids=["empty", "open", "no text", "truncated", "deep", "a huge number", "half a character"],
)
def test_malformed_bodies_are_problems(shared: Api, content: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = shared.call("POST", "/api/v1/requests", content=content, headers=headers)
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_failed_requests_can_be_tried_again_by_the_operator_alone(api: Api) -> None:
    name = api.submit(nodes=nodes(api, 1)).json()["id"]
    path = f"/api/v1/requests/{name}/retry"
    assert api.call("POST", path, Role.REQUESTER).status_code == 403
    assert api.call("POST", path).status_code == 409  # it has not failed


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"nodes": [%d], "nodes": [%d]}', "'nodes' is there twice"),
        ('{"nodes": [%d, NaN], "note": %d}', "NaN"),
        ('{"nodes": [%d], "note": "\\ud800", "other": %d}', "surrogate"),
        ('{"nodes": [%d, %d' + "[" * 5000 + "]" * 5000 + "]}", "deeply|Expecting"),
    ],
)
def test_a_body_that_readers_would_read_differently_is_refused(
    api: Api, body: str, reason: str
) -> None:
    text, key = body % tuple(nodes(api, 2)), ("Authorization", f"Bearer {api.keys[Role.REQUESTER]}")
    kind, other = ("Content-Type", "application/json"), ("Content-Type", "text/plain")
    # Twice, and as if it were an inference: neither leads past the check.
    for more in ([], [other], [("Inference-Header-Content-Length", "9")]):
        url, headers = "/api/v1/requests", [key, kind, *more]
        answer = api.client.post(url, content=text, headers=headers)
        assert answer.status_code == 400
        assert re.search(reason, answer.json()["detail"])
