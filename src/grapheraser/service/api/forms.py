"""Bodies of requests and answers: pydantic models, from which the schema is made."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictStr, StringConstraints

from grapheraser.kinds import KINDS
from grapheraser.service.queue.requests import OUT_OF_SCOPE, Request, RequestContent, State

_MAX_NAMED = 100_000
_NO_NULL = r"^[^\u0000]*$"

Text = Annotated[
    StrictStr, StringConstraints(min_length=1, max_length=1000, pattern=_NO_NULL), Field()
]
NodeId = Annotated[int, Field(strict=True, ge=0, lt=2**63)] | Text
Class = Annotated[int, Field(strict=True, ge=0, lt=2**31)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Ids = Annotated[list[NodeId], Field(max_length=_MAX_NAMED)]
Edge = tuple[NodeId, NodeId] | tuple[NodeId, Text, NodeId]
Pairs = Annotated[list[tuple[NodeId, NodeId]], Field(max_length=_MAX_NAMED)]


class Form(BaseModel):
    """The body of a request; refuses fields that it does not know."""

    model_config = ConfigDict(extra="forbid")


class NamedForm(Form):
    """Nodes, edges, feature rows and labels; users, items, interactions; graphs and their parts."""

    nodes: Ids = Field(default=[], description="Nodes to forget, with all that they have.")
    edges: Annotated[list[Edge], Field(max_length=_MAX_NAMED)] = Field(
        default=[],
        description="Edges to forget; their ends stay. In a typed graph also triples with the name "
        "of a relation in the middle.",
    )
    features: Ids = Field(default=[], description="Nodes whose features to forget.")
    labels: Annotated[list[NodeId | tuple[NodeId, NodeId]], Field(max_length=_MAX_NAMED)] = Field(
        default=[],
        description="Nodes whose labels to forget; of several labels or numbers also pairs of a "
        "node and the name or number of one.",
    )
    users: Ids = Field(default=[], description="Of a recommender: users to forget.")
    items: Ids = Field(default=[], description="Of a recommender: items to forget.")
    interactions: Pairs = Field(
        default=[], description="Of a recommender: pairs of a user and an item to forget."
    )
    graphs: Ids = Field(default=[], description="Of a collection: graphs to forget.")
    graph_nodes: Pairs = Field(
        default=[], description="Of a collection: pairs of a graph and one of its nodes to forget."
    )
    graph_edges: Annotated[list[tuple[NodeId, NodeId, NodeId]], Field(max_length=_MAX_NAMED)] = (
        Field(default=[], description="Of a collection: a graph and the ends of an edge each.")
    )

    @property
    def named(self) -> dict[str, Any]:
        """The lists that are not empty, by the name of their kind."""
        return {name: ids for name in KINDS if (ids := getattr(self, name))}


class ErasureForm(NamedForm):
    """A request to forget a subject, or nodes, edges, feature rows and labels."""

    subject: Text | None = Field(default=None, description="An identity of the subject map.")
    cascade: list[Text] = Field(
        default=[],
        description="Of a typed graph: types whose nodes go as well where they exist only through "
        "nodes that go.",
    )
    deadline: datetime | None = Field(
        default=None, description="Until when; by default 30 days from now. With a time zone."
    )

    @property
    def content(self) -> RequestContent:
        return RequestContent(self.subject, cascade=self.cascade, **self.named)


class UpdateForm(Form):
    """Changes: one object per line of `grapheraser update`."""

    changes: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=10_000)] = Field(
        description="As in docs/changes.md: add_nodes, add_edges, set_features, set_labels, nodes, "
        "edges, features, labels."
    )
    deadline: datetime | None = Field(default=None, description="Until when.")


class InsertionForm(Form):
    """One training node to add, with its edges."""

    id: NodeId = Field(description="Of the new node.")
    features: list[float] | dict[str, float] = Field(
        description="A number for every column, or those that are not 0 by their column."
    )
    label: Class | Number | Annotated[list[Number | None], Field(max_length=_MAX_NAMED)] | None = (
        Field(
            default=None,
            description="Its class; or its number, or a list of 0, 1 and null for several labels, "
            "or of numbers. Without one it is a context node.",
        )
    )
    neighbours: Ids = Field(default=[], description="Nodes that it has an edge to.")
    deadline: datetime | None = Field(default=None, description="Until when.")


class RequestView(BaseModel):
    """A request and its state. It names nobody."""

    id: str
    kind: str = Field(description="erase or update.")
    state: State
    counts: dict[str, int] = Field(description="How much it names, by kind.")
    received: datetime
    deadline: datetime
    late: bool = Field(description="Whether the deadline has passed.")
    completed: datetime | None = None
    attempts: int = 0
    reason: str | None = Field(default=None, description="Why it failed, or what was skipped.")
    retry_at: datetime | None = Field(default=None, description="When it is tried again.")
    version: int | None = Field(default=None, description="Version of the model that answers it.")
    receipts: int = Field(default=0, description="Parts of the receipt that can be collected.")
    out_of_scope: list[str] = Field(description="What the erasure does not reach.")

    @classmethod
    def of(cls, request: Request, now: datetime) -> RequestView:
        """Show a request."""
        names = [name for name in cls.model_fields if hasattr(request, name)]
        values = {name: getattr(request, name) for name in names}
        return cls(**values, late=request.is_late(now), out_of_scope=list(OUT_OF_SCOPE))


class RequestList(BaseModel):
    """Some requests, newest first."""

    requests: list[RequestView]
    cursor: int | None = Field(default=None, description="Of the next page; null on the last.")


class ReceiptView(BaseModel):
    """The receipt of one request: a part for each thing that it named.

    `grapheraser receipt verify` takes it as a file, and each part in canonical JSON as well.
    """

    request: str
    parts: list[dict[str, Any]]


class EventView(BaseModel):
    """One step of a request."""

    number: int
    request: str
    state: State
    at: datetime
    version: int | None = None
    reason: str | None = None
