"""Requests to forget: submit, look at, cancel and try again, and their receipts."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response

from grapheraser.service.api.access import Key, Operator, Requester, Role, Watcher
from grapheraser.service.api.forms import (
    ErasureForm,
    EventView,
    ReceiptView,
    RequestList,
    RequestView,
    Text,
)
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import Problem, responses, unknown
from grapheraser.service.intake import Submission, Submitted
from grapheraser.service.requests import Asked, State

router = APIRouter(tags=["requests"])
Name = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="Id of a request.")]
IdempotencyKey = Annotated[
    Text | None,
    Header(
        description="Your own name for this request: sent again with the same body, it gives the "
        "request that is there."
    ),
]
REPLAYED = "Idempotency-Replayed"


@router.post(
    "/requests",
    status_code=202,
    summary="Submit a request to forget",
    responses=responses(401, 403, 404, 409, 413, 429, 503),
)
async def submit(
    form: ErasureForm,
    response: Response,
    key: Requester,
    parts: Given,
    idempotency_key: IdempotencyKey = None,
) -> RequestView:
    """Accept a request. Once this is answered it is on the disk and will be carried out."""
    named = form.model_dump(exclude={"deadline"}, exclude_defaults=True)
    asked = Asked.from_dict(named)
    check_ids(asked, parts)
    submission = Submission(asked, idempotency_key, form.deadline, key.id)
    return accepted(await parts.gathering.submit(submission), response, parts)


@router.get("/requests", summary="List requests", responses=responses(401, 403, 429, 503))
def list_requests(
    key: Watcher,
    parts: Given,
    state: Annotated[list[State] | None, Query(description="Only those in these states.")] = None,
    late: Annotated[bool, Query(description="Only open ones whose deadline has passed.")] = False,
    cursor: Annotated[int | None, Query(ge=0, lt=2**63, description="Of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 100,
) -> RequestList:
    """Requests, newest first. A requester sees their own."""
    page = parts.queue.list(
        states=state, owner=owner_of(key), late=late, cursor=cursor, limit=limit
    )
    now = parts.queue.clock()
    shown = [RequestView.of(request, now) for request in page.requests]
    return RequestList(requests=shown, cursor=page.cursor)


@router.get(
    "/requests/{name}", summary="Look at a request", responses=responses(401, 403, 404, 429, 503)
)
def show(name: Name, key: Watcher, parts: Given) -> RequestView:
    """How far a request has come."""
    request = parts.queue.get(name, owner_of(key))
    return RequestView.of(request, parts.queue.clock())


@router.get(
    "/requests/{name}/events",
    summary="The steps of a request",
    responses=responses(401, 403, 404, 429, 503),
)
def history(name: Name, key: Watcher, parts: Given) -> list[EventView]:
    """Every step that a request has taken, in order."""
    parts.queue.get(name, owner_of(key))
    return [EventView.model_validate(event.to_dict()) for event in parts.queue.history(name)]


@router.delete(
    "/requests/{name}",
    summary="Cancel a request",
    responses=responses(401, 403, 404, 409, 429, 503),
)
def cancel(name: Name, key: Requester, parts: Given) -> RequestView:
    """Cancel a request that waits; what it named is destroyed."""
    request = parts.queue.cancel(name, owner_of(key))
    return RequestView.of(request, parts.queue.clock())


@router.post(
    "/requests/{name}/retry",
    summary="Try a failed request again",
    responses=responses(401, 403, 404, 409, 429, 503),
)
def retry(name: Name, key: Operator, parts: Given) -> RequestView:
    """Let a failed request be tried again at once."""
    del key
    return RequestView.of(parts.queue.retry(name), parts.queue.clock())


@router.get(
    "/requests/{name}/receipt",
    summary="Collect a receipt",
    responses=responses(401, 403, 404, 409, 429, 503),
)
def receipt(name: Name, key: Requester, parts: Given) -> ReceiptView:
    """The receipt of a completed request.

    It can be collected again for a day; then, or when its time is over, it is destroyed.
    """
    found = collected(name, key, parts)
    return ReceiptView(request=name, parts=[json.loads(part) for part in found])


@router.get(
    "/requests/{name}/receipt/{place}",
    summary="Collect one part of a receipt",
    responses=responses(401, 403, 404, 409, 429, 503),
)
def receipt_part(
    name: Name,
    place: Annotated[int, Path(ge=1, lt=2**31, description="Which part, from 1.")],
    key: Requester,
    parts: Given,
) -> Response:
    """One part of a receipt: the file that `grapheraser receipt verify` takes."""
    found = collected(name, key, parts)
    if place > len(found):
        raise unknown("part of a receipt")
    return Response(found[place - 1] + "\n", media_type="application/json")


@router.delete(
    "/requests/{name}/receipt",
    status_code=204,
    summary="Destroy a receipt",
    responses=responses(401, 403, 404, 429, 503),
)
def destroy_receipt(name: Name, key: Requester, parts: Given) -> None:
    """Destroy what can be collected of a receipt, for instance after it was handed over."""
    parts.queue.destroy_receipt(name, owner_of(key))


def collected(name: str, key: Key, parts: Parts) -> list[str]:
    """The parts of a receipt, for whoever may have them; or a `Problem`."""
    request = parts.queue.get(name, owner_of(key))
    if request.state is not State.COMPLETED:
        raise Problem(409, "not-completed", f"the request is {request.state}.")
    found = list(parts.queue.collect(name, owner=owner_of(key)))
    if not found:
        raise Problem(
            404,
            "no-receipt",
            "there is nothing to collect: there was nothing to forget, or its time is over.",
        )
    return found


def accepted(found: Submitted, response: Response, parts: Parts) -> RequestView:
    """The answer to a request that is in the queue."""
    response.headers["Location"] = f"/api/v1/requests/{found.request.id}"
    if not found.is_new:
        response.headers[REPLAYED] = "true"
    return RequestView.of(found.request, parts.queue.clock())


def check_ids(asked: Asked, parts: Parts) -> None:
    """Refuse names where nodes have ids, and ids where they have names."""
    named = parts.served.now.model.graph_.named
    edges = [end for pair in asked.edges for end in pair]
    for node in (*asked.nodes, *asked.features, *asked.labels, *edges):
        if isinstance(node, str) is not named:
            wanted = "names, as texts" if named else "ids, as whole numbers"
            raise Problem(400, "invalid-request", f"the nodes of this run have {wanted}.")


def owner_of(key: Key) -> str | None:
    """Whose requests somebody may see: a requester their own, others everybody's."""
    return key.id if key.role is Role.REQUESTER else None
