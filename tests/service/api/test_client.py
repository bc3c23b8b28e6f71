"""`ge.Client`: what a caller does in Python, against a service that listens."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import (
    ConflictError,
    ParameterError,
    ServiceError,
    UnknownRequestError,
    UnknownSubjectError,
    VerificationError,
)
from grapheraser.receipts.keys import PublicKey
from grapheraser.service.api.keys import Role
from grapheraser.store.keys import KeyFolder
from tests.service.api.conftest import Api, opened
from tests.strategies import small_graph


def client(api: Api, role: Role = Role.OPERATOR) -> ge.Client:
    return ge.Client(str(api.client.base_url), api.keys[role])


def test_from_a_request_to_a_checked_receipt(api: Api, tmp_path: Path) -> None:
    graph = api.service.served.now.model.graph_
    asked = client(api, Role.REQUESTER)
    nodes = graph.train_nodes[:2]
    sent = asked.submit(
        nodes=nodes, deadline=datetime.now(UTC) + timedelta(days=2), idempotency_key="ticket"
    )
    assert (sent["state"], sent["counts"]) == ("received", {"nodes": 2})
    assert asked.submit({"nodes": nodes.tolist()}, idempotency_key="ticket")["id"] == sent["id"]
    api.work()
    assert asked.wait(sent["id"])["state"] == "completed"
    parts = asked.receipt(sent["id"])
    assert sorted(part.about["ids"] for part in parts) == sorted([str(node)] for node in nodes)

    pem = PublicKey(KeyFolder().signing_key().public).to_pem()
    file = tmp_path / "operator.pub"
    file.write_text(pem)
    for key in (None, pem, file):
        assert len(asked.verify(parts, key, asked.checkpoint())) == 2
    forged = [part.__class__(**{**part.__dict__, "nonce": bytes(32)}) for part in parts]
    with pytest.raises(VerificationError):
        asked.verify(forged, pem)
    KeyFolder(tmp_path / "others").rotate()
    other = PublicKey(KeyFolder(tmp_path / "others").signing_key().public).to_pem()
    with pytest.raises(VerificationError):
        asked.verify(parts, other)


def test_predictions_have_the_bits_of_the_model(shared: Api) -> None:
    served = shared.service.served.now
    model = served.model
    assert isinstance(model, ge.GraphEraser)
    nodes = model.graph_.test_nodes[:5]
    version, outputs = client(shared, Role.READER).predict(nodes)
    assert version == served.version
    np.testing.assert_array_equal(outputs["posteriors"], model.predict_proba(nodes))
    assert outputs["posteriors"].dtype == np.float32
    np.testing.assert_array_equal(outputs["classes"], model.predict_proba(nodes).argmax(1))
    assert outputs["class_names"].shape == (5,)
    assert client(shared).predict([]).outputs["classes"].shape == (0,)


def test_a_wait_that_makes_no_sense_ends(api: Api) -> None:
    asked = client(api)
    node = int(api.service.served.now.model.graph_.train_nodes[0])
    sent = asked.submit(nodes=[node])
    with pytest.raises(ServiceError, match="still received after 0 seconds"):
        asked.wait(sent["id"], seconds=0)
    everyone = asked.submit(nodes=api.service.served.now.model.graph_.ids.tolist())
    asked.cancel(sent["id"])
    assert asked.wait(sent["id"])["state"] == "cancelled"
    api.work()
    with pytest.raises(ServiceError, match="failed: it would leave nothing to learn from"):
        asked.wait(everyone["id"])
    assert asked.retry(everyone["id"])["state"] == "received"
    assert [one["id"] for one in asked.requests(state=["cancelled"])] == [sent["id"]]
    assert len(list(asked.requests(limit=1))) == 1


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda c: c.show("0" * 32), UnknownRequestError, "no request"),
        (lambda c: c.submit(subject="nobody"), UnknownSubjectError, "subject map"),
        (lambda c: c.submit(), ServiceError, "names no"),
        (lambda c: c.submit(nodes=[1], persons=[2]), ServiceError, "persons"),
        (lambda c: c.predict([987_654]), ServiceError, "987654 is not in the graph"),
    ],
)
def test_a_refusal_is_an_error_with_the_reason(
    shared: Api, call: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        call(client(shared))


def test_a_receipt_can_not_be_had_before_the_request_is_completed(shared: Api) -> None:
    sent = client(shared).submit(nodes=[int(shared.service.served.now.model.graph_.ids[0])])
    with pytest.raises(ConflictError, match="received"):
        client(shared).receipt(sent["id"])


def test_a_wrong_key_or_role_is_an_error_that_says_so(shared: Api) -> None:
    url = str(shared.client.base_url)
    with pytest.raises(ServiceError, match="no valid API key") as error:
        ge.Client(url, "ge_wrong").model()
    assert "grapheraser access" in str(error.value.hint)
    with pytest.raises(ServiceError, match="for the roles"):
        client(shared, Role.READER).submit(nodes=[1])


@contextmanager
def _answering(
    status: int, headers: dict[str, str], body: bytes
) -> Iterator[tuple[str, list[str]]]:
    """Some other server, with the keys that it was sent."""
    keys: list[str] = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.append(self.headers.get("Authorization", ""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", keys
    finally:
        server.shutdown()
        server.server_close()


def test_no_redirect_is_followed_with_the_key() -> None:
    with (
        _answering(200, {}, b"{}") as (elsewhere, keys),
        _answering(302, {"Location": elsewhere}, b"") as (url, _),
        pytest.raises(ServiceError, match="answered 302"),
    ):
        ge.Client(url, "ge_secret").model()
    assert keys == []


@pytest.mark.parametrize("body", [b"<html>", b"[]"])
def test_what_does_not_answer_like_a_service_is_an_error(body: bytes) -> None:
    with _answering(200, {}, body) as (url, _), pytest.raises(ServiceError, match="like a service"):
        ge.Client(url).model()


def test_an_address_where_nobody_listens_is_an_error() -> None:
    with pytest.raises(ServiceError, match="can't reach the service"):
        ge.Client("http://127.0.0.1:9", timeout=2).model()
    with pytest.raises(ParameterError, match="url"):
        ge.Client("127.0.0.1:8080")


def test_a_client_does_not_show_its_key() -> None:
    assert "ge_secret" not in repr(ge.Client(key="ge_secret"))


def test_a_client_needs_no_extra_and_no_torch() -> None:
    script = (
        "import sys, json, grapheraser as ge; ge.Client();"
        "print(json.dumps([m for m in ('torch', 'fastapi', 'sqlalchemy', 'numpy', 'cryptography')"
        " if m in sys.modules]))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert json.loads(found.stdout) == []


def test_links_are_asked_by_pairs(tmp_path: Path) -> None:
    graph = small_graph()
    links = ge.LinkEraser().fit(graph)
    links.save(tmp_path / "links")
    pairs = np.stack([graph.ids[:3], graph.ids[3:6]], axis=1)
    with opened(tmp_path / "links") as api:
        outputs = client(api).predict(pairs).outputs
    np.testing.assert_array_equal(outputs["probabilities"], links.predict_proba(pairs))
