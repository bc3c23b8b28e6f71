"""Posts to URLs that a stranger or a setting has named: only to addresses that were checked.

The host is looked up once. All of its addresses are checked, and the connection goes to one of
those: a name that leads elsewhere a moment later (DNS rebinding) gains nothing. No redirect is
followed, and no proxy is used.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import SplitResult, urlsplit

from grapheraser.errors import ParameterError

_TIMEOUT_SECONDS = 10.0
# The prefix under which a gateway offers IPv4 addresses to IPv6 (RFC 6052).
_IPV4_GATEWAY = ipaddress.ip_network("64:ff9b::/96")

# The addresses of a host, for a port.
Resolve = Callable[[str, int], Sequence[str]]


@dataclass(frozen=True)
class Rules:
    """Rules of callbacks: the hosts they may go to, and how often they are tried."""

    # Trusted ones, which may be in the own network and need no TLS. Any other must have public
    # addresses alone, and TLS.
    hosts: tuple[str, ...] = ()
    attempts: int = 20  # failures after which a callback is given up
    # Seconds until the second attempt; every further one waits twice as long.
    first_delay: float = 10.0

    def check(self, url: str) -> None:
        """Refuse a URL that must not be called."""
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            host, parts = None, urlsplit("")
        if not host or parts.username or parts.scheme not in ("http", "https"):
            raise ParameterError("a callback URL must be https://HOST/PATH.")
        if host in self.hosts:
            return
        if parts.scheme != "https":
            raise ParameterError("a callback URL must begin with https://.")
        try:
            is_allowed = is_public(host)
        except ValueError:
            is_allowed = "." in host  # a name, to be looked up when it is called
        if not is_allowed:
            raise ParameterError("a callback URL must lead to a public address.")

    def addresses(self, host: str, port: int, resolve: Resolve) -> Sequence[str]:
        """Return the addresses of a host; raise OSError where one of them is not public."""
        found = resolve(host, port)
        if host not in self.hosts and not all(map(is_public, found)):
            raise OSError("the host has an address that is not public")
        return found


def is_public(text: str) -> bool:
    """Tell whether an address is public; raise ValueError for a text that is no address.

    An IPv6 address that stands for an IPv4 address has to be public as both.
    """
    address = ipaddress.ip_address(text)
    stands_for: list[ipaddress.IPv4Address | None] = []
    if isinstance(address, ipaddress.IPv6Address):
        stands_for = [address.ipv4_mapped, address.sixtofour]
        if address in _IPV4_GATEWAY:
            stands_for.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    known = [address, *(one for one in stands_for if one is not None)]
    return all(one.is_global and not one.is_multicast for one in known)


def looked_up(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, by the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def post(
    url: str,
    body: bytes,
    headers: dict[str, str],
    rules: Rules,
    *,
    resolve: Resolve = looked_up,
    tls: ssl.SSLContext | None = None,
    seconds: float = _TIMEOUT_SECONDS,
) -> None:
    """Send a body; raise OSError unless it was taken (2xx); see `exchange`."""
    status, _ = exchange(url, body, headers, rules, resolve=resolve, tls=tls, seconds=seconds)
    if not 200 <= status < 300:
        raise OSError(f"the callback was not taken ({status})")


def exchange(
    url: str,
    body: bytes | None,
    headers: dict[str, str],
    rules: Rules,
    *,
    most: int = 0,
    resolve: Resolve = looked_up,
    tls: ssl.SSLContext | None = None,
    seconds: float = _TIMEOUT_SECONDS,
) -> tuple[int, bytes]:
    """Post a body, or get where it is None; return the status and ``most`` bytes of the answer.

    ``tls`` None stands for the authorities of the system. ``seconds`` are allowed to connect, and
    once more for all the rest.
    """
    try:
        rules.check(url)  # they may have changed since it was accepted
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        plain = _connected(rules.addresses(host, port, resolve), port, seconds)
        ended = threading.Timer(seconds, _shut, [plain])  # one byte at a time is no way out
        ended.daemon = True
        ended.start()
        try:
            with plain:
                return _send(plain, parts, (host, port), body, headers, tls, most)
        finally:
            ended.cancel()
    except OSError:
        raise
    except (HTTPException, ParameterError, ValueError) as error:
        raise OSError(f"the request can't be sent ({type(error).__name__})") from error


def _send(
    plain: socket.socket,
    parts: SplitResult,
    address: tuple[str, int],
    body: bytes | None,
    headers: dict[str, str],
    tls: ssl.SSLContext | None,
    most: int,
) -> tuple[int, bytes]:
    """Send a request over an open connection, with TLS where the URL says so."""
    connection, used = HTTPConnection(*address), plain
    if parts.scheme == "https":
        context = tls or ssl.create_default_context()
        connection = HTTPSConnection(*address, context=context)
        used = context.wrap_socket(plain.dup(), server_hostname=address[0])
    with used:
        connection.sock = used
        path = parts._replace(scheme="", netloc="", fragment="", path=parts.path or "/").geturl()
        method = "GET" if body is None else "POST"
        connection.request(method, path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read(most) if most else b""


def _connected(addresses: Sequence[str], port: int, seconds: float) -> socket.socket:
    """Connect to the first of these addresses that can be reached within so many seconds."""
    failed, until = OSError("the host has no address"), time.monotonic() + seconds
    for address in addresses:
        if (left := until - time.monotonic()) <= 0:
            break
        try:
            return socket.create_connection((address, port), left)
        except OSError as error:
            failed = error
    raise failed


def _shut(used: socket.socket) -> None:
    with suppress(OSError):
        used.shutdown(socket.SHUT_RDWR)
