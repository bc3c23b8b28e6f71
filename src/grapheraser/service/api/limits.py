"""How much anybody may ask: requests per second, and bytes of a body."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grapheraser.service.api.problems import Problem

# Callers that are remembered at once; the one that was quiet for longest is forgotten first.
_MOST_CALLERS = 10_000


@dataclass(frozen=True)
class Rate:
    """Requests per second, and how many may come at once."""

    per_second: float
    burst: int


class Buckets:
    """A token bucket for every caller.

    Args:
        rate: how fast buckets fill, and how much they hold.
        clock: seconds that never go back.
    """

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._lock = threading.Lock()
        self._filled: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """Take one token, or raise a `Problem` that says when there will be one."""
        with self._lock:
            now = self._clock()
            tokens, since = self._filled.pop(caller, (float(self._rate.burst), now))
            tokens = min(self._rate.burst, tokens + (now - since) * self._rate.per_second)
            enough = tokens >= 1
            self._filled[caller] = (tokens - 1 if enough else tokens, now)
            while len(self._filled) > _MOST_CALLERS:
                self._filled.popitem(last=False)
        if not enough:
            wait = math.ceil((1 - tokens) / self._rate.per_second)
            raise Problem(
                429,
                "too-many-requests",
                f"at most {self._rate.per_second:g} requests per second are answered.",
                headers={"Retry-After": str(wait)},
            )


class BodyLimit:
    """Middleware that refuses a body that is too large, before all of it is read."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app = app
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.most:
            await self._refuse(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.most:
                raise HTTPException(413)
            return message

        await self.app(scope, counted, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = Problem(
            413, "body-too-large", f"a body has at most {self.most} bytes.", headers=_CLOSE
        )
        await problem.response(scope["path"])(scope, receive, send)


_CLOSE = {"Connection": "close"}
