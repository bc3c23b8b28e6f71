"""The log: a line for each step of a request, in two formats, that names nobody."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from grapheraser.errors import EmptyEnsembleError
from grapheraser.service.logs import LineFormatter, configure, log
from grapheraser.service.queue.requests import RequestContent
from grapheraser.service.settings import Settings
from tests.service.conftest import Opened

_STEPS = ["accepted", "begun", "retraining", "published", "erased", "completed"]


class Lines:
    """What a process whose log is configured has written to stderr."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys, self.text = capsys, ""

    def read(self) -> list[str]:
        self.text += self._capsys.readouterr().err
        return self.text.splitlines()

    def parsed(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.read()]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """The lines of a log; the logging of pytest is put back."""
    root, ours = logging.getLogger(), logging.getLogger("grapheraser")
    before, levels = root.handlers[:], (root.level, ours.level)
    yield Lines(capsys)
    logging.captureWarnings(False)
    root.handlers[:] = before
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def _messages(lines: Lines) -> list[tuple[str, str]]:
    return [(one["message"].removeprefix("request "), one["request"]) for one in lines.parsed()]


@pytest.mark.parametrize(
    ("level", "steps"),
    [
        ("debug", _STEPS),
        ("info", ["accepted", "begun", "completed"]),
        ("warning", []),
    ],
)
def test_every_step_of_a_request_is_a_line(
    nodes_run: Path, opened: Opened, lines: Lines, level: str, steps: list[str]
) -> None:
    service = opened(nodes_run)
    configure(Settings(log_level=level, log_format="json"))
    node = int(service.served.now.model.graph_.train_nodes[0])
    asked = service.queue.submit(RequestContent(nodes=(node,)), key="ticket").request
    service.queue.submit(RequestContent(nodes=(node,)), key="ticket")  # no second line
    service.worker.round()
    assert service.queue.get(asked.id).state == "completed"
    assert _messages(lines) == [(step, asked.id) for step in steps]


def test_a_line_names_nobody(nodes_run: Path, opened: Opened, lines: Lines) -> None:
    service = opened(nodes_run)
    graph = service.served.now.model.graph_
    node = int(graph.train_nodes[0])
    service.queue.subjects.load([RequestContent(subject="ada@example.org", nodes=(node,))])
    configure(Settings(log_level="debug", log_format="json"))
    asked = service.queue.submit(RequestContent(subject="ada@example.org"), key="of ada").request
    service.worker.round()
    for line in lines.parsed():
        assert line.pop("request") == asked.id
        assert datetime.fromisoformat(line.pop("time")).tzinfo is not None
        assert line.keys() <= {"level", "logger", "message", "version", "batch"}
        assert "ada" not in json.dumps(line)


def test_a_failure_says_why_and_when_it_is_tried_again(
    nodes_run: Path, opened: Opened, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = opened(nodes_run)
    configure(Settings(log_level="warning", log_format="json"))
    model = type(service.served.now.model)

    def full(*_: object, **__: object) -> None:
        raise MemoryError("4711 of Ada")

    monkeypatch.setattr(model, "unlearn", full)
    node = int(service.served.now.model.graph_.train_nodes[0])
    asked = service.queue.submit(RequestContent(nodes=(node,))).request
    service.worker.round()
    (line,) = lines.parsed()
    assert (line["level"], line["message"]) == ("warning", "request failed")
    assert (line["request"], line["reason"]) == (asked.id, service.queue.get(asked.id).reason)
    assert "not enough memory" in line["reason"]
    assert "4711" not in lines.text
    assert datetime.fromisoformat(line["retry_at"]).tzinfo is not None


def test_what_is_not_committed_is_not_logged(
    nodes_run: Path, opened: Opened, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = opened(nodes_run)
    configure(Settings(log_format="json"))
    node = int(service.served.now.model.graph_.train_nodes[0])
    asked = service.queue.submit(RequestContent(nodes=(node,))).request

    def refuse(*_: object) -> None:
        raise EmptyEnsembleError("nothing is left.")

    with monkeypatch.context() as patched:
        patched.setattr(service.worker._batches, "_close", refuse)
        with pytest.raises(EmptyEnsembleError):
            service.worker._batches.abandon(service.worker._batches.claim(9), [asked.id])  # type: ignore[arg-type]
    assert _messages(lines) == [("accepted", asked.id), ("begun", asked.id)]


def test_a_text_line_can_be_split_at_spaces() -> None:
    record = logging.makeLogRecord(
        {"msg": "request %s", "args": ("failed",), "levelno": 30, "levelname": "WARNING"}
    )
    record.created = 0.25
    record.fields = {"request": "a1", "reason": 'it "failed"', "empty": ""}
    line = LineFormatter(as_json=False).format(record)
    assert line == (
        "1970-01-01T00:00:00.250Z warning request failed request=a1 "
        'reason="it \\"failed\\"" empty=""'
    )
    record.msg = "a file named\n%s\x1b[2J"
    assert "named\\nfailed\\x1b[2J request=a1" in LineFormatter(as_json=False).format(record)


def test_an_exception_is_logged_without_what_it_says(lines: Lines) -> None:
    configure(Settings(log_format="json"))
    logger = logging.getLogger("grapheraser.service.test")
    try:
        raise ValueError("Ada is node 12")
    except ValueError:
        logger.exception("the worker waits")
    (line,) = lines.parsed()
    assert line["error"] == "ValueError"
    assert "test_logs.py" in line["at"]
    assert "Ada" not in json.dumps(line).replace('raise ValueError(\\"Ada is node 12\\")', "")


def test_a_library_is_heard_from_warnings_on(lines: Lines) -> None:
    configure(Settings(log_level="debug"))
    logging.getLogger("sqlalchemy.pool").info("of no interest")
    log(logging.getLogger("uvicorn.error"), logging.WARNING, "of interest", left=None, right=1)
    (line,) = lines.read()
    assert line.endswith("warning of interest right=1")
