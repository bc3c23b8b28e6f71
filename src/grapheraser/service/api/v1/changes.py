"""Updates and insertions: changes that wait in the same queue."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.concurrency import run_in_threadpool

from grapheraser.graph.changes import with_classes
from grapheraser.graph.lines import changes_of
from grapheraser.service.api.access import Operator
from grapheraser.service.api.forms import InsertionForm, RequestView, UpdateForm
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import responses
from grapheraser.service.api.v1.requests import IdempotencyKey, accepted
from grapheraser.service.intake import Submission
from grapheraser.service.requests import Asked

router = APIRouter(tags=["changes"])


@router.post(
    "/updates",
    status_code=202,
    summary="Submit changes",
    responses=responses(401, 403, 409, 413, 429, 503),
)
async def update(
    form: UpdateForm,
    response: Response,
    key: Operator,
    parts: Given,
    idempotency_key: IdempotencyKey = None,
) -> RequestView:
    """Accept additions and corrections; they are carried out in one batch."""
    submission = Submission(
        Asked(changes=tuple(form.changes)), idempotency_key, form.deadline, key.id
    )
    return await _accepted(submission, response, parts)


@router.post(
    "/insertions",
    status_code=202,
    summary="Submit one new node",
    responses=responses(401, 403, 409, 413, 429, 503),
)
async def insert(
    form: InsertionForm,
    response: Response,
    key: Operator,
    parts: Given,
    idempotency_key: IdempotencyKey = None,
) -> RequestView:
    """Accept one node with its edges: the short form of an update."""
    new = {
        "ids": [form.id],
        "x": [form.features],
        "y": [form.label],
        "edges": [[form.id, other] for other in form.neighbours],
    }
    submission = Submission(
        Asked(changes=({"add_nodes": new},)), idempotency_key, form.deadline, key.id
    )
    return await _accepted(submission, response, parts)


async def _accepted(submission: Submission, response: Response, parts: Parts) -> RequestView:
    await run_in_threadpool(_check, submission.asked, parts)
    return accepted(await parts.gathering.submit(submission), response, parts)


def _check(asked: Asked, parts: Parts) -> None:
    """Refuse what is no change of such a graph; whether it fits is found when it is its turn."""
    graph = parts.served.now.model.graph_
    for line in asked.changes:
        for change in changes_of(line, graph.num_features):
            with_classes(change, graph.class_names)
