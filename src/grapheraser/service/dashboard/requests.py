"""The pages of requests: all of them, one with its steps, and its receipt to print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Depends, Query
from fastapi.responses import HTMLResponse

from grapheraser.receipts import Part
from grapheraser.reports.pages.receipt import receipt_values
from grapheraser.service.api.keys import Role
from grapheraser.service.api.problems import responses
from grapheraser.service.api.v1.requests import Name, collect, owner_of
from grapheraser.service.dashboard.shell import HOME, PAGE, Visit, Visiting, page_router
from grapheraser.service.queue.lookup import STAGES, summarize
from grapheraser.service.queue.requests import OUT_OF_SCOPE, PENDING, Event, Request, State

router = page_router()
Visited = Annotated[Visit, Depends(Visiting("requests"))]
Collecting = Annotated[Visit, Depends(Visiting("requests", Role.OPERATOR, Role.REQUESTER))]
Stage = Literal["all", "waiting", "running", "failed", "completed", "cancelled"]
Kind = Literal["all", "erase", "update"]
_MAX_LISTED = 50
# The steps of a request, in order, and what has happened in each.
STEPS = {
    State.RECEIVED: "It is on the disk, and will be carried out.",
    State.PLANNED: "A batch has taken it.",
    State.RETRAINING: "It is known what of it is there. The shards are retrained without it.",
    State.PUBLISHED: "The new version is saved, and answers.",
    State.ERASED: "Old files are gone, and what the request named is destroyed.",
    State.COMPLETED: "Nothing is left in the files of the database either.",
}
_OF_A_VERSION = (State.RETRAINING, State.PUBLISHED)


@dataclass(frozen=True)
class Step:
    """One step of a request; ``at`` is None where it is yet to come, or to come again."""

    state: State
    about: str
    at: datetime | None
    seconds: float | None
    is_next: bool


@router.get(f"{HOME}/requests", summary="The requests", **PAGE)
def requests(
    visit: Visited,
    stage: Annotated[Stage, Query(description="How far they have come.")] = "all",
    kind: Annotated[Kind, Query(description="Erasures or updates.")] = "all",
    late: Annotated[bool, Query(description="Only open ones past their deadline.")] = False,
    cursor: Annotated[int | None, Query(ge=0, lt=2**63, description="Of the page before.")] = None,
) -> HTMLResponse:
    """Queue and history, newest first, with filters. A requester sees their own."""
    parts, owner = visit.parts, owner_of(visit.key)
    found = parts.queue.list(
        states=None if stage == "all" else STAGES[stage],
        kind=None if kind == "all" else kind,
        owner=owner,
        late=late,
        cursor=cursor,
        limit=_MAX_LISTED,
    )
    chosen = {"stage": stage, "kind": kind} | ({"late": "true"} if late else {})
    older = None if found.cursor is None else urlencode({**chosen, "cursor": found.cursor})
    return visit.page(
        "requests",
        found=found.requests,
        chosen=chosen,
        cursor=cursor,
        older=older,
        summary=summarize(parts.queue, owner),
        may_ask=visit.may(Role.OPERATOR, Role.REQUESTER),
        named=parts.served.now.model.graph_.named,
        several=not parts.served.now.model.graph_.label_kind.is_classes,
        kinds=parts.served.now.model.task.kinds,
        now=parts.queue.clock(),
    )


@router.get(f"{HOME}/requests/{{name}}", summary="One request", **PAGE)
def request(visit: Visited, name: Name) -> HTMLResponse:
    """One request: every step as it happens, errors and what to do, its receipt."""
    queue, owner = visit.parts.queue, owner_of(visit.key)
    found = queue.get(name, owner)
    history = queue.history(name)
    may_ask = visit.may(Role.OPERATOR, Role.REQUESTER)
    return visit.page(
        "request",
        found=found,
        steps=steps_of(found, history),
        history=history,
        may_cancel=may_ask and found.state in PENDING,
        may_retry=visit.may(Role.OPERATOR) and found.state is State.FAILED,
        may_collect=may_ask and found.receipts > 0,
        out_of_scope=OUT_OF_SCOPE,
        now=queue.clock(),
    )


@router.get(
    f"{HOME}/requests/{{name}}/receipt",
    summary="A receipt to print",
    **{**PAGE, "responses": {**PAGE["responses"], **responses(409)}},
)
def receipt(visit: Collecting, name: Name) -> HTMLResponse:
    """The receipt of a completed request, a sheet for each of its parts."""
    sheets = [Part.from_json(text) for text in collect(name, visit.key, visit.parts)]
    return visit.page("receipt_print", name=name, sheets=[receipt_values(part) for part in sheets])


def steps_of(request: Request, history: Sequence[Event]) -> list[Step]:
    """List the steps of a request since it was last begun, and those that are left."""
    reached = _reached(history)
    # Where nothing was there to forget, a request is erased without a new version.
    ended = request.state in (State.ERASED, State.COMPLETED)
    steps = [state for state in STEPS if state in reached or not (ended and state in _OF_A_VERSION)]
    left = [state for state in steps if state not in reached]
    waits = request.is_open and request.state is not State.FAILED
    found: list[Step] = []
    for state in steps:
        at, before = reached.get(state), found[-1].at if found else None
        seconds = (at - before).total_seconds() if at and before else None
        found.append(Step(state, STEPS[state], at, seconds, waits and left[:1] == [state]))
    return found


def _reached(history: Sequence[Event]) -> dict[State, datetime]:
    """Return when each step was reached; a step that is repeated undoes those that follow it."""
    reached: dict[State, datetime] = {}
    order = list(STEPS)
    for event in history:
        begun = State.RECEIVED if event.state not in STEPS else event.state
        past = order[: order.index(begun) + 1]
        reached = {state: at for state, at in reached.items() if state in past}
        if event.state in STEPS:
            reached[event.state] = event.at
    return reached
