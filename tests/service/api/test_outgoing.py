"""Callbacks reach the addresses that were checked, and no others."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from grapheraser.service.api.opendsr.outgoing import Rules, is_public, looked_up, post
from tests.service.api.test_opendsr import certified

HOST = "controller.example.org"
PUBLIC = "93.184.216.34"


class Taking(http.server.BaseHTTPRequestHandler):
    """Answers with a status of choice, and keeps what it was sent."""

    status = 202
    target = ""
    taken: list[tuple[str, str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).taken.append((self.path, self.headers["Host"], body))
        self.send_response(type(self).status)
        if type(self).target:
            self.send_header("Location", type(self).target)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Listening:
    """A server on this machine, with TLS or without."""

    def __init__(self, server: http.server.HTTPServer, taking: type[Taking]) -> None:
        self.port, self.taking = server.server_port, taking


def _listening(context: ssl.SSLContext | None) -> Iterator[Listening]:
    taking = type("Fresh", (Taking,), {"taken": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), taking) as server:
        server.daemon_threads = True
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Listening(server, taking)
        server.shutdown()
        thread.join()


@pytest.fixture
def plain() -> Iterator[Listening]:
    yield from _listening(None)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    return certified(tmp_path / "tls", domain=HOST)


@pytest.fixture
def secure(files: dict[str, str]) -> Iterator[Listening]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["opendsr_certificate"], files["opendsr_key"])
    yield from _listening(context)


@pytest.fixture
def trusted(files: dict[str, str]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=files["opendsr_certificate"])


class Names:
    """A resolver whose answers change from one question to the next."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers, self.asked = list(answers), 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self.answers.pop(0)


def test_a_host_is_looked_up_once_and_what_was_checked_is_called(
    secure: Listening, trusted: ssl.SSLContext
) -> None:
    names = Names(["127.0.0.1"])
    url = f"https://{HOST}:{secure.port}/callbacks?to=me#part"
    post(url, b"{}", {}, Rules((HOST,)), resolve=names, tls=trusted)
    assert secure.taking.taken == [("/callbacks?to=me", f"{HOST}:{secure.port}", b"{}")]
    assert names.asked == 1


def test_a_name_that_leads_elsewhere_a_moment_later_gains_nothing(
    secure: Listening, trusted: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected = []

    def connect(address: tuple[str, int], seconds: float) -> socket.socket:
        connected.append(address)
        raise OSError("unreachable")

    monkeypatch.setattr(socket, "create_connection", connect)
    names = Names([PUBLIC], ["127.0.0.1"])
    url = f"https://{HOST}:{secure.port}/"
    with pytest.raises(OSError, match="unreachable"):
        post(url, b"{}", {}, Rules(), resolve=names, tls=trusted)
    assert connected == [(PUBLIC, secure.port)]
    assert names.asked == 1


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.1.2.3"], ["169.254.169.254"], ["fe80::1"], ["::1"], [PUBLIC, "::1"]],
    ids=str,
)
def test_a_name_that_leads_into_the_own_network_is_not_called(
    secure: Listening, trusted: ssl.SSLContext, addresses: list[str]
) -> None:
    url = f"https://{HOST}:{secure.port}/"
    with pytest.raises(OSError, match="not public"):
        post(url, b"{}", {}, Rules(), resolve=Names(addresses), tls=trusted)
    assert secure.taking.taken == []


def test_the_name_of_this_machine_is_not_public() -> None:
    with pytest.raises(OSError, match="not public"):
        Rules().addresses("localhost", 443, looked_up)


@pytest.mark.parametrize("status", [301, 307, 308])
def test_no_redirect_is_followed(plain: Listening, status: int) -> None:
    plain.taking.status = status
    plain.taking.target = f"http://127.0.0.1:{plain.port}/secret"
    url = f"http://127.0.0.1:{plain.port}/callbacks"
    with pytest.raises(OSError, match=str(status)):
        post(url, b"{}", {}, Rules(("127.0.0.1",)))
    assert [path for path, *_ in plain.taking.taken] == ["/callbacks"]


def test_the_certificate_has_to_be_of_the_host(secure: Listening, trusted: ssl.SSLContext) -> None:
    other = Rules(("other.example.org", HOST))
    url = f"https://other.example.org:{secure.port}/"
    with pytest.raises(OSError, match=r"(?i)hostname mismatch"):
        post(url, b"{}", {}, other, resolve=Names(["127.0.0.1"]), tls=trusted)
    with pytest.raises(OSError, match=r"(?i)certificate verify failed"):  # of no known authority
        post(f"https://{HOST}:{secure.port}/", b"{}", {}, other, resolve=Names(["127.0.0.1"]))
    assert secure.taking.taken == []


