"""The graph: its drawing, and its nodes, or graphs, with all that is known and predicted of one.

Ids and names are in bodies, never in a path: proxies and logs keep paths.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from grapheraser.aggregation import Explanation
from grapheraser.errors import RunKindError
from grapheraser.graph import TRAIN, UNLABELLED, Graph
from grapheraser.graph.roles import TEST, VALIDATION
from grapheraser.nodes.answers import are_predicted
from grapheraser.service.api.access import OPERATORS, route
from grapheraser.service.api.forms import Form, NodeId, Text
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import responses
from grapheraser.service.api.v1.requests import content_in
from grapheraser.service.queue.requests import RequestContent
from grapheraser.service.served.drawing import Drawing, class_names
from grapheraser.service.served.serving import Published

router = APIRouter(tags=["graph"])
_POLL_SECONDS = 0.05  # between two looks at the drawing
_FILE = "application/octet-stream"


class BeingLaidOut(BaseModel):
    """There is no drawing yet."""

    status: str = "being laid out"


@router.get(
    "/graph/layout",
    summary="Where every node is drawn",
    response_class=Response,
    dependencies=[Depends(OPERATORS)],
    responses={
        200: {
            "content": {_FILE: {"schema": {"type": "string", "format": "binary"}}},
            "description": "A safetensors file: places F32 [n, 2], shards I16 [n] (-1: none), "
            "classes I16 [n] as predicted (-1: not known), edges U32 [m, 2] (rows of nodes), and "
            "ids I64 [n], or names U8: a JSON list. Its metadata `drawing` is a JSON object.",
        },
        202: {"model": BeingLaidOut, "description": "It is being laid out: ask again."},
        304: {"description": "Nothing is new."},
        **responses(401, 403, 429, 503),
    },
)
async def layout(
    parts: Given,
    known: Annotated[str | None, Header(alias="If-None-Match")] = None,
    wait: Annotated[
        float, Query(ge=0, le=30, description="Seconds to wait for something new.")
    ] = 0,
) -> Response:
    """The served graph in the plane, or a sample of a large one; laid out once for each version.

    Right after a change it may hold the places of the version before, without what was forgotten:
    then `settled` is false, and what is left is being laid out afresh.
    """
    drawing = await _found(parts, known, time.monotonic() + wait)
    headers = {"Cache-Control": "no-store"}
    if drawing is None:
        return JSONResponse(BeingLaidOut().model_dump(), 202, {**headers, "Retry-After": "1"})
    headers["ETag"] = drawing.tag
    if drawing.tag == known:
        return Response(status_code=304, headers=headers)
    content = await run_in_threadpool(lambda: drawing.content)
    return Response(content, media_type=_FILE, headers=headers)


async def _found(parts: Parts, known: str | None, until: float) -> Drawing | None:
    while True:
        drawing = await run_in_threadpool(parts.drawings.now)
        new = drawing is not None and drawing.tag != known
        if new or time.monotonic() >= until:
            return drawing
        await asyncio.sleep(_POLL_SECONDS)


_MAX_DIGITS = 19  # of an id


def find_nodes(graph: Graph, text: str, limit: int) -> NDArray[np.int64]:
    """Return the ids of nodes that a text stands for, the closest first.

    Where nodes have names: the one of this name, then those that begin with the text, then those
    that hold it, whatever the case. Else the node of this id, then those whose ids begin with it.
    """
    wanted = text.strip()
    if graph.keyed and wanted.isdecimal() and len(wanted) < _MAX_DIGITS:
        ids = graph.ids_of([int(wanted)])
        return ids[graph.contains(ids)]
    found = (
        _by_name(graph, wanted, limit) if graph.called_by_text else _by_id(graph.ids, wanted, limit)
    )
    return np.array(found, dtype=np.int64)


def _by_name(graph: Graph, text: str, limit: int) -> list[int]:
    wanted = text.casefold()
    names = [str(name).casefold() for name in graph.names_of(graph.ids)]
    ids = graph.ids.tolist()
    exact = [ids[at] for at, name in enumerate(names) if name == wanted]
    begin = [ids[at] for at, name in enumerate(names) if name.startswith(wanted)]
    hold = [ids[at] for at, name in enumerate(names) if wanted in name]
    return list(dict.fromkeys(exact + begin + hold))[:limit]


def _by_id(ids: NDArray[np.int64], text: str, limit: int) -> list[int]:
    if not text.isdecimal() or len(text) > _MAX_DIGITS or (text[0] == "0" and text != "0"):
        return []
    found: list[int] = []
    first = int(text)
    for zeros in range(_MAX_DIGITS - len(text) + 1):  # 17, then 170 to 179, then 1700 to 1799
        low, high = first * 10**zeros, (first + 1) * 10**zeros
        if low > np.iinfo(np.int64).max or len(found) >= limit or (first == 0 and zeros):
            break
        ends = [low, min(high - 1, np.iinfo(np.int64).max)]
        start, end = np.searchsorted(ids, ends[0]), np.searchsorted(ids, ends[1], side="right")
        found += ids[start : min(end, start + limit)].tolist()
    return found[:limit]


_MAX_NEIGHBOURS = 200
_SHARD = "shard "
ROLES = {TRAIN: "training", TEST: "test", VALIDATION: "validation"}


class FindForm(Form):
    """A search for nodes."""

    text: Text = Field(description="An id, a name, or the beginning of one.")
    limit: Annotated[int, Field(ge=1, le=100)] = 10


class ShowForm(Form):
    """The node to show."""

    node: NodeId


class NodeLine(BaseModel):
    """A node in a list."""

    node: str = Field(description="Its id or name, as a text.")
    shard: int | None = Field(description="That it is in; null: none.")
    predicted: str | None = Field(description="The class that is predicted for it.")


class FoundNodes(BaseModel):
    """Nodes that were found, the closest first."""

    version: int
    nodes: list[NodeLine]
    more: bool = Field(description="Whether there are others.")


class Member(BaseModel):
    """A member of the ensemble, and what it had to say."""

    member: str = Field(description="shard 7, or the name of a closed-form member.")
    shard: int | None = None
    weight: float = Field(description="Its share of the decision; all of them sum to 1.")
    predicted: str = Field(
        description="The class that it holds most likely; the label; the number."
    )
    confidence: float


class ClassShare(BaseModel):
    """A class and how likely it is."""

    name: str
    probability: float


class NodeView(BaseModel):
    """A node with all that is known and predicted of it."""

    version: int
    node: str
    role: str = Field(description="training, validation, test or context.")
    shard: int | None = Field(description="That it is in; null: none.")
    label: str | None = Field(description="Its class in the data.")
    posterior: list[ClassShare] | None = Field(
        description="Most likely first; or labels, or numbers; null where the run predicts links."
    )
    members: list[Member] = Field(description="Who decided, heaviest first.")
    why: str = Field(description="How the weights of the members came about.")
    degree: int = Field(description="How many neighbours it has.")
    neighbours: list[NodeLine] = Field(description="At most 200 of them.")


@router.post("/nodes/find", **route("Find nodes", OPERATORS, 413))
def find(form: FindForm, parts: Given) -> FoundNodes:
    """Nodes whose id or name is, begins with or holds a text."""
    now = parts.served.now
    ids = find_nodes(now.model.graph_, form.text, form.limit + 1)
    lines = _lines(now, ids[: form.limit])
    return FoundNodes(version=now.version, nodes=lines, more=len(ids) > form.limit)


@router.post("/nodes/show", **route("Look at a node", OPERATORS, 413))
def show(form: ShowForm, parts: Given) -> NodeView:
    """A node's neighbours, its prediction, and which shards decided it."""
    content_in(parts, RequestContent(nodes=[form.node]))
    now = parts.served.now
    model, graph = now.model, now.model.graph_
    ids = graph.ids_of([form.node])
    near = graph.neighbours(form.node)
    explained: Explanation | None = None
    posterior = label = None
    answered = bool(are_predicted(graph, ids).all())
    if (classifier := model.classifier) is not None and answered:
        explained = classifier.explain(form.node)
        posterior = shares(graph, now.values(ids)[0])
        given = int(graph.labels(ids)[0])
        label = None if given == UNLABELLED else class_names(graph)[given]
    elif model.task.name == "nodes" and classifier is None and answered:
        posterior = answers_of(graph, now.values(ids)[0])
    return NodeView(
        version=now.version,
        node=str(graph.names_of(ids)[0]),
        role=ROLES.get(int(graph.roles(ids)[0]), "context"),
        shard=shard_or_none(model.partition_.shard_or_none(ids)[0]),
        label=label,
        posterior=posterior,
        members=[] if explained is None else members_of(graph, explained),
        why="" if explained is None else explained.why,
        degree=len(near),
        neighbours=_lines(now, near[:_MAX_NEIGHBOURS]),
    )


