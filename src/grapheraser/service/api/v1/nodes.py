"""Nodes of the served graph: find them, and what is known and predicted of one.

Ids and names are in bodies, never in a path: paths are what proxies and logs keep.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from fastapi import APIRouter
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from grapheraser.aggregation import Explanation
from grapheraser.eraser import GraphEraser
from grapheraser.graph import TRAIN, UNLABELLED, Graph
from grapheraser.graph.roles import TEST, VALIDATION
from grapheraser.service.api.access import Operator
from grapheraser.service.api.forms import Form, NodeId, Text
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import responses
from grapheraser.service.api.v1.requests import check_ids
from grapheraser.service.drawing import class_names
from grapheraser.service.requests import Asked
from grapheraser.service.search import found_nodes
from grapheraser.service.serving import Published

router = APIRouter(tags=["graph"])
_MOST_NEIGHBOURS = 200
_SHARD = "shard "
_ROLES = {TRAIN: "training", TEST: "test", VALIDATION: "validation"}


class FindForm(Form):
    """What somebody looks for."""

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
    predicted: str = Field(description="The class that it holds most likely.")
    confidence: float


class ClassShare(BaseModel):
    """A class and how likely it is."""

    name: str
    probability: float


class NodeView(BaseModel):
    """What is known and predicted of a node."""

    version: int
    node: str
    role: str = Field(description="training, validation, test or context.")
    shard: int | None = Field(description="That it is in; null: none.")
    label: str | None = Field(description="Its class in the data.")
    posterior: list[ClassShare] | None = Field(
        description="Most likely first; null where the run predicts links."
    )
    members: list[Member] = Field(description="Who decided, heaviest first.")
    why: str = Field(description="How the weights of the members came about.")
    degree: int = Field(description="How many neighbours it has.")
    neighbours: list[NodeLine] = Field(description="At most 200 of them.")


@router.post("/nodes/find", summary="Find nodes", responses=responses(401, 403, 413, 429, 503))
def find(form: FindForm, key: Operator, parts: Given) -> FoundNodes:
    """Nodes whose id or name is, begins with or holds a text."""
    del key
    now = parts.served.now
    ids = found_nodes(now.model.graph_, form.text, form.limit + 1)
    lines = _lines(parts, now, ids[: form.limit])
    return FoundNodes(version=now.version, nodes=lines, more=len(ids) > form.limit)


@router.post("/nodes/show", summary="Look at a node", responses=responses(401, 403, 413, 429, 503))
def show(form: ShowForm, key: Operator, parts: Given) -> NodeView:
    """A node's neighbours, its prediction, and which shards decided it."""
    del key
    check_ids(Asked(nodes=(form.node,)), parts)
    now = parts.served.now
    model, graph = now.model, now.model.graph_
    ids = graph.ids_of([form.node])
    near = graph.neighbours(form.node)
    explained: Explanation | None = None
    posterior = None
    if isinstance(model, GraphEraser):
        explained = model.explain(form.node)
        answers = now.answers
        given = model.predict_proba(ids) if answers is None else answers[graph.positions(ids)]
        posterior = _shares(graph, given[0])
    return NodeView(
        version=now.version,
        node=str(graph.names_of(ids)[0]),
        role=_ROLES.get(int(graph.roles(ids)[0]), "context"),
        shard=_shard(model.partition_.shard_or_none(ids)[0]),
        label=None if posterior is None else _label(graph, ids),
        posterior=posterior,
        members=[] if explained is None else _members(graph, explained),
        why="" if explained is None else explained.why,
        degree=len(near),
        neighbours=_lines(parts, now, near[:_MOST_NEIGHBOURS]),
    )


def _lines(parts: Parts, now: Published, ids: NDArray[np.int64]) -> list[NodeLine]:
    model, graph = now.model, now.model.graph_
    shards = model.partition_.shard_or_none(ids)
    words: list[str | None] = [None] * len(ids)
    if isinstance(model, GraphEraser) and len(ids):
        given = now.answers
        found = model.predict_proba(ids) if given is None else given[graph.positions(ids)]
        names = class_names(graph)
        words = [names[label] for label in found.argmax(axis=1)]
    return [
        NodeLine(node=str(name), shard=_shard(shard), predicted=word)
        for name, shard, word in zip(graph.names_of(ids), shards, words, strict=True)
    ]


def _shard(shard: int) -> int | None:
    return None if shard < 0 else int(shard)


def _label(graph: Graph, ids: NDArray[np.int64]) -> str | None:
    label = int(graph.labels(ids)[0])
    return None if label == UNLABELLED else class_names(graph)[label]


def _shares(graph: Graph, posterior: NDArray[np.float32]) -> list[ClassShare]:
    names = class_names(graph)
    order = np.argsort(-posterior, kind="stable")
    return [ClassShare(name=names[k], probability=float(posterior[k])) for k in order]


def _members(graph: Graph, explained: Explanation) -> list[Member]:
    names = class_names(graph)
    return [
        Member(
            member=said.member,
            shard=int(said.member.removeprefix(_SHARD)) if said.member.startswith(_SHARD) else None,
            weight=said.weight,
            predicted=names[said.label],
            confidence=said.confidence,
        )
        for said in explained.members
    ]
