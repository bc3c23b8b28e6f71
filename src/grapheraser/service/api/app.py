"""The application: all routes, what stands before them, and their schema."""

from __future__ import annotations

import logging
import traceback
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grapheraser.environment import VERSION
from grapheraser.service.api import inference, v1
from grapheraser.service.api.access import AUDITORS, Gate, Rate, route
from grapheraser.service.api.keys import COOKIE, Sessions
from grapheraser.service.api.metrics import MEDIA_TYPE, Measured, Templates
from grapheraser.service.api.opendsr import routes as opendsr
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import (
    NOT_JSON,
    Problem,
    ProblemDetails,
    answer_with_problems,
    responses,
)
from grapheraser.service.api.tensors import InferenceRequest, InferenceResponse
from grapheraser.service.dashboard import router as dashboard
from grapheraser.untrusted import parse_json

INFERENCE = "/v2/"
_LOG = logging.getLogger("grapheraser.service")


_DESCRIPTION = """
Accepts requests to erase people from a graph model, carries them out exactly, proves it, and serves
predictions meanwhile. Errors are problem details (RFC 9457). All routes but those of health, the
schema, OpenDSR's discovery and signing in need an API key: `Authorization: Bearer KEY`. Pages of
the dashboard use the cookie of a session; whatever changes something then needs the header
`X-CSRF-Token` and comes from a page of the service itself.
"""
_service = APIRouter(tags=["service"])


def create_app(parts: Parts) -> FastAPI:
    """Make the application of a service."""
    app = FastAPI(
        title="GraphEraser",
        version=VERSION,
        description=_DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        # FastAPI's own spans and logs would hold paths, and what errors say.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    app.state.parts = parts
    sessions = Sessions(parts.keys, timedelta(hours=parts.settings.session_hours))
    rate = parts.settings.rate
    limit = Rate(rate, max(1, round(2 * rate))) if rate else None  # twice as many at once
    app.state.gate = Gate(parts.keys, sessions, limit)
    answer_with_problems(app)
    app.include_router(v1.router)
    app.include_router(inference.router, responses=responses(400))
    app.include_router(opendsr.router, prefix="/opendsr")
    app.include_router(opendsr.router, prefix="/opendsr/v2")
    app.include_router(_service)
    app.include_router(dashboard, responses=responses(400))
    app.add_middleware(Guard, max_bytes=parts.settings.body_bytes, strict_json=True)
    app.openapi = lambda: _schema(app)  # type: ignore[method-assign]
    templates = Templates(app.openapi()["paths"])
    logged = parts.settings.access_log
    app.add_middleware(Measured, metrics=parts.metrics, templates=templates, logged=logged)
    return app


@_service.get(
    "/openapi.json", summary="This schema", responses={200: {"description": "OpenAPI 3.1."}}
)
async def openapi(request: Request) -> dict[str, Any]:
    """Return the schema of all routes. Needs no key."""
    schema: dict[str, Any] = request.app.openapi()
    return schema


@_service.get(
    "/metrics",
    response_class=Response,
    **route("Metrics for Prometheus", AUDITORS, ok={"content": {"text/plain": {}}}),
)
def metrics(parts: Given) -> Response:
    """Counts, times and the state of the queue, in Prometheus' text format."""
    return Response(parts.metrics.page(), media_type=MEDIA_TYPE)


def _schema(app: FastAPI) -> dict[str, Any]:
    """Make the schema once, with problems in the place of FastAPI's own errors."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description.strip(),
            routes=app.routes,
        )
        for operations in schema["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
                if "security" in operation:
                    operation["security"].append({"Session": []})
        schemes, known = (schema["components"][name] for name in ("securitySchemes", "schemas"))
        schemes["Session"] = {"type": "apiKey", "in": "cookie", "name": COOKIE}
        for name in ("HTTPValidationError", "ValidationError"):
            known.pop(name, None)
        bodies = (ProblemDetails, InferenceRequest, InferenceResponse)
        for body in bodies:
            made = body.model_json_schema(ref_template="#/components/schemas/{model}")
            known.update(made.pop("$defs", {}))
            known[body.__name__] = made
        app.openapi_schema = schema
    return app.openapi_schema


class Guard:
    """Middleware before all routes: looks at bodies, marks answers, catches unforeseen errors.

    A body that is too large is refused before all of it is read, and one with two lengths: a proxy
    before the service may have read the other one, and taken what follows for a request of its own.
    ``strict_json`` refuses JSON that `parse_json` refuses, before a route reads it. No browser
    guesses what an answer is. Of an unforeseen error the type and the lines that led to it are
    logged: its text may be personal.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, *, strict_json: bool = False) -> None:
        self.app, self.max_bytes, self.strict_json = app, max_bytes, strict_json

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def marked(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Content-Type-Options"] = "nosniff"
            await send(message)

        problem = self._wrong(dict(scope["headers"]))
        try:
            if problem is None:
                await self.app(scope, self._reading(scope, receive), marked)
        except Exception as error:
            lines = "".join(traceback.format_tb(error.__traceback__))
            _LOG.error("%s\n%s", type(error).__name__, lines)
            if not started:
                said = "the service failed; the operator finds more in its logs."
                problem = Problem(500, "internal-error", said)
        if problem is not None:
            await problem.response(scope["path"])(scope, receive, marked)

    def _wrong(self, headers: dict[bytes, bytes]) -> Problem | None:
        length, closing = headers.get(b"content-length", b"0"), {"Connection": "close"}
        if b"content-length" in headers and b"transfer-encoding" in headers:
            said = "a body has Content-Length or Transfer-Encoding, not both."
            return Problem(400, "two-lengths", said, headers=closing)
        if not length.isdigit() or int(length) > self.max_bytes:
            said = f"a body has at most {self.max_bytes} bytes."
            return Problem(413, "body-too-large", said, headers=closing)
        return None

    def _reading(self, scope: Scope, receive: Receive) -> Receive:
        """Look at a body as it is read."""
        # One of several such headers decides, and not the same everywhere.
        kinds = (of.lower() for name, of in scope["headers"] if name == b"content-type")
        is_json = self.strict_json and any(b"json" in kind for kind in kinds)
        is_json = is_json and not scope["path"].startswith(INFERENCE)  # `read_inference` reads it
        seen, parts = 0, list[bytes]()

        async def checked() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.max_bytes:
                raise HTTPException(413)
            if is_json and message["type"] == "http.request":
                parts.append(message.get("body", b""))
                if not message.get("more_body", False) and any(parts):
                    _check(b"".join(parts))
            return message

        return checked


def _check(body: bytes) -> None:
    try:
        parse_json(body, len(body))
    except ValueError as error:
        raise HTTPException(400, f"{NOT_JSON} ({error}).") from None
