"""The API on both databases: from a key to a receipt, with OpenDSR and its callbacks."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from grapheraser.service.api.keys import Role
from grapheraser.service.api.opendsr.callbacks import Callbacks, Rules
from tests.service.api.conftest import opened
from tests.service.api.test_opendsr import DOMAIN, asking, certified


def test_requests_of_many_are_accepted_carried_out_and_receipted(url: str, run: Path) -> None:
    with opened(run, database=url) as api:
        nodes = [int(node) for node in api.service.served.now.model.graph_.train_nodes[:12]]

        def submit(at: int) -> str:
            sent = api.submit(key=str(at // 2), nodes=[nodes[at // 2]])
            assert sent.status_code == 202
            return str(sent.json()["id"])

        with ThreadPoolExecutor(8) as pool:
            names = list(pool.map(submit, range(24)))
        assert names[::2] == names[1::2]  # each was sent twice
        assert len(set(names)) == 12
        api.work()
        done = api.call("GET", "/api/v1/requests?state=completed").json()["requests"]
        assert {request["id"] for request in done} == set(names)
        for name in set(names):
            receipt = api.call("GET", f"/api/v1/requests/{name}/receipt", Role.REQUESTER).json()
            assert len(receipt["parts"]) == 1
        assert not api.service.served.now.model.graph_.contains(nodes).any()


def test_callbacks_are_kept_told_and_forgotten(url: str, run: Path, tmp_path: Path) -> None:
    with opened(run, database=url, **certified(tmp_path / "tls")) as api:
        told: list[str] = []

        def send(_: str, body: bytes, __: dict[str, str]) -> None:
            told.append(json.loads(body)["request_status"])

        assert api.parts.processor is not None
        callbacks = Callbacks(
            api.parts.queue, api.parts.processor, Rules(), api.parts.metrics, send=send
        )
        node = int(api.service.served.now.model.graph_.train_nodes[0])
        body = asking(
            subject_request_id=str(uuid.uuid4()),
            subject_identities=[],
            extensions={DOMAIN: {"nodes": [node]}},
            status_callback_urls=["https://controller.example.org/"],
        )
        sent = api.call("POST", "/opendsr/requests", Role.REQUESTER, json=body)
        assert sent.status_code == 201
        api.work()
        while callbacks.send_due():
            pass
        assert told == ["pending", "in_progress", "completed"]
