"""Bodies of requests: JSON that means one thing to every reader."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grapheraser.service.api.problems import NOT_JSON
from grapheraser.service.api.tensors import LENGTH_HEADER
from grapheraser.untrusted import parse_json


class StrictJson:
    """Middleware that refuses a body of JSON that `parse_json` refuses, before a route reads it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and look at its body as it is read."""
        headers = dict(scope["headers"]) if scope["type"] == "http" else {}
        mixed = LENGTH_HEADER.lower().encode() in headers  # read by `tensors.read_inference`
        if mixed or b"json" not in headers.get(b"content-type", b"").lower():
            await self.app(scope, receive, send)
            return
        parts: list[bytes] = []

        async def checked() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                parts.append(message.get("body", b""))
                if not message.get("more_body", False) and any(parts):
                    _check(b"".join(parts))
            return message

        await self.app(scope, checked, send)


def _check(body: bytes) -> None:
    try:
        parse_json(body, len(body))
    except ValueError as error:
        raise HTTPException(400, f"{NOT_JSON} ({error}).") from None
