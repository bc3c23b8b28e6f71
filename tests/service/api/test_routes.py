"""The other routes of its own: log, model, subjects, changes, events, health, metrics."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

import grapheraser as ge
from grapheraser.canonical import canonical_json
from grapheraser.receipts import Receipt, check_against
from grapheraser.receipts.keys import Checkpoint, PublicKey
from grapheraser.receipts.tree import check_consistency, check_inclusion, root_of
from grapheraser.service.api.keys import Role
from grapheraser.service.api.v1 import events as stream
from grapheraser.service.queue.requests import OUT_OF_SCOPE, RequestContent
from tests.service.api.conftest import Api
from tests.waiting import until


def erase(api: Api, count: int) -> list[str]:
    """Forget one training node after the other, each in a batch of its own."""
    names = []
    for _ in range(count):
        node = int(api.service.served.now.model.graph_.train_nodes[0])
        names.append(api.submit(nodes=[node]).json()["id"])
        api.work()
    return names


def test_an_auditor_can_check_the_exported_log(api: Api) -> None:
    erase(api, 5)
    first = api.call("GET", "/api/v1/log?limit=3", Role.AUDITOR).json()
    rest = api.call("GET", f"/api/v1/log?start={first['next']}", Role.AUDITOR).json()
    assert (first["size"], rest["next"]) == (5, None)
    entries = first["entries"] + rest["entries"]
    receipts = [Receipt.from_json(canonical_json(entry["envelope"])) for entry in entries]
    assert [receipt.digest for receipt in receipts] == [entry["digest"] for entry in entries]
    keys = api.call("GET", "/api/v1/log/keys", Role.AUDITOR).text
    note = api.call("GET", "/api/v1/log/checkpoint", Role.READER).text
    checkpoint = check_against(receipts, note, PublicKey.read(keys))
    assert checkpoint.size == 5
    assert note == rest["checkpoint"]


@pytest.mark.parametrize("sequence", [1, 3, 5])
def test_inclusion_and_consistency_are_proved(api: Api, sequence: int) -> None:
    erase(api, 5)
    leaves = [receipt.leaf for receipt in api.parts.log.read()[0]]
    found = api.call("GET", f"/api/v1/log/{sequence}/proof", Role.AUDITOR).json()
    root = Checkpoint.read(found["checkpoint"]).root
    proof = [bytes.fromhex(part) for part in found["proof"]]
    check_inclusion(bytes.fromhex(found["leaf"]), found["index"], found["size"], proof, root)
    assert found["leaf"] == leaves[sequence - 1].hex()
    grown = api.call("GET", f"/api/v1/log/consistency?first={sequence}&second=5", Role.AUDITOR)
    parts = [bytes.fromhex(part) for part in grown.json()["proof"]]
    check_consistency(sequence, 5, parts, root_of(leaves[:sequence]), root)
    for path in ("6/proof", f"{sequence}/proof?size=6", "consistency?first=5&second=6"):
        assert api.call("GET", f"/api/v1/log/{path}", Role.AUDITOR).status_code == 404


def test_an_empty_log_has_no_checkpoint(shared: Api) -> None:
    assert shared.call("GET", "/api/v1/log").json()["entries"] == []
    assert shared.call("GET", "/api/v1/log/checkpoint").status_code == 404
    assert shared.call("GET", "/api/v1/log/1/proof").status_code == 404


def test_model_shards_and_versions_describe_what_is_served(api: Api) -> None:
    eraser = api.service.served.now.model
    found = api.call("GET", "/api/v1/model", Role.READER).json()
    assert (found["name"], found["version"], found["task"]) == ("people", 0, "classes")
    assert found["nodes"] == eraser.graph_.num_nodes
    assert api.call("GET", "/api/v1/versions").json() == []
    erase(api, 2)
    shards = api.call("GET", "/api/v1/shards", Role.OPERATOR).json()
    eraser = api.service.served.now.model
    assert shards["version"] == 2
    assert [shard["nodes"] for shard in shards["shards"]] == eraser.partition_.sizes.tolist()
    digests = {shard["shard"]: shard["digest"] for shard in shards["shards"]}
    assert digests == {shard: weights.digest for shard, weights in eraser.shards_.items()}
    versions = api.call("GET", "/api/v1/versions", Role.AUDITOR).json()
    assert [(v["version"], v["served"]) for v in versions] == [(2, True), (1, False)]


def test_a_subject_is_loaded_found_erased_and_gone(api: Api) -> None:
    graph = api.service.served.now.model.graph_
    mine, other = (int(node) for node in graph.train_nodes[:2])
    entries = [
        {"subject": "email:ada@example.org", "nodes": [mine]},
        {"subject": "email:bob@example.org", "nodes": [other]},
    ]
    assert api.call("POST", "/api/v1/subjects", json={"entries": entries}).json() == {
        "added": 2,
        "items": 2,
    }
    who = {"subject": "email:ada@example.org"}
    found = api.call("POST", "/api/v1/subjects/find", json=who).json()
    assert found["items"] == [{"kind": "node", "ids": [str(mine)]}]
    assert found["out_of_scope"] == list(OUT_OF_SCOPE)
    name = api.submit(subject=who["subject"]).json()["id"]
    api.work()
    assert api.call("GET", f"/api/v1/requests/{name}").json()["state"] == "completed"
    assert api.service.served.now.model.graph_.contains([mine, other]).tolist() == [False, True]
    assert api.call("POST", "/api/v1/subjects/find", json=who).status_code == 404
    bob = {"subject": "email:bob@example.org"}
    assert api.call("POST", "/api/v1/subjects/forget", json=bob).json() == {"items": 1}
    assert api.call("POST", "/api/v1/subjects/find", json=bob).status_code == 404


def test_an_operator_is_told_of_an_unknown_subject(shared: Api) -> None:
    answer = shared.submit(Role.OPERATOR, subject="nobody")
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:grapheraser:problem:unknown-subject"
    assert shared.call("GET", "/api/v1/requests").json()["requests"] == []


def test_updates_and_insertions_change_the_run(api: Api) -> None:
    graph = api.service.served.now.model.graph_
    node, other = (int(n) for n in graph.train_nodes[:2])
    label = (int(graph.labels([node])[0]) + 1) % graph.num_classes
    changes = [{"set_labels": {"nodes": [node], "y": [label]}}]
    sent = api.call("POST", "/api/v1/updates", json={"changes": changes})
    assert sent.status_code == 202
    assert sent.json()["kind"] == "update"
    new = {"id": 5000, "features": {"0": 1.0}, "label": 1, "neighbours": [other]}
    again = api.call("POST", "/api/v1/insertions", json=new)
    assert again.status_code == 202
    api.work()
    graph = api.service.served.now.model.graph_
    assert graph.labels([node]).tolist() == [label]
    assert graph.neighbours(5000).tolist() == [other]
    for answer in (sent, again):
        path = f"/api/v1/requests/{answer.json()['id']}"
        assert api.call("GET", path).json()["state"] == "completed"


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [{}],
        [{"paint": [1]}],
        [{"add_nodes": {"ids": [1]}}],
        [{"set_labels": {"nodes": [1], "y": ["red"]}}],
        [{"add_nodes": {"ids": [9], "x": [{"999": 1}]}}],
    ],
)
def test_what_is_no_change_is_refused(shared: Api, changes: object) -> None:
    answer = shared.call("POST", "/api/v1/updates", json={"changes": changes})
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"


def events(api: Api, query: str, role: Role = Role.AUDITOR) -> list[dict[str, str]]:
    answer = api.call("GET", f"/api/v1/events?seconds=0&{query}", role)
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    blocks = [block for block in answer.text.split("\n\n") if block.startswith("id:")]
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]


def test_events_tell_every_step_and_go_on_where_one_left_off(api: Api) -> None:
    (name,) = erase(api, 1)
    found = events(api, "after=0")
    assert [event["event"] for event in found] == [
        *("received", "planned", "retraining", "published", "erased", "completed")
    ]
    assert {json.loads(event["data"])["request"] for event in found} == {name}
    assert [e["id"] for e in events(api, f"after={found[2]['id']}")] == [
        event["id"] for event in found[3:]
    ]
    assert events(api, "") == []  # from now on
    assert len(events(api, f"after=0&request={name}", Role.REQUESTER)) == 6


def test_a_requester_follows_their_own_requests_alone(api: Api) -> None:
    (mine,) = erase(api, 1)
    node = int(api.service.served.now.model.graph_.train_nodes[0])
    theirs = api.submit(Role.OPERATOR, nodes=[node]).json()["id"]
    assert {json.loads(e["data"])["request"] for e in events(api, "after=0")} == {mine, theirs}
    own = events(api, "after=0", Role.REQUESTER)
    assert {json.loads(event["data"])["request"] for event in own} == {mine}
    path = f"/api/v1/events?seconds=0&request={theirs}"
    assert api.call("GET", path, Role.REQUESTER).status_code == 404


def test_a_stream_ends_when_its_key_is_revoked(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "REMEMBERED", 0.05)
    made, text = api.parts.keys.create("temporary", Role.AUDITOR)
    headers = {"Authorization": f"Bearer {text}"}
    with api.client.stream("GET", "/api/v1/events?seconds=60", headers=headers) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 2000"
        assert api.parts.keys.revoke(made.id)
        assert list(filter(None, lines)) == []  # and it comes to its end


def test_requests_are_summed_up_for_those_who_may_see_them(api: Api) -> None:
    erase(api, 2)
    node = int(api.service.served.now.model.graph_.train_nodes[0])
    api.submit(Role.OPERATOR, nodes=[node])
    found = api.call("GET", "/api/v1/summary", Role.AUDITOR).json()
    assert (found["stages"]["completed"], found["stages"]["waiting"]) == (2, 1)
    assert found["median_seconds"] > 0
    assert found["next_deadline"] is not None
    mine = api.call("GET", "/api/v1/summary", Role.REQUESTER).json()
    assert (mine["stages"]["completed"], mine["stages"]["waiting"]) == (2, 0)
    assert mine["next_deadline"] is None


def test_every_version_is_scored_when_it_is_published(api: Api) -> None:
    before = api.service.served.now.model
    erase(api, 2)
    after = api.service.served.now.model
    found = api.call("GET", "/api/v1/scores", Role.AUDITOR).json()
    assert [score["version"] for score in found] == [0, 1, 2]
    for score, model in ((found[0], before), (found[-1], after)):
        assert isinstance(model, ge.GraphEraser)
        assert score["nodes"] == model.graph_.num_nodes
        assert score["f1"] == round(model.score(model.graph_.test_nodes), 2)
    assert len(api.call("GET", "/api/v1/scores?limit=1", Role.AUDITOR).json()) == 1


def test_an_event_arrives_while_somebody_listens(api: Api) -> None:
    node = int(api.service.served.now.model.graph_.train_nodes[0])
    headers = {"Authorization": f"Bearer {api.keys[Role.AUDITOR]}"}
    with api.client.stream("GET", "/api/v1/events?seconds=20", headers=headers) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 2000"
        api.parts.queue.submit(RequestContent(nodes=(node,)))
        assert next(line for line in lines if line.startswith("event:")) == "event: received"


def test_health_and_readiness(run: Path, api: Api) -> None:
    assert api.client.get("/api/v1/health").json() == {"status": "alive"}
    waiting = api.client.get("/api/v1/ready")  # its worker is at rest
    assert waiting.status_code == 503
    assert waiting.json()["checks"] == {"database": True, "model": True, "worker": False}
    api.service.start()
    assert api.client.get("/api/v1/ready").json()["status"] == "ready"


def test_metrics_count_requests_routes_and_predictions(api: Api) -> None:
    erase(api, 2)
    node = int(api.service.served.now.model.graph_.ids[0])
    body = {"inputs": [{"name": "nodes", "datatype": "INT64", "shape": [1], "data": [node]}]}
    api.call("POST", "/v2/models/people/infer", Role.READER, json=body)
    api.call("GET", "/nowhere")
    page = api.call("GET", "/metrics", Role.AUDITOR)
    assert page.headers["Content-Type"].startswith("text/plain")
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(page.text)
        for sample in family.samples
    }
    assert samples["grapheraser_requests", "completed"] == 2
    assert samples["grapheraser_requests_open",] == 0
    assert samples["grapheraser_model_version",] == 2
    assert samples["grapheraser_worker_trouble",] == 0
    assert samples["grapheraser_predictions_total",] == 1
    submits = samples["grapheraser_http_requests_total", "/api/v1/requests", "202", "POST"]
    assert submits == 2
    assert samples["grapheraser_http_requests_total", "404", "GET", "other"] == 1
    assert str(node) not in page.text.split()


def test_spans_name_routes_and_nobody(api: Api) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    name = "f" * 32
    api.call("GET", f"/api/v1/requests/{name}", headers={"traceparent": parent})
    until(exporter.get_finished_spans)  # a span ends after its answer has left
    (span,) = exporter.get_finished_spans()
    assert span.name == "GET /api/v1/requests/{name}"
    assert span.context is not None
    assert format(span.context.trace_id, "032x") == "0af7651916cd43dd8448eb211c80319c"
    assert span.attributes is not None
    assert span.attributes["http.response.status.code"] == 404
    assert name not in str(span.to_json())


def test_logs_hold_neither_people_nor_keys(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    api.submit(subject="ada@example.org", key="secret-key")
    api.submit(nodes=["ada"])
    api.call("GET", "/api/v1/requests?cursor=ada@example.org")
    api.work()
    ours = [r for r in caplog.records if not r.name.startswith("http")]  # not the client's
    text = "\n".join(record.getMessage() for record in ours)
    assert "ada" not in text
    assert "secret-key" not in text
    assert not any(key in text for key in api.keys.values())


def test_an_unforeseen_error_is_a_problem_that_says_nothing(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said = "ada@example.org"

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(api.parts.queue, "list", fails)
    answer = api.call("GET", "/api/v1/requests")
    assert answer.status_code == 500
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert said not in answer.text
    assert said not in caplog.text
    assert "RuntimeError" in caplog.text


def test_a_version_is_never_a_mix(api: Api) -> None:
    """Posteriors and version of one answer are of one state, whatever is published meanwhile."""
    eraser = api.service.served.now.model
    assert isinstance(eraser, ge.GraphEraser)
    stays = eraser.graph_.test_nodes[:5]
    known = {0: eraser.predict_proba(stays).tobytes()}
    for _ in range(3):
        erase(api, 1)
        now = api.service.served.now
        assert isinstance(now.model, ge.GraphEraser)
        known[now.version] = now.model.predict_proba(stays).tobytes()
        posteriors, version = api.service.served.predict(np.asarray(stays))
        assert known[version] == posteriors.tobytes()