def _lines(now: Published, ids: NDArray[np.int64]) -> list[NodeLine]:
    model, graph = now.model, now.model.graph_
    shards = model.partition_.shard_or_none(ids)
    words: list[str | None] = [None] * len(ids)
    asked = np.flatnonzero(are_predicted(graph, ids))
    if model.classifier is not None and len(asked):
        names = class_names(graph)
        for at, label in zip(asked, now.values(ids[asked]).argmax(axis=1), strict=True):
            words[at] = names[label]
    return [
        NodeLine(node=str(name), shard=shard_or_none(shard), predicted=word)
        for name, shard, word in zip(graph.names_of(ids), shards, words, strict=True)
    ]


def shard_or_none(shard: int) -> int | None:
    """Return a shard as answers say it."""
    return None if shard < 0 else int(shard)


def shares(graph: Graph, posterior: NDArray[np.float32]) -> list[ClassShare]:
    """Return classes with their names, most likely first."""
    names = class_names(graph)
    order = np.argsort(-posterior, kind="stable")
    return [ClassShare(name=names[k], probability=float(posterior[k])) for k in order]


def answers_of(graph: Graph, answers: NDArray[Any]) -> list[ClassShare]:
    """Return how likely each label is, or numbers, with their names."""
    names = graph.label_kind.target_names
    return [ClassShare(name=n, probability=v) for n, v in zip(names, answers, strict=True)]


