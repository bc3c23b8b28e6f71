"""Slow and many connections are in nobody's way."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from grapheraser.service.api.keys import Role
from tests.service.api.conftest import Api, opened
from tests.waiting import until

HALF = b"GET /api/v1/health HTTP/1.1\r\nHost: here\r\nX-Half: "


@contextmanager
def connected(api: Api, *sent: bytes) -> Iterator[socket.socket]:
    address = (api.client.base_url.host, api.client.base_url.port or 80)
    with socket.create_connection(address, timeout=30) as made:
        for part in sent:
            made.sendall(part)
        yield made


def answer(connection: socket.socket) -> bytes:
    """All that is answered until the connection is closed; nothing where it was cut."""
    found = b""
    try:
        while part := connection.recv(65_536):
            found += part
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize(
    "sent",
    [
        (b"",),
        (HALF,),
        (b"POST /api/v1/requests HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\n", b'{"nod'),
        (b"POST /opendsr/requests HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", b"9"),
        # Two at once, of which the second never ends.
        (b"GET /api/v1/health HTTP/1.1\r\nHost: h\r\n\r\n" + HALF,),
        (
            b"GET /api/v1/health HTTP/1.1\r\nHost: h\r\n\r\n"
            b"POST /api/v1/requests HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\n{",
        ),
    ],
    ids=["nothing", "headers", "body", "chunk", "second headers", "second body"],
)
def test_what_is_sent_too_slowly_is_cut_off(run: Path, sent: tuple[bytes, ...]) -> None:
    with opened(run, header_seconds=0.2, body_seconds=0.2) as api:
        with connected(api, *sent) as slow:
            assert answer(slow).count(b"HTTP/1.1 200") == (
                b"health HTTP/1.1\r\nHost: h\r\n" in sent[0]
            )
        assert api.call("GET", "/api/v1/model").is_success


def test_a_request_in_time_is_not_cut_off_however_many_pieces_it_comes_in(api: Api) -> None:
    whole = b"GET /api/v1/health HTTP/1.1\r\nHost: here\r\n\r\n"
    with connected(api) as slow:
        for _ in range(3):  # on one connection
            for at in range(0, len(whole), 7):
                slow.sendall(whole[at : at + 7])
            found = b""
            while b"alive" not in found:
                found += slow.recv(65_536)
            assert found.startswith(b"HTTP/1.1 200")


def test_half_sent_headers_keep_nobody_out(run: Path) -> None:
    """Many more than there may be, for longer than the test takes."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft > 600
    with opened(run, connections=50, header_seconds=600.0) as api, ExitStack() as held:
        for _ in range(200):
            held.enter_context(connected(api, HALF))
        key = api.keys[Role.READER]
        for path in ("/api/v1/health", "/api/v1/model"):
            asked = f"GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key}\r\n\r\n"
            with connected(api, asked.encode()) as new:
                assert new.recv(65_536).startswith(b"HTTP/1.1 200")


def test_where_all_connections_are_at_work_health_is_still_told(run: Path) -> None:
    with opened(run, connections=3) as api, ExitStack() as held:
        key = api.keys[Role.OPERATOR]
        follow = f"GET /api/v1/events HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key}\r\n\r\n"
        for _ in range(3):
            busy = held.enter_context(connected(api, follow.encode()))
            assert busy.recv(65_536).startswith(b"HTTP/1.1 200")

        def asked(path: str) -> bytes:
            text = f"GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key}\r\n\r\n"
            text = text.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
            with connected(api, text.encode()) as new:
                return answer(new)

        assert asked("/api/v1/health").startswith(b"HTTP/1.1 200")
        refused = asked("/api/v1/model")
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"too-many-connections" in refused
        held.close()
        until(lambda: asked("/api/v1/model").startswith(b"HTTP/1.1 200"))


@pytest.mark.parametrize("first", ["Content-Length: 4", "Transfer-Encoding: chunked"])
def test_a_body_with_two_lengths_is_refused(shared: Api, first: str) -> None:
    both = ["Content-Length: 4", "Transfer-Encoding: chunked"]
    both.sort(key=lambda line: line != first)
    head = "\r\n".join(["POST /api/v1/requests HTTP/1.1", "Host: h", *both, "", ""])
    smuggled = b"0\r\n\r\nGET /api/v1/health HTTP/1.1\r\nHost: h\r\n\r\n"
    with connected(shared, head.encode() + smuggled) as odd:
        found = answer(odd)
    assert found.startswith(b"HTTP/1.1 400")
    assert found.count(b"HTTP/1.1") == 1


def test_no_browser_guesses_what_an_answer_is(shared: Api) -> None:
    paths = ("/", "/api/v1/health", "/api/v1/none", "/dashboard/sign-in", "/metrics")
    files = ("/openapi.json", "/dashboard/static/dashboard.css")
    for path in (*paths, *files, "/v2/models/people", "/opendsr/discovery"):
        for role in (None, Role.OPERATOR):
            found = shared.call("GET", path, role)
            assert found.headers.get_list("x-content-type-options") == ["nosniff"], path
    with connected(shared, b"no http at all\r\n\r\n") as odd:
        found = answer(odd)
    assert found.startswith(b"HTTP/1.1 400")
    assert b"nosniff" in found
