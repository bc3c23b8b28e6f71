"""OpenDSR 2.0: controllers submit erasure requests of people, and are told what becomes of them.

A person is named by an identity; the subject map knows it as ``TYPE:VALUE``, for instance
``email:ada@example.org``. The controller's `subject_request_id` is its idempotency key here.
"""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Body, Path, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError

from grapheraser.errors import ConflictError, UnknownRequestError
from grapheraser.kinds import named_by
from grapheraser.service.api.access import Requester
from grapheraser.service.api.forms import NamedForm, Text
from grapheraser.service.api.keys import Key
from grapheraser.service.api.opendsr.callbacks import COMPLETED, Processor, status_of
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import Problem, responses
from grapheraser.service.api.v1.requests import content_in
from grapheraser.service.queue.requests import Request as QueuedRequest
from grapheraser.service.queue.requests import RequestContent, utc_text

API_VERSION = "2.0"
IDENTITY_TYPES = (
    "controller_customer_id",
    "email",
    "android_advertising_id",
    "android_id",
    "fire_advertising_id",
    "ios_advertising_id",
    "ios_vendor_id",
    "microsoft_advertising_id",
    "microsoft_publisher_id",
    "roku_publisher_id",
    "roku_advertising_id",
)
_UUID4 = "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
_Called = Annotated[str, Field(pattern=_UUID4)]
_Name = Annotated[str, Path(pattern=_UUID4, description="The controller's subject_request_id.")]
_SIGNED = {
    "X-OpenDSR-Processor-Domain": {"schema": {"type": "string"}},
    "X-OpenDSR-Signature": {"schema": {"type": "string"}},
}


class Identity(BaseModel):
    """The person that a request is about."""

    identity_type: Literal[IDENTITY_TYPES]  # type: ignore[valid-type]
    identity_value: Text
    identity_format: Literal["raw"] = Field(description="Hashed identities are not looked up.")

    @property
    def subject(self) -> str:
        """The identity as the subject map knows it."""
        return f"{self.identity_type}:{self.identity_value}"


class SubjectRequest(BaseModel):
    """A request of a data subject, as a controller passes it on."""

    regulation: Literal["gdpr", "ccpa"]
    subject_request_id: _Called
    subject_request_type: Literal["erasure"] = Field(description="Others are not supported.")
    submitted_time: datetime
    subject_identities: Annotated[list[Identity], Field(max_length=100)] = []
    api_version: Text | None = None
    status_callback_urls: Annotated[list[Text], Field(max_length=10)] = []
    extensions: dict[Text, dict[str, Any]] = Field(
        default={}, description="By the domain of a processor; others than ours are left alone."
    )


class Discovery(BaseModel):
    """The abilities of this processor."""

    api_version: str
    supported_identities: list[dict[str, str]]
    supported_subject_request_types: list[str]
    processor_certificate: str


class Received(BaseModel):
    """A request that was accepted."""

    controller_id: str
    expected_completion_time: datetime
    received_time: datetime
    encoded_request: str = Field(description="Base64 of the request. Not to be kept.")
    subject_request_id: str


class Status(BaseModel):
    """The status of a request."""

    controller_id: str
    expected_completion_time: datetime
    subject_request_id: str
    request_status: Literal["pending", "in_progress", "completed", "cancelled"]
    api_version: str
    results_url: str | None = Field(description="Of the receipt, with the same key.")
    results_count: int | None = None
    extensions: dict[str, dict[str, Any]]


class Cancelled(BaseModel):
    """A cancellation that was accepted."""

    controller_id: str
    subject_request_id: str
    received_time: datetime
    api_version: str


_KEYED = (401, 403, 429)


def _signed(model: type[BaseModel], status: int = 200, *others: int) -> dict[str, Any]:
    """Describe a signed answer, and problems, for the schema."""
    answer: dict[str, Any] = {"model": model, "headers": _SIGNED}
    known = {status: answer, **responses(*others)}
    return {"status_code": status, "response_class": Response, "responses": known}


router = APIRouter(tags=["opendsr"], responses=responses(400, 404, 503))


@router.get("/discovery", summary="What is supported", **_signed(Discovery))
async def discovery(parts: Given) -> Response:
    """Identities, request types and the certificate that answers are signed under. Needs no key."""
    processor = _processor(parts)
    found = {
        "api_version": API_VERSION,
        "supported_identities": [
            {"identity_type": kind, "identity_format": "raw"} for kind in IDENTITY_TYPES
        ],
        "supported_subject_request_types": ["erasure"],
        "processor_certificate": f"https://{processor.domain}/opendsr/certificate.pem",
    }
    return _answer(processor, found)


@router.get(
    "/certificate.pem",
    summary="The certificate",
    response_class=Response,
    responses={200: {"content": {"application/x-pem-file": {}}}},
)
async def certificate(parts: Given) -> Response:
    """The certificate that answers and callbacks are signed under. Needs no key."""
    return Response(_processor(parts).certificate, media_type="application/x-pem-file")


