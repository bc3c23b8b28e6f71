"""Bodies of requests: JSON that means one thing to every reader."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grapheraser.service.api.problems import NOT_JSON
from grapheraser.untrusted import parse_json

INFERENCE = "/v2/"


class StrictJson:
    """Middleware that refuses a body of JSON that `parse_json` refuses, before a route reads it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and look at its body as it is read."""
        headers = scope["headers"] if scope["type"] == "http" else ()
        # One of several such headers decides, and not the same everywhere.
        is_json = any(name == b"content-type" and b"json" in of.lower() for name, of in headers)
        if not is_json or scope["path"].startswith(INFERENCE):  # read by `tensors.read_inference`
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