def test_a_host_that_is_trusted_no_more_is_not_called_without_tls(plain: Listening) -> None:
    with pytest.raises(OSError, match="can't be sent"):
        post(f"http://127.0.0.1:{plain.port}/", b"{}", {}, Rules())
    assert plain.taking.taken == []


def test_a_proxy_of_the_environment_is_left_alone(
    plain: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9/")
    post(f"http://127.0.0.1:{plain.port}/", b"{}", {}, Rules(("127.0.0.1",)))
    assert len(plain.taking.taken) == 1


def test_whoever_answers_byte_by_byte_does_not_hold_up_the_others() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                while not ended.wait(0.02):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        started = time.monotonic()
        # What it looks like depends on what the other side is doing when the connection is shut.
        with pytest.raises(OSError, match=r"can't be sent|reset by peer|Broken pipe"):
            post(url, b"{}", {}, Rules(("127.0.0.1",)), seconds=0.3)
        assert time.monotonic() - started < 30
        ended.set()
        thread.join()


def test_of_several_addresses_the_first_that_can_be_reached_is_used(plain: Listening) -> None:
    url = f"http://{HOST}:{plain.port}/"
    addresses = Names(["127.0.0.2", "127.0.0.1"])  # nobody listens on the first
    post(url, b"{}", {}, Rules((HOST,)), resolve=addresses)
    assert len(plain.taking.taken) == 1
    with pytest.raises(OSError, match="no address"):
        post(url, b"{}", {}, Rules((HOST,)), resolve=Names([]))


@pytest.mark.parametrize(
    ("address", "public"),
    [
        (PUBLIC, True),
        ("2606:2800:220:1::1", True),
        ("0.0.0.0", False),
        ("100.64.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("fc00::1", False),
        ("fe80::1%1", False),
        ("ff02::1", False),
        ("::ffff:10.0.0.1", False),
        ("2002:7f00:1::", False),  # stands for 127.0.0.1
        ("64:ff9b::a00:1", False),  # for 10.0.0.1
        ("64:ff9b::5db8:d822", True),
    ],
)
def test_what_is_public(address: str, public: bool) -> None:
    assert is_public(address) is public


def _hostile(answer: bytes, again: bytes = b"") -> Iterator[int]:
    """Answer every connection so, and then with more of the same for as long as it is read."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        stopped = threading.Event()

        def serve() -> None:
            while not stopped.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection, suppress(OSError):
                    connection.settimeout(5)
                    connection.recv(65_536)
                    connection.sendall(answer)
                    while again and not stopped.is_set():
                        connection.sendall(again)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        stopped.set()
        thread.join()


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (b"", b""),
        (b"\x00\xff\xfe garbage", b""),
        (b"HTTP/1.1 200", b"0"),
        (b"HTTP/1.1 999999999999 OK\r\n\r\n", b""),
        (b"HTTP/1.1 -1 OK\r\n\r\n", b""),
        (b"HTTP/9.9 200 OK\r\n\r\n", b""),
        (b"HTTP/1.1 204\r\n", b"X: y\r\n"),
        (b"HTTP/1.1 204 OK\r\nX: ", b"y" * 60_000),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", b""),
        (b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n", b""),
        (b"HTTP/1.1 \xd9\xa2\xd9\xa0\xd9\xa0 OK\r\n\r\n", b""),
    ],
)
def test_no_receiver_makes_a_callback_end_otherwise_than_failed(
    answer: bytes, again: bytes
) -> None:
    for port in _hostile(answer, again):
        begun = time.monotonic()
        with pytest.raises(OSError):  # noqa: PT011 - of any kind
            post(
                f"http://{HOST}:{port}/",
                b"{}",
                {},
                Rules((HOST,)),
                resolve=lambda host, port: ["127.0.0.1"],
                seconds=1.0,
            )
        assert time.monotonic() - begun < 60


@pytest.mark.long
def test_an_endless_body_after_a_good_status_is_not_read() -> None:
    for port in _hostile(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"9\r\n"):
        resolve = lambda host, port: ["127.0.0.1"]  # noqa: E731
        post(f"http://{HOST}:{port}/", b"{}", {}, Rules((HOST,)), resolve=resolve, seconds=5.0)
