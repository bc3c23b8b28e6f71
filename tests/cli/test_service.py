"""The verbs of the service: serve, access, requests."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.receipts import Part
from grapheraser.receipts.keys import PublicKey
from grapheraser.store.keys import KeyFolder
from tests.cli.commands import data, run
from tests.strategies import small_graph


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people"
    ge.GraphEraser(num_shards=3, epochs=2).fit(small_graph()).save(path)
    return path


class Serving:
    """`grapheraser serve` in a process of its own."""

    def __init__(self, path: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "grapheraser", "serve", str(path), "--json", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        lines = []
        while (line := self.process.stdout.readline()) not in ("}\n", ""):
            lines.append(line)
        self.said: dict[str, Any] = json.loads("".join(lines) + "}")

    def stop(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=60)
        return out + err


@pytest.fixture
def serving(people: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    monkeypatch.setenv("GRAPHERASER_SERVICE_WINDOW", "0")
    found = Serving(people, "--port", "0")
    monkeypatch.setenv("GRAPHERASER_URL", found.said["url"])
    monkeypatch.setenv("GRAPHERASER_API_KEY", found.said["key"])
    wait_for(found.said["url"])
    yield found
    found.stop()


def wait_for(url: str) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"{url}/api/v1/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the service does not come up")


@pytest.mark.slow
def test_a_request_goes_through_a_service_that_was_started_by_hand(
    serving: Serving, people: Path, tmp_path: Path
) -> None:
    one, other, third = (int(node) for node in small_graph().train_nodes[:3])
    words = ("--nodes", one, "--wait", "--receipts", tmp_path / "handed")
    done = data("requests", "submit", *words, "--idempotency-key", "first")
    (request,) = done["requests"]
    assert request["state"] == "completed"
    (file,) = done["files"]
    part = Part.from_json(Path(file).read_text())
    part.check(PublicKey(KeyFolder().signing_key().public))
    assert part.about["ids"] == [str(one)]
    again = data("requests", "submit", "--nodes", one, "--idempotency-key", "first")
    assert again["requests"][0]["id"] == request["id"]
    plain = run("requests", "submit", "--nodes", one, "--idempotency-key", "first")
    assert "was used before" in plain.stderr

    lines = tmp_path / "requests.jsonl"
    lines.write_text(f'{{"nodes": [{other}]}}\n{third}\n')
    found = data("requests", "submit", "--file", lines, "--wait")["requests"]
    assert [one["state"] for one in found] == ["completed"] * 2
    listed = data("requests", "list")["requests"]
    assert {one["id"] for one in listed} == {request["id"], *(one["id"] for one in found)}
    assert data("requests", "list", "--state", "failed")["requests"] == []
    shown = data("requests", "show", request["id"])
    assert shown["version"] == 1
    assert shown["out_of_scope"]
    files = data("requests", "receipt", found[0]["id"], "--receipts", tmp_path / "more")["files"]
    assert Part.from_json(Path(files[0]).read_text()).about["ids"] == [str(other)]
    assert run("requests", "cancel", request["id"]).returncode == 1
    plain = run("requests", "show", request["id"])
    assert "state       completed" in plain.stdout
    assert request["id"] in run("requests", "list").stdout

    output = serving.stop()
    assert serving.process.returncode == 0
    assert "Traceback" not in output
    eraser = ge.GraphEraser.load(people)
    assert not eraser.graph_.contains([one, other, third]).any()
    assert eraser.verify().identical


def test_a_port_that_is_taken_is_an_error_and_makes_no_key(people: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        found = run("serve", people, "--port", port)
    assert found.returncode == 1
    assert f"can't listen on 127.0.0.1, port {port}" in found.stderr
    assert "serving" not in found.stdout + found.stderr
    assert data("access", people)["keys"] == []


@pytest.mark.slow
@pytest.mark.long
def test_the_first_key_is_printed_once(people: Path) -> None:
    first = Serving(people, "--port", "0")
    wait_for(first.said["url"])
    first.stop()
    again = Serving(people, "--port", "0")
    again.stop()
    assert re.fullmatch(r"ge_[0-9a-f]{12}_[\w-]{43}", first.said["key"])
    assert "key" not in again.said


def test_keys_are_made_listed_and_revoked_without_a_running_service(people: Path) -> None:
    made = data("access", people, "--create", "requester", "--name", "front desk")
    assert made["key"].startswith(f"ge_{made['id']}_")
    (listed,) = data("access", people)["keys"]
    assert (listed["name"], listed["role"], listed["revoked"]) == (
        *("front desk", "requester", None),
    )
    (revoked,) = data("access", people, "--revoke", made["id"])["keys"]
    assert revoked["revoked"]
    assert run("access", people, "--create", "reader").stdout.startswith("ge_")
    assert "front desk" in run("access", people).stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("serve", "RUN", "--host", "0.0.0.0"), "before there are API keys"),
        (("serve", "nowhere"), "there is no run here"),
        (("serve", "RUN", "--port", "70000"), "'port'"),
        (("serve", "RUN", "--database", "mysql://x"), "sqlite or postgresql"),
        (("serve", "RUN", "--opendsr-domain", "a.example"), "or none of them"),
        (("access", "RUN", "--create", "king"), "one of requester, operator"),
        (("access", "RUN", "--revoke", "nobody"), "no key"),
        (("access", "RUN", "--name", "x"), "--name is of --create"),
        (("access", "nowhere"), "there is no run here"),
    ],
)
def test_what_can_not_be_served_is_said(people: Path, words: tuple[str, ...], said: str) -> None:
    done = run(*(people if word == "RUN" else word for word in words))
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("submit", "--nodes", "1"), "can't reach the service"),
        (("list", "--nodes", "1"), "is of `requests submit`"),
        (("show",), "takes the id"),
        (("list", "abc"), "takes no id"),
        (("cancel", "abc", "--wait"), "--wait is of"),
        (("list", "--receipts", "folder"), "--receipts is of"),
        (("show", "abc", "--state", "failed"), "--state is of"),
    ],
)
def test_what_has_no_part_in_an_action_is_refused(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.setenv("GRAPHERASER_API_KEY", "ge_0")
    monkeypatch.setenv("GRAPHERASER_URL", "http://127.0.0.1:1")  # nobody listens there
    done = run("requests", *words)
    assert done.returncode == 1
    assert said in done.stderr


def test_a_missing_key_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPHERASER_API_KEY", raising=False)
    assert "GRAPHERASER_API_KEY" in run("requests", "list").stderr
    assert os.environ.get("GRAPHERASER_API_KEY") is None
