"""Requests: submit erasures and changes, look at them, cancel, retry, collect; plan an erasure."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from grapheraser.eraser.change import ALL
from grapheraser.eraser.plan import Plan
from grapheraser.graph.changes.kinds import changes_of, items_along, requests_for
from grapheraser.graph.changes.requests import SKIP, Edges, in_graph
from grapheraser.graph.changes.updates import with_labels
from grapheraser.kinds import EDGES, KINDS, LABELS, Kind
from grapheraser.service.api.access import OPERATORS, Operator, Requester, Watcher, route
from grapheraser.service.api.forms import (
    ErasureForm,
    EventView,
    InsertionForm,
    ReceiptView,
    RequestList,
    RequestView,
    Text,
    UpdateForm,
)
from grapheraser.service.api.keys import Key, Role
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import Problem, unknown
from grapheraser.service.queue.intake import Submission
from grapheraser.service.queue.lookup import SummaryView, summarize
from grapheraser.service.queue.requests import OUT_OF_SCOPE, RequestContent, State
from grapheraser.untrusted import parse_json

if TYPE_CHECKING:
    from grapheraser.graph import Graph

router, changes_router = APIRouter(tags=["requests"]), APIRouter(tags=["changes"])
Name = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="Id of a request.")]
IdempotencyKey = Annotated[
    Text | None,
    Header(
        description="Your own name for this request: sent again with the same body, it gives the "
        "request that is there."
    ),
]
REPLAYED = "Idempotency-Replayed"


class _Accepting:
    """A dependency of routes that submit a request."""

    def __init__(
        self, response: Response, parts: Given, idempotency_key: IdempotencyKey = None
    ) -> None:
        self.parts, self._response, self._idempotency_key = parts, response, idempotency_key

    async def accept(
        self, content: RequestContent, deadline: datetime | None, key: Key
    ) -> RequestView:
        """Put a request into the queue; answer once it is on the disk."""
        queue, headers = self.parts.queue, self._response.headers
        # Whom the subject map knows is told to nobody who only asks.
        known = key.role is not Role.REQUESTER
        submission = Submission(content, self._idempotency_key, deadline, key.id, known)
        found = await asyncio.wrap_future(queue.intake.submit(submission))
        headers["Location"] = f"/api/v1/requests/{found.request.id}"
        if not found.is_new:
            headers[REPLAYED] = "true"
        return RequestView.of(found.request, queue.clock())


Accepting = Annotated[_Accepting, Depends()]


@router.post(
    "/requests", status_code=202, **route("Submit a request to forget", None, 404, 409, 413)
)
async def submit(form: ErasureForm, key: Requester, accepting: Accepting) -> RequestView:
    """Accept a request. Once this is answered it is on the disk and will be carried out.

    An operator is told at once that the subject map has nothing of a subject. A requester's request
    is accepted like any other, and completed with nothing to forget.
    """
    content = content_in(accepting.parts, form.content)
    return await accepting.accept(content, form.deadline, key)


@changes_router.post("/updates", status_code=202, **route("Submit changes", None, 409, 413))
async def update(form: UpdateForm, key: Operator, accepting: Accepting) -> RequestView:
    """Accept additions and corrections; they are carried out in one batch."""
    content = RequestContent(changes=form.changes)
    await run_in_threadpool(_check_changes, content, accepting.parts)
    return await accepting.accept(content, form.deadline, key)


@changes_router.post("/insertions", status_code=202, **route("Submit one new node", None, 409, 413))
async def insert(form: InsertionForm, key: Operator, accepting: Accepting) -> RequestView:
    """Accept one node with its edges: the short form of an update."""
    new = {
        "ids": [form.id],
        "x": [form.features],
        "y": [form.label],
        "edges": [[form.id, other] for other in form.neighbours],
    }
    written_out = UpdateForm(changes=[{"add_nodes": new}], deadline=form.deadline)
    return await update(written_out, key, accepting)


@router.get("/requests", **route("List requests"))
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


@router.get("/requests/{name}", **route("Look at a request", None, 404))
def show(name: Name, key: Watcher, parts: Given) -> RequestView:
    """Return a request with its state."""
    request = parts.queue.get(name, owner_of(key))
    return RequestView.of(request, parts.queue.clock())


@router.get("/requests/{name}/events", **route("The steps of a request", None, 404))
def history(name: Name, key: Watcher, parts: Given) -> list[EventView]:
    """Every step that a request has taken, in order."""
    parts.queue.get(name, owner_of(key))
    return [EventView.model_validate(event.to_dict()) for event in parts.queue.history(name)]


@router.delete("/requests/{name}", **route("Cancel a request", None, 404, 409))
def cancel(name: Name, key: Requester, parts: Given) -> RequestView:
    """Cancel a request that waits; what it named is destroyed."""
    request = parts.queue.cancel(name, owner_of(key))
    return RequestView.of(request, parts.queue.clock())


@router.post("/requests/{name}/retry", **route("Try a failed request again", OPERATORS, 404, 409))
def retry(name: Name, parts: Given) -> RequestView:
    """Let a failed request be tried again at once."""
    return RequestView.of(parts.queue.retry(name), parts.queue.clock())


@router.get("/requests/{name}/receipt", **route("Collect a receipt", None, 404, 409))
def receipt(name: Name, key: Requester, parts: Given) -> ReceiptView:
    """The receipt of a completed request.

    It can be collected again for a day; then, or when its time is over, it is destroyed.
    """
    found = collect(name, key, parts)
    return ReceiptView(request=name, parts=[parse_json(part) for part in found])


@router.get(
    "/requests/{name}/receipt/{place}", **route("Collect one part of a receipt", None, 404, 409)
)
def receipt_part(
    name: Name,
    place: Annotated[int, Path(ge=1, lt=2**31, description="Which part, from 1.")],
    key: Requester,
    parts: Given,
) -> Response:
    """One part of a receipt: the file that `grapheraser receipt verify` takes."""
    found = collect(name, key, parts)
    if place > len(found):
        raise unknown("part of a receipt")
    return Response(found[place - 1] + "\n", media_type="application/json")


@router.delete("/requests/{name}/receipt", status_code=204, **route("Destroy a receipt", None, 404))
def destroy_receipt(name: Name, key: Requester, parts: Given) -> None:
    """Destroy what can be collected of a receipt, for instance after it was handed over."""
    parts.queue.destroy_receipt(name, owner_of(key))


@router.get("/summary", **route("Requests in a few numbers"))
def summary(key: Watcher, parts: Given) -> SummaryView:
    """Count and time requests. A requester sees their own."""
    return summarize(parts.queue, owner_of(key))


def _check_changes(content: RequestContent, parts: Parts) -> None:
    """Refuse what is no change of such a graph; the worker finds out whether it fits."""
    graph = parts.served.now.model.graph_
    for line in content.changes:
        for change in changes_of(line, graph.num_features):
            with_labels(change, graph.label_kind)


def collect(name: str, key: Key, parts: Parts) -> list[str]:
    """Return the parts of a receipt to a key that may have them; else raise a `Problem`."""
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
    return parts.cosigned.carried(found, parts.log.leaves)


def content_in(parts: Parts, content: RequestContent) -> RequestContent:
    """Return a request by the ids of the graph, which may be keyed or have types.

    Refuses names where nodes have ids, and ids where they have names.
    """
    graph = parts.served.now.model.graph_
    typed = graph.types is not None  # then nodes may be said with or without their type
    more: dict[str, Any] = {"changes": content.changes, "cascade": content.cascade}
    if typed:
        return RequestContent(content.subject, **more, **_of_types(graph, content))
    if any(isinstance(node, str) is not graph.named for node in content.node_ids):
        wanted = "names, as texts" if graph.named else "ids, as whole numbers"
        raise Problem(400, "invalid-request", f"the nodes of this run have {wanted}.")
    if any(len(ends) > 2 for ends in content.named.get(EDGES.name, ())):
        raise Problem(400, "invalid-request", "the edges of this run have no relations.")
    if content.cascade:
        raise Problem(400, "invalid-request", "the nodes of this run have no types.")
    labels = content.named.get(LABELS.name, ())
    if not graph.keyed and not any(isinstance(label, tuple) for label in labels):
        return content
    named = {name: _ids_of(graph, KINDS[name], its) for name, its in content.named.items()}
    return RequestContent(content.subject, **more, **named)


def _of_types(graph: Graph, content: RequestContent) -> dict[str, Any]:
    """Return what a request of a typed graph names by ids, a relation by both ends and its bit."""
    found: dict[str, Any] = {}
    assert graph.types is not None
    for kind in content.cascade:
        graph.types.index(kind)  # refuses what is none
    its: Any
    for name, its in content.named.items():
        if name == EDGES.name:
            (edges,) = in_graph(graph, Edges(its))
            named: Any = edges.named
            found[name] = [list(ends) for ends in named]
        else:
            found[name] = _ids_of(graph, KINDS[name], its)
    return found


def _ids_of(graph: Graph, kind: Kind, its: Sequence[Any]) -> list[Any]:
    """Return what is named of a kind by ids of the graph, targets by their numbers."""
    if kind.ends > 1:
        return [graph.ids_of(ids).tolist() for ids in its]
    parted = [item if isinstance(item, tuple) else (item,) for item in its]
    ids, number = graph.ids_of([node for node, *_ in parted]).tolist(), graph.label_kind.number_of
    return [
        [node, number(*target)] if target else node
        for node, (_, *target) in zip(ids, parted, strict=True)
    ]


def owner_of(key: Key) -> str | None:
    """Return whose requests a key may see: a requester's own, or (None) everybody's."""
    return key.id if key.role is Role.REQUESTER else None


_RECENT = 50  # requests to take the median time of


class ShardPlanView(BaseModel):
    """The effect of an erasure on one shard."""

    shard: int
    nodes: int = Field(description="Its nodes now.")
    left: int = Field(description="Its nodes afterwards.")
    why: str = Field(description="What goes, in words.")


class CostView(BaseModel):
    """The cost of an erasure."""

    shards: int = Field(description="Shards that are retrained.")
    of_shards: int
    nodes: int = Field(description="Nodes that these are trained on.")
    of_nodes: int = Field(description="Nodes that a fit from scratch would be trained on.")
    seconds: float | None = Field(
        description="Median time that recent requests took, waiting included; null: there are none."
    )


class PlanView(BaseModel):
    """The plan of an erasure. Nothing was changed or kept."""

    version: int = Field(description="Of the model that it is planned for.")
    counts: dict[str, int] = Field(description="How much goes, by kind.")
    missing: int = Field(description="How much of what is named is not there.")
    shards: list[ShardPlanView] = Field(description="Shards that lose something.")
    emptied: list[int] = Field(description="Shards that nothing is left to train with.")
    untrained: int = Field(description="How much of it no shard is trained on: retrains nothing.")
    touched: int = Field(description="Nodes left whose neighbours, features or labels change.")
    cost: CostView
    statement: str = Field(description="How much receipts of the run claim, such as exact.")
    guarantee: str = Field(description="The same in words.")
    notes: list[str]
    out_of_scope: list[str] = Field(description="What the erasure does not reach.")


@router.post("/plan", **route("Plan a request to forget", OPERATORS, 404, 409, 413))
def plan(form: ErasureForm, parts: Given) -> PlanView:
    """Say which shards a request would retrain, at what cost, and what it would promise.

    For operators, who may read the graph: a plan tells what is in it, and where.
    """
    content = content_in(parts, form.content)
    named = set(content.items)
    if content.subject is not None:
        named |= set(parts.subjects.find(content.subject))
    model, version, _ = parts.served.now
    named |= set(items_along(model.graph_, named, content.cascade))
    wanted = requests_for(named)
    found = model.plan(wanted, missing=SKIP)
    known = model.items_in(wanted)
    claim = model.exactness_
    return PlanView(
        version=version,
        counts=dict(Counter(item.kind.name for item in known)),
        missing=len(named - known),
        shards=[
            ShardPlanView(shard=s.shard, nodes=s.size_before, left=s.size_after, why=s.why)
            for s in found.shards
        ],
        emptied=list(found.emptied),
        untrained=found.counts["untrained"],
        touched=len(found.touched),
        cost=_cost(parts, found),
        statement=claim["statement"],
        guarantee=claim["reason"],
        notes=list(found.notes),
        out_of_scope=list(OUT_OF_SCOPE),
    )


def _cost(parts: Parts, found: Plan) -> CostView:
    model = parts.served.now.model
    sizes = model.partition_.sizes.copy()
    for shard in found.shards:
        sizes[shard.shard] = shard.size_after
    everything = parts.settings.refresh == ALL
    retrained = list(model.shards_) if everything else list(found.retrain)
    recent = parts.queue.list(states=[State.COMPLETED], limit=_RECENT).requests
    took = [
        (request.completed - request.received).total_seconds()
        for request in recent
        if request.completed is not None
    ]
    return CostView(
        shards=len(retrained),
        of_shards=len(model.shards_),
        nodes=int(sizes[retrained].sum()),
        of_nodes=int(sizes.sum()),
        seconds=median(took) if took else None,
    )
