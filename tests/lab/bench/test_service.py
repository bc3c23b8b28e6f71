"""The load generator, and the bench of the service in small."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from grapheraser_lab.bench import service
from grapheraser_lab.bench.http import drive, message


class Counting(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bodies: list[bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).bodies.append(body)
        status = 500 if body == b"bad" else 200
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def counting() -> Iterator[tuple[tuple[str, int], type[Counting]]]:
    handler = type("Fresh", (Counting,), {"bodies": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield ("127.0.0.1", server.server_port), handler
        server.shutdown()
        thread.join()


def test_every_message_is_sent_once_and_its_answer_counted(
    counting: tuple[tuple[str, int], type[Counting]],
) -> None:
    address, handler = counting
    bodies = [b"%d" % n for n in range(50)] + [b"bad"]
    messages = [message("POST", "/", "here", {"A": "b"}, body) for body in bodies]
    load = drive(address, messages, connections=3, seconds=30)
    assert sorted(handler.bodies) == sorted(bodies)
    summary = load.summary()
    assert (summary["count"], summary["errors"]) == (51, 1)
    assert 0 < summary["p50"] <= summary["p99"] <= load.seconds
    assert summary["rate"] == pytest.approx(51 / load.seconds)


def test_messages_are_sent_again_until_it_is_enough(
    counting: tuple[tuple[str, int], type[Counting]],
) -> None:
    address, handler = counting
    messages = [message("POST", "/", "here", {}, b"x")]
    load = drive(
        address,
        messages,
        connections=1,
        seconds=30,
        until=lambda: len(handler.bodies) >= 7,
    )
    assert len(load.latencies) == 7


@pytest.mark.long
def test_the_service_is_measured_until_all_receipts_are_there() -> None:
    report = service.run(["demo"], requests=20, predictions=20)
    (row,) = report["rows"]
    assert row["submit"]["errors"] == row["predict_idle"]["errors"] == 0
    assert row["predict_busy"]["errors"] == 0
    assert row["requests"] == row["completed"] == row["receipts"] == 20
    assert row["versions"] >= 1
    assert row["until_completed"] <= row["until_receipts"]
    assert "demo" in service.markdown(report)
