"""The one shape of every error: problem details (RFC 9457).

A problem says what was wrong to whoever asked. It is never logged: it may name nodes and people.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from grapheraser import errors

MEDIA_TYPE = "application/problem+json"
_NAMESPACE = "urn:grapheraser:problem:"
# Routes of the Open Inference Protocol, whose clients read the reason from a member `error`.
_INFERENCE = "/v2"
NOT_JSON = "the body is not JSON"
_log = logging.getLogger("grapheraser.service")


class ProblemDetails(BaseModel):
    """A problem (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="What kind of problem it is, as a URN.")
    title: str = Field(description="The same in words.")
    status: int = Field(description="The HTTP status.")
    detail: str | None = Field(default=None, description="What was wrong with this request.")
    hint: str | None = Field(default=None, description="What to do about it.")
    code: str | None = Field(default=None, description="For `grapheraser explain`, e.g. GE-011.")
    errors: list[dict[str, Any]] | None = Field(
        default=None, description="Of a body that is not valid: what is wrong, and where."
    )
    error: str | None = Field(default=None, description="Under /v2: the detail once more.")


class Problem(Exception):  # noqa: N818 - the name that RFC 9457 gives it
    """An error to answer with; ``kind`` ends its type, e.g. ``unknown-request``."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(kind)
        self.status, self.kind, self.detail, self.hint = status, kind, detail, hint
        self.headers, self.members = dict(headers or {}), dict(members or {})

    def response(self, path: str) -> JSONResponse:
        """Make the answer to a request for this path."""
        body: dict[str, Any] = {
            "type": _NAMESPACE + self.kind,
            "title": self.kind.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": _printable(self.detail),
        }
        if self.hint is not None:
            body["hint"] = _printable(self.hint)
        body |= self.members
        if path == _INFERENCE or path.startswith(f"{_INFERENCE}/"):
            body["error"] = body["detail"]
        return JSONResponse(body, self.status, headers=self.headers, media_type=MEDIA_TYPE)


def unknown(what: str) -> Problem:
    """Make the problem of something that a path names and that is not there."""
    return Problem(404, f"unknown-{what.replace(' ', '-')}", f"there is no such {what}.")


def problem_of(error: errors.GraphEraserError) -> Problem:
    """Translate an error of the package into a problem."""
    kinds: Sequence[tuple[type[errors.GraphEraserError], int, str]] = (
        (errors.UnknownNodeError, 400, "unknown-node"),
        (errors.UnknownEdgeError, 400, "unknown-edge"),
        (errors.InputError, 400, "invalid-request"),
        (errors.EmptyEnsembleError, 409, "nothing-left"),
        (errors.NotFittedError, 503, "not-ready"),
        (errors.RunKindError, 409, "another-task"),
        (errors.StoreError, 503, "store-unavailable"),
        (errors.UnknownRequestError, 404, "unknown-request"),
        (errors.UnknownSubjectError, 404, "unknown-subject"),
        (errors.ConflictError, 409, "conflict"),
        (errors.DatabaseError, 503, "database-unavailable"),
    )
    for kind, status, name in kinds:
        if isinstance(error, kind):
            code = {"code": error.code}
            return Problem(status, name, error.message, hint=error.hint, members=code)
    return Problem(500, "internal-error", "the service could not carry this out.")


def answer_with_problems(app: FastAPI) -> None:
    """Answer every error of an application with a problem."""
    app.add_exception_handler(Problem, _of_problem)
    app.add_exception_handler(errors.GraphEraserError, _of_package)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the problems that a route may answer with, for the schema."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
        for status in statuses
    }


async def _of_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)
    return error.response(request.url.path)


async def _of_package(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, errors.GraphEraserError)
    problem = problem_of(error)
    if problem.status >= 500:
        _log.error("%s: %s", request.method, type(error).__name__)
    return problem.response(request.url.path)


async def _of_validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = []
    for wrong in error.errors()[:20]:
        where = "/".join(_printable(str(part))[:100] for part in wrong["loc"])
        found.append({"where": where, "what": _printable(wrong["msg"])})
    first = f"{found[0]['where']}: {found[0]['what']}" if found else "the request is not valid"
    problem = Problem(400, "invalid-request", f"{first}.", members={"errors": found})
    return problem.response(request.url.path)


async def _of_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    kinds = {
        400: "invalid-request",
        404: "unknown-route",
        405: "method-not-allowed",
        413: "body-too-large",
    }
    kind = kinds.get(error.status_code, f"http-{error.status_code}")
    phrase = HTTPStatus(error.status_code).phrase
    details = {404: "there is no such route.", 400: "the body can't be read."}
    detail = details.get(error.status_code, phrase)
    if error.detail.startswith(NOT_JSON):
        detail = error.detail
    problem = Problem(error.status_code, kind, detail, headers=error.headers)
    return problem.response(request.url.path)


def _printable(text: str) -> str:
    """Make a text valid UTF-8."""
    return text.encode(errors="replace").decode()