def members_of(graph: Graph, explained: Any) -> list[Member]:
    """Return the members of an explanation, with the names of their classes."""
    names, kind = class_names(graph), graph.label_kind
    return [
        Member(
            member=said.member,
            shard=int(said.member.removeprefix(_SHARD)) if said.member.startswith(_SHARD) else None,
            weight=said.weight,
            predicted=names[said.label]
            if kind.is_classes
            else f"{said.confidence if kind.is_numbers else said.label:g}",
            confidence=said.confidence,
        )
        for said in explained.members
    ]


class GraphForm(Form):
    """The graph to show."""

    graph: NodeId
    target: int = Field(
        default=0, ge=0, description="Which of several labels or numbers to explain."
    )


class Alike(BaseModel):
    """A training graph that a decision rests on."""

    graph: str
    label: str
    similarity: float = Field(description="1 where all counts agree.")


class Inside(BaseModel):
    """A node of a graph, in the order in which they are drawn."""

    node: int
    label: int
    decides: float = Field(description="How much the class, label or number loses without it.")


class GraphView(BaseModel):
    """A graph with all that is known and predicted of it."""

    version: int
    graph: str
    role: str = Field(description="training, validation, test or context.")
    shard: int | None = Field(description="That it is in; null: none.")
    label: str | None = Field(description="Its class in the data; null: unknown, or no classes.")
    posterior: list[ClassShare] = Field(description="Most likely first; or labels, or numbers.")
    members: list[Member] = Field(description="Who decided, heaviest first.")
    alike: list[Alike]
    nodes: list[Inside]
    edges: list[tuple[int, int]]
    width: float = Field(description="Of the drawing; it is as high.")
    drawing: str = Field(description="Inside of an SVG element, a circle for each of the nodes.")


@router.post(
    "/graphs/show", name="show", **route("Look at a graph of a collection", OPERATORS, 409, 413)
)
def show_graph(form: GraphForm, parts: Given) -> GraphView:
    """A graph's drawing, its prediction, and which of its nodes decide."""
    now = parts.served.now
    model = now.model
    if (asked := model.collector) is None:
        raise RunKindError("this run has one graph, not a collection of them.")
    graph, small = model.graph_, asked.collection_[form.graph]
    ids = graph.ids_of([form.graph])
    answers = now.values(ids)[0]
    names, classes = class_names(graph), graph.label_kind.is_classes
    said = asked.explain(form.graph, form.target)
    label = int(graph.labels(ids)[0]) if classes else -1
    drawing = said.drawing
    return GraphView(
        version=now.version,
        graph=str(graph.names_of(ids)[0]),
        role=ROLES.get(int(graph.roles(ids)[0]), "context"),
        shard=shard_or_none(model.partition_.shard_or_none(ids)[0]) if model.shards_ else None,
        label=names[label] if label >= 0 else None,
        posterior=(shares if classes else answers_of)(graph, answers),
        members=members_of(graph, said),
        alike=[
            Alike(
                graph=str(one.graph),
                label=names[int(one.label)] if classes else f"{one.label:g}",
                similarity=one.similarity,
            )
            for one in said.alike
        ],
        nodes=[
            Inside(node=node, label=kind, decides=said.nodes[node])
            for node, kind in zip(small.nodes.tolist(), small.labels.tolist(), strict=True)
        ],
        edges=small.edges.tolist(),
        width=drawing.width,
        drawing=str(drawing.content),
    )
