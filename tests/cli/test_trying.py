"""grapheraser demo --serve: started as a person would, looked at, and stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from grapheraser.service.api.keys import LINK_SECONDS, SignInLinks
from tests.cli.commands import run

OPTIONS = ("--dataset", "demo", "--shards", "4")


class Trying:
    """`grapheraser demo --serve` in a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-m", "grapheraser", "demo", "--serve", "--no-open", "--json"]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        environment = {**os.environ, "TMPDIR": str(folder)}
        self.process = subprocess.Popen([*command, *OPTIONS, *options], env=environment, **pipes)
        assert self.process.stdout is not None
        lines = []
        while (line := self.process.stdout.readline()) not in ("}\n", ""):
            lines.append(line)
        self.said: dict[str, str] = json.loads("".join(lines) + "}")
        self.client = httpx.Client(base_url=self.said["url"], timeout=60)

    def sign_in(self) -> httpx.Response:
        """Follow the link, as the browser's script does."""
        token = self.said["link"].partition("#once=")[2]
        return self.client.post(
            "/dashboard/sign-in", data={"once": token}, headers={"Origin": self.said["url"]}
        )

    def stop(self, how: signal.Signals = signal.SIGINT) -> str:
        self.client.close()
        self.process.send_signal(how)
        return self.process.communicate(timeout=60)[1]


@pytest.fixture
def trying(tmp_path: Path) -> Iterator[Trying]:
    made = Trying(tmp_path)
    yield made
    if made.process.poll() is None:
        made.stop(signal.SIGTERM)


@pytest.mark.long
def test_the_demo_is_served_tried_and_stopped(trying: Trying, tmp_path: Path) -> None:
    assert trying.said["url"].startswith("http://127.0.0.1:")
    answer = trying.sign_in()
    assert (answer.status_code, answer.headers["Location"]) == (303, "/dashboard")
    page = trying.client.get("/dashboard").text
    node = int(re.search(r'data-forget="(\d+)"', page)[1])  # type: ignore[index]
    assert f"Forget node {node}" in page
    for name in ("graph", "requests", "shards", "audit"):
        assert trying.client.get(f"/dashboard/{name}").status_code == 200
    headers = {"Authorization": f"Bearer {trying.said['key']}"}
    asked = httpx.post(
        f"{trying.said['url']}/api/v1/requests", json={"nodes": [node]}, headers=headers
    )
    place = asked.headers["Location"]
    while trying.client.get(place).json()["state"] != "completed":
        time.sleep(0.1)
    assert f"Node {node} is forgotten" in trying.client.get("/dashboard").text
    again = trying.sign_in()
    assert again.status_code == 401
    assert "link" in again.json()["detail"]
    said = trying.stop()
    assert trying.process.returncode == 0, said
    assert "Traceback" not in said
    assert not list(tmp_path.glob("grapheraser-demo-*"))  # the run is gone with it


@pytest.mark.long
def test_a_folder_that_was_named_is_served_again_with_what_it_forgot(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = Trying(tmp_path, "--out", str(out))
    headers = {"Authorization": f"Bearer {first.said['key']}"}
    url = f"{first.said['url']}/api/v1"
    place = httpx.post(f"{url}/requests", json={"nodes": [1]}, headers=headers).json()["id"]
    while httpx.get(f"{url}/requests/{place}", headers=headers).json()["state"] != "completed":
        time.sleep(0.1)
    first.stop()
    second = Trying(tmp_path, "--out", str(out))
    found = second.client.get("/api/v1/model", headers=headers).json()
    assert (found["version"], found["name"]) == (1, "demo")
    second.stop(signal.SIGTERM)
    assert second.process.returncode == 0
    other = run("demo", "--serve", "--no-open", *OPTIONS, "--seed", 5, "--out", out)
    assert other.returncode != 0
    assert "holds another run (seed)" in other.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--port", 8080), "need --serve"),
        (("--no-open",), "need --serve"),
        (("--serve", "--requests", 3), "--requests is not of --serve"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: tuple[Any, ...], words: str) -> None:
    done = run("demo", *options)
    assert done.returncode != 0
    assert words in done.stderr


def test_a_link_signs_in_once_and_not_for_ever() -> None:
    now = 0.0
    once = SignInLinks(clock=lambda: now)
    first, second = once.issue("ge_one"), once.issue("ge_two")
    assert first != second
    assert (once.take(first), once.take(first), once.take("nonsense")) == ("ge_one", None, None)
    now = LINK_SECONDS
    assert once.take(second) is None
