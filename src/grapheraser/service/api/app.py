"""The application: all routes, what stands before them, and their schema."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi

from grapheraser.environment import VERSION
from grapheraser.service.api import inference, opendsr, v1
from grapheraser.service.api.access import Auditor, Gate
from grapheraser.service.api.limits import BodyLimit, Rate
from grapheraser.service.api.metrics import MEDIA_TYPE, Measured, Templates
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import ProblemDetails, answer_with_problems, responses
from grapheraser.service.api.sessions import COOKIE, Sessions
from grapheraser.service.dashboard import router as dashboard

_DESCRIPTION = """
Accepts requests to erase people from a graph model, carries them out exactly, proves it, and serves
predictions meanwhile. Errors are problem details (RFC 9457). All routes but those of health, the
schema, OpenDSR's discovery and signing in need an API key: `Authorization: Bearer KEY`. Pages of
the dashboard use the cookie of a session; whatever changes something then needs the header
`X-CSRF-Token` and comes from a page of the service itself.
"""
_service = APIRouter(tags=["service"])


def create_app(parts: Parts) -> FastAPI:
    """The application of a service.

    Args:
        parts: what its routes stand on.
    """
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
    sessions = Sessions(parts.keys, parts.settings.session)
    app.state.gate = Gate(parts.keys, sessions, _rate(parts.settings.rate))
    answer_with_problems(app)
    app.include_router(v1.router)
    app.include_router(inference.router, responses=responses(400))
    app.include_router(opendsr.router, prefix="/opendsr")
    app.include_router(opendsr.router, prefix="/opendsr/v2")
    app.include_router(_service)
    app.include_router(dashboard, responses=responses(400))
    app.add_middleware(BodyLimit, most=parts.settings.body_bytes)
    app.openapi = lambda: _schema(app)  # type: ignore[method-assign]
    app.add_middleware(Measured, metrics=parts.metrics, templates=Templates(app.openapi()["paths"]))
    return app


def _rate(per_second: float) -> Rate | None:
    """What is allowed of each key; twice as many may come at once."""
    return Rate(per_second, max(1, round(2 * per_second))) if per_second else None


@_service.get(
    "/openapi.json", summary="This schema", responses={200: {"description": "OpenAPI 3.1."}}
)
async def openapi(request: Request) -> dict[str, Any]:
    """The schema of all routes. Needs no key."""
    schema: dict[str, Any] = request.app.openapi()
    return schema


@_service.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **responses(401, 403, 429, 503)},
)
def metrics(key: Auditor, parts: Given) -> Response:
    """Counts, times and the state of the queue, in Prometheus' text format."""
    del key
    return Response(parts.metrics.page(), media_type=MEDIA_TYPE)


def _schema(app: FastAPI) -> dict[str, Any]:
    """The schema, with problems in the place of FastAPI's own errors; made once."""
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
        bodies = (ProblemDetails, inference.InferenceRequest, inference.InferenceResponse)
        for body in bodies:
            made = body.model_json_schema(ref_template="#/components/schemas/{model}")
            known.update(made.pop("$defs", {}))
            known[body.__name__] = made
        app.openapi_schema = schema
    return app.openapi_schema
