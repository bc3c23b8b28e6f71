"""A load generator: HTTP over connections that stay open, with as little work as can be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Load:
    """The outcome of a stream of requests.

    Attributes:
        seconds: from the first request to the last answer.
        latencies: seconds of each answer.
        statuses: of HTTP, of each answer.
    """

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.latencies) / self.seconds if self.seconds else 0.0

    def quantile(self, share: float) -> float:
        """The latency that this share of the answers did not exceed."""
        return float(np.quantile(self.latencies, share)) if self.latencies else float("nan")

    def summary(self) -> dict[str, float]:
        """Count, rate, median and 99th percentile."""
        return {
            "count": len(self.latencies),
            "errors": sum(status >= 400 for status in self.statuses),
            "rate": self.rate,
            "p50": self.quantile(0.5),
            "p99": self.quantile(0.99),
        }


def message(method: str, path: str, host: str, headers: dict[str, str], body: bytes) -> bytes:
    """A request of HTTP/1.1 as bytes."""
    head = {"Host": host, **headers, "Content-Length": str(len(body))}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def drive(
    address: tuple[str, int],
    messages: Sequence[bytes],
    *,
    connections: int,
    seconds: float,
    until: Callable[[], bool] | None = None,
) -> Load:
    """Send requests one after the other over each of some connections.

    Args:
        address: host and port.
        messages: the requests. With ``until`` they are sent over and over.
        connections: how many at once.
        seconds: stop after so long.
        until: says whether it is enough.
    """
    return asyncio.run(_drive(address, messages, connections, seconds, until))


async def _drive(
    address: tuple[str, int],
    messages: Sequence[bytes],
    connections: int,
    seconds: float,
    until: Callable[[], bool] | None,
) -> Load:
    load, began, sent = Load(), time.perf_counter(), 0

    async def one_connection() -> None:
        nonlocal sent
        reader, writer = await asyncio.open_connection(*address)
        try:
            while time.perf_counter() - began < seconds:
                if sent >= len(messages) and (until is None or until()):
                    return
                content, sent = messages[sent % len(messages)], sent + 1
                start = time.perf_counter()
                writer.write(content)
                load.statuses.append(await _answer(reader))
                load.latencies.append(time.perf_counter() - start)
        finally:
            writer.close()

    await asyncio.gather(*(one_connection() for _ in range(connections)))
    load.seconds = time.perf_counter() - began
    return load


async def _answer(reader: asyncio.StreamReader) -> int:
    """Read one answer; returns its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    lengths = [line[15:] for line in head if line.lower().startswith("content-length:")]
    await reader.readexactly(int(lengths[0]) if lengths else 0)
    return int(head[0].split(" ", 2)[1])
