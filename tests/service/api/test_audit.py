"""Verification as a job, receipts that are brought, and the last report."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.audit.report import FORMAT, report_folder
from grapheraser.eraser.verify import Verification
from grapheraser.receipts.checking import check_part
from grapheraser.service.api.keys import Role
from grapheraser.store.folder import hold
from grapheraser.store.keys import known_keys
from tests.service.api.conftest import Api
from tests.service.api.test_routes import erase


def verified(api: Api, *, deep: bool = False) -> Any:
    """A verification from its beginning to its end."""
    answer = api.call("POST", "/api/v1/verifications", Role.AUDITOR, json={"deep": deep})
    assert answer.status_code == 202
    place, until = answer.headers["Location"], time.monotonic() + 60
    while time.monotonic() < until:
        found = api.call("GET", place, Role.AUDITOR).json()
        if found["state"] != "running":
            return found
        time.sleep(0.02)
    raise AssertionError("the verification did not end")


def test_a_verification_says_that_all_is_as_it_should_be(api: Api) -> None:
    erase(api, 2)
    found = verified(api, deep=True)
    assert (found["state"], found["version"]) == ("done", 2)
    result = found["result"]
    assert result["passed"]
    assert result["identical"]
    assert result["search"]["clean"]
    expected = api.service.served.now.model.verify()
    assert (result["tensors"], result["values"], result["receipts"]) == (
        *(expected.tensors, expected.values),
        2,
    )
    (listed,) = api.call("GET", "/api/v1/verifications", Role.AUDITOR).json()
    assert listed == found


def test_a_stray_file_is_found_and_named(api: Api) -> None:
    (api.parts.run / "copy.npy").write_bytes(b"left behind")
    shallow, deep = verified(api), verified(api, deep=True)
    assert shallow["result"]["strays"] == ["copy.npy"]
    assert shallow["result"]["search"] is None
    assert [one["file"] for one in deep["result"]["search"]["residues"]] == ["copy.npy"]
    assert not shallow["result"]["passed"]
    assert not deep["result"]["passed"]


def test_weights_that_were_changed_are_found(api: Api) -> None:
    model = api.service.served.now.model
    weights = model.shards_[0]
    name = next(name for name, tensor in weights.tensors.items() if tensor.dtype.kind == "f")
    weights.tensors[name].flags.writeable = True
    weights.tensors[name][...] = 1
    result = verified(api)["result"]
    assert not result["identical"]
    assert any(line.startswith("shard 0/") for line in result["differences"])


def test_one_verification_runs_at_a_time_and_tells_how_far_it_is(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = threading.Event()
    real = ge.GraphEraser.verify

    def slow(self: ge.GraphEraser) -> Verification:
        result = real(self)
        going.wait(30)
        return result

    monkeypatch.setattr(ge.GraphEraser, "verify", slow)
    begun = api.call("POST", "/api/v1/verifications", json={})
    refused = api.call("POST", "/api/v1/verifications", json={})
    assert refused.status_code == 409
    until = time.monotonic() + 60
    while True:
        now = api.call("GET", begun.headers["Location"]).json()
        if now["step"] == "comparing bit for bit" or time.monotonic() > until:
            break
    assert (now["state"], now["step"]) == ("running", "comparing bit for bit")
    erase(api, 1)  # requests go on meanwhile
    going.set()
    while (now := api.call("GET", begun.headers["Location"]).json())["state"] == "running":
        time.sleep(0.02)
    assert (now["version"], now["result"]["identical"]) == (0, True)


def test_a_run_that_is_being_changed_is_waited_for(api: Api) -> None:
    with hold(api.parts.run):
        place = api.call("POST", "/api/v1/verifications", json={"deep": True}).headers["Location"]
        until = time.monotonic() + 60
        while (now := api.call("GET", place).json())["step"] != "searching every file":
            assert time.monotonic() < until
        time.sleep(0.2)
        assert api.call("GET", place).json()["state"] == "running"
    while (now := api.call("GET", place).json())["state"] == "running":
        time.sleep(0.02)
    assert now["result"]["passed"]


def test_a_verification_that_fails_says_so_and_nothing_personal(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(self: ge.GraphEraser) -> Verification:
        raise RuntimeError("ada@example.org")

    monkeypatch.setattr(ge.GraphEraser, "verify", fails)
    found = verified(api)
    assert (found["state"], found["result"]) == ("failed", None)
    assert "ada" not in found["reason"] + caplog.text


def handed_out(api: Api) -> str:
    """The file of a receipt."""
    (name,) = erase(api, 1)
    text: str = api.call("GET", f"/api/v1/requests/{name}/receipt/1").text
    return text


def brought(api: Api, content: str | bytes, role: Role = Role.READER) -> Any:
    answer = api.call("POST", "/api/v1/receipts/verify", role, content=content)
    assert answer.status_code == 200
    return answer.json()


def test_a_receipt_is_checked_in_the_words_of_the_command_line(api: Api) -> None:
    text = handed_out(api)
    found = brought(api, text)
    part = ge.receipts.Part.from_json(text)
    words = list(check_part(part, known_keys()).lines)
    assert found["valid"]
    assert found["checked"] == [*words, "the log as it is now holds it at its place"]
    assert found["about"] == f"forget node {part.about['ids'][0]}"
    assert (found["sequence"], found["statement"]) == (1, part.receipt.statement)


def test_a_forged_receipt_is_refused_with_words(api: Api) -> None:
    text = handed_out(api)
    other = json.loads(text)
    other["request"]["about"]["ids"] = ["999"]
    spelled = json.dumps(other, sort_keys=True, separators=(",", ":"))
    assert brought(api, spelled)["wrong"] == "the receipt does not answer this request."
    for content in (text[:-30], "[]", "7", "", b"\xff\xfe", "null"):
        found = brought(api, content)
        assert not found["valid"]
        assert found["wrong"] == "not a readable receipt, or a truncated one."


def test_a_receipt_that_shows_no_absence_is_signed_and_neither_valid_nor_wrong(api: Api) -> None:
    pair = [int(end) for end in api.service.served.now.model.graph_.edges[0]]
    name = api.submit(edges=[pair]).json()["id"]
    api.work()
    found = brought(api, api.call("GET", f"/api/v1/requests/{name}/receipt/1").text)
    assert (found["valid"], found["verdict"], found["wrong"]) == (False, "signed", None)
    assert "operator's word" in found["unshown"]
    assert found["about"] == f"forget edge {pair[0]}-{pair[1]}"
    assert found["checked"]
    node = brought(api, handed_out(api))
    assert (node["valid"], node["verdict"], node["unshown"]) == (True, "valid", None)
    assert brought(api, "[]")["verdict"] == "refused"


def test_a_receipt_of_another_run_is_told_apart(api: Api, fitted: Path) -> None:
    eraser = ge.GraphEraser.load(fitted)
    part = eraser.unlearn(ge.Nodes([eraser.graph_.train_nodes[0]])).parts[0]
    found = brought(api, part.to_json())
    assert not found["valid"]
    assert "not in the log" in found["wrong"] or "another run" in found["wrong"]


def test_the_last_report_is_shown_with_the_version_that_it_is_of(api: Api) -> None:
    missing = api.call("GET", "/api/v1/audit", Role.AUDITOR)
    assert missing.status_code == 404
    assert "grapheraser audit" in missing.json()["hint"]
    erase(api, 1)
    finding = {"question": "Why?", "level": "leak", "measured": "0.6", "meaning": "A little."}
    report = {
        "format": FORMAT,
        "passed": True,
        "leaks": 1,
        "not_run": [],
        "run": {"last_receipt": api.service.served.now.model.receipts_[-1].digest},
        "findings": [finding],
        "seconds": 2.5,
        "minutes": 3.0,
        "made_at": "2026-01-02T03:04:05+00:00",
    }
    file = report_folder(api.parts.run) / "audit.json"
    file.parent.mkdir()
    file.write_text(json.dumps(report))
    erase(api, 1)
    found = api.call("GET", "/api/v1/audit", Role.AUDITOR).json()
    assert (found["version"], found["served"], found["findings"]) == (1, 2, [finding])
    wrong: list[Any] = [
        {**report, "run": {"last_receipt": "0" * 64}},
        {**report, "findings": 3},
        [],
    ]
    for broken in wrong:
        file.write_text(json.dumps(broken))
        assert api.call("GET", "/api/v1/audit", Role.AUDITOR).status_code == 404