@router.post(
    "/requests",
    summary="Submit a request of a data subject",
    **_signed(Received, 201, 401, 403, 413, 429),
)
async def submit(
    request: Request, form: Annotated[SubjectRequest, Body()], key: Requester, parts: Given
) -> Response:
    """Accept a request to erase a person; it is carried out like any other."""
    body = await request.body()
    return await run_in_threadpool(_submitted, body, form, key, parts)


@router.get("/requests/{name}", summary="The status of a request", **_signed(Status, 200, *_KEYED))
def status(name: _Name, key: Requester, parts: Given) -> Response:
    """Return the status of a request, by the controller's own id."""
    processor, found = _processor(parts), _found(name, key, parts)
    is_done, said = status_of(found.state) == COMPLETED, {"state": found.state.value}
    where = f"https://{processor.domain}/api/v1/requests/{found.id}/receipt"
    shown = {
        "controller_id": found.owner,
        "expected_completion_time": utc_text(found.deadline),
        "subject_request_id": name,
        "request_status": status_of(found.state),
        "api_version": API_VERSION,
        "results_url": where if is_done and found.receipts else None,
        "results_count": found.receipts if is_done else None,
        "extensions": {processor.domain: said | ({"reason": found.reason} if found.reason else {})},
    }
    return _answer(processor, shown)


@router.delete("/requests/{name}", summary="Cancel a request", **_signed(Cancelled, 202, *_KEYED))
def cancel(name: _Name, key: Requester, parts: Given) -> Response:
    """Cancel a request that is pending."""
    processor, found = _processor(parts), _found(name, key, parts)
    try:
        parts.queue.cancel(found.id, found.owner)
    except ConflictError as error:
        raise Problem(400, "not-pending", error.message) from None
    shown = {
        "controller_id": found.owner,
        "subject_request_id": name,
        "received_time": utc_text(parts.queue.clock()),
        "api_version": API_VERSION,
    }
    return _answer(processor, shown, 202)


def _submitted(body: bytes, form: SubjectRequest, key: Key, parts: Parts) -> Response:
    processor = _processor(parts)
    if UUID(form.subject_request_id).version != 4:
        raise Problem(400, "invalid-request", "subject_request_id must be a UUID of version 4.")
    for url in form.status_callback_urls:
        parts.callback_rules.check(url)
    try:
        found = parts.queue.submit(
            _content(form, processor, parts),
            key=_key(form.subject_request_id),
            owner=key.id,
            known=False,
        ).request
    except ConflictError:
        raise Problem(
            400, "repeated-request", "this subject_request_id was used for another request."
        ) from None
    if parts.callbacks is not None:
        parts.callbacks.add(found.id, form.status_callback_urls, form.subject_request_id)
    shown = {
        "controller_id": key.id,
        "expected_completion_time": utc_text(found.deadline),
        "received_time": utc_text(found.received),
        "encoded_request": base64.b64encode(body).decode(),
        "subject_request_id": form.subject_request_id,
    }
    return _answer(processor, shown, 201)


def _content(form: SubjectRequest, processor: Processor, parts: Parts) -> RequestContent:
    """Read what a request names: a subject of the map, or all that belongs to several identities.

    Our own extension, under our domain, lists what belongs to a person that the map doesn't know.
    """
    try:
        named = NamedForm.model_validate(form.extensions.get(processor.domain, {})).named
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
    subjects = [identity.subject for identity in form.subject_identities]
    if not subjects and not named:
        raise Problem(
            400,
            "invalid-request",
            "subject_identities are required, unless our extension names what to forget.",
        )
    if named:
        found = content_in(parts, RequestContent(**named)).named
        named = {name: list(ids) for name, ids in found.items()}
    if len(subjects) <= 1:
        return RequestContent(*subjects, **named)
    with parts.queue.database.reading() as connection:
        items = [item for one in subjects for item in parts.subjects.found(connection, one)]
    if not items:
        return RequestContent(subjects[0], **named)
    for name, ids in named_by(items).items():
        named.setdefault(name, []).extend(ids)
    return RequestContent(**named)


def _key(called: str) -> str:
    return f"opendsr:{called}"


def _found(name: str, key: Key, parts: Parts) -> QueuedRequest:
    found = parts.queue.find(_key(name), owner=key.id)
    if found is None:
        raise UnknownRequestError("there is no such request.")
    return found


def _processor(parts: Parts) -> Processor:
    if parts.processor is None:
        raise Problem(
            503,
            "opendsr-off",
            "OpenDSR is off: the service has no certificate to sign its answers with.",
            hint="start it with --opendsr-domain, --opendsr-certificate and --opendsr-key.",
        )
    return parts.processor


def _answer(processor: Processor, found: dict[str, Any], status: int = 200) -> Response:
    body = json.dumps(found).encode()
    return Response(body, status, processor.headers(body), "application/json")
