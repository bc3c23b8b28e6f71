"""A graph of a collection: its drawing, what is predicted of it, and which nodes decide."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from grapheraser.errors import RunKindError
from grapheraser.graphs import CollectionEraser
from grapheraser.service.api.access import OPERATORS, route
from grapheraser.service.api.forms import Form, NodeId
from grapheraser.service.api.parts import Given
from grapheraser.service.api.v1.graph import (
    ROLES,
    ClassShare,
    Member,
    answers_of,
    members_of,
    shard_or_none,
    shares,
)
from grapheraser.service.served.drawing import class_names

router = APIRouter(tags=["graph"])


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


@router.post("/graphs/show", **route("Look at a graph of a collection", OPERATORS, 409, 413))
def show(form: GraphForm, parts: Given) -> GraphView:
    """A graph's drawing, its prediction, and which of its nodes decide."""
    now = parts.served.now
    model = now.model
    if not isinstance(model, CollectionEraser):
        raise RunKindError("this run has one graph, not a collection of them.")
    graph, small = model.graph_, model.collection_[form.graph]
    ids = graph.ids_of([form.graph])
    answers = now.values(ids)[0]
    names, classes = class_names(graph), graph.label_kind.is_classes
    said = model.explain(form.graph, form.target)
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
