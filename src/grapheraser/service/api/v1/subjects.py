"""The subject map: which nodes, edges, feature rows and labels belong to a person.

Identities are in bodies, never in a path: proxies and logs keep paths.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from grapheraser.service.api.access import OPERATORS, route
from grapheraser.service.api.forms import Form, NamedForm, Text
from grapheraser.service.api.parts import Given
from grapheraser.service.api.v1.requests import content_in
from grapheraser.service.queue.requests import OUT_OF_SCOPE, RequestContent

router = APIRouter(tags=["subjects"])


class SubjectForm(Form):
    """An identity."""

    subject: Text


class SubjectEntry(NamedForm, SubjectForm):
    """An identity and what belongs to it."""


class SubjectMap(Form):
    """Entries to add to the map."""

    entries: Annotated[list[SubjectEntry], Field(min_length=1, max_length=10_000)]


class Loaded(BaseModel):
    """The number of items added."""

    added: int = Field(description="Items that are new.")
    items: int = Field(description="Items in the whole map.")


class Belonging(BaseModel):
    """One thing that belongs to a subject."""

    kind: str = Field(description="node, edge, features or label.")
    ids: list[str] = Field(description="Of the node, or of both ends of the edge; as texts.")


class SubjectView(BaseModel):
    """All that belongs to a subject."""

    items: list[Belonging]
    out_of_scope: list[str] = Field(description="What an erasure does not reach.")


class Forgotten(BaseModel):
    """The number of items that left the map."""

    items: int


@router.post("/subjects", **route("Load the subject map", OPERATORS, 413))
def load(form: SubjectMap, parts: Given) -> Loaded:
    """Add entries. Identities are kept as keyed hashes."""
    given = (RequestContent(entry.subject, **entry.named) for entry in form.entries)
    entries = [content_in(parts, entry) for entry in given]
    added = parts.subjects.load(entries)
    return Loaded(added=added, items=parts.subjects.count())


@router.post("/subjects/find", **route("Look a subject up", OPERATORS, 404, 413))
def find(form: SubjectForm, parts: Given) -> SubjectView:
    """List what belongs to a subject, and what an erasure does not reach."""
    items = [
        Belonging(kind=item.kind.noun, ids=[str(node) for node in item.ids])
        for item in parts.subjects.find(form.subject)
    ]
    return SubjectView(items=items, out_of_scope=list(OUT_OF_SCOPE))


@router.post("/subjects/forget", **route("Take a subject out of the map", OPERATORS, 413))
def forget(form: SubjectForm, parts: Given) -> Forgotten:
    """Forget what belongs to a subject; the run stays as it is. Completed erasures do so too."""
    return Forgotten(items=parts.subjects.forget(form.subject))
