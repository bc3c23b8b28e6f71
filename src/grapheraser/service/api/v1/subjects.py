"""The subject map: which nodes, edges, feature rows and labels belong to a person.

Identities are in bodies, never in a path: paths are what proxies and logs keep.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from grapheraser.service.api.access import Operator
from grapheraser.service.api.forms import Form, Ids, Pairs, Text
from grapheraser.service.api.parts import Given
from grapheraser.service.api.problems import responses
from grapheraser.service.api.v1.requests import check_ids
from grapheraser.service.requests import OUT_OF_SCOPE, Asked

router = APIRouter(tags=["subjects"])


class SubjectForm(Form):
    """An identity."""

    subject: Text


class SubjectEntry(SubjectForm):
    """An identity and what belongs to it."""

    nodes: Ids = Field(default_factory=list)
    edges: Pairs = Field(default_factory=list)
    features: Ids = Field(default_factory=list)
    labels: Ids = Field(default_factory=list)


class SubjectMap(Form):
    """Entries to add to the map."""

    entries: Annotated[list[SubjectEntry], Field(min_length=1, max_length=10_000)]


class Loaded(BaseModel):
    """What was added."""

    added: int = Field(description="Items that are new.")
    items: int = Field(description="Items in the whole map.")


class Belonging(BaseModel):
    """One thing that belongs to a subject."""

    kind: str = Field(description="node, edge, features or label.")
    ids: list[str] = Field(description="Of the node, or of both ends of the edge; as texts.")


class SubjectView(BaseModel):
    """What belongs to a subject."""

    items: list[Belonging]
    out_of_scope: list[str] = Field(description="What an erasure does not reach.")


class Forgotten(BaseModel):
    """What left the map."""

    items: int


@router.post(
    "/subjects", summary="Load the subject map", responses=responses(401, 403, 413, 429, 503)
)
def load(form: SubjectMap, key: Operator, parts: Given) -> Loaded:
    """Add entries. Identities are kept as keyed hashes."""
    del key
    entries = [
        Asked.from_dict(entry.model_dump(exclude_defaults=True) | {"subject": entry.subject})
        for entry in form.entries
    ]
    for entry in entries:
        check_ids(entry, parts)
    added = parts.subjects.load(entries)
    return Loaded(added=added, items=parts.subjects.count())


@router.post(
    "/subjects/find",
    summary="Look a subject up",
    responses=responses(401, 403, 404, 413, 429, 503),
)
def find(form: SubjectForm, key: Operator, parts: Given) -> SubjectView:
    """What belongs to a subject, and what an erasure does not reach."""
    del key
    items = [
        Belonging(kind=item.kind, ids=[str(node) for node in item.ids])
        for item in parts.subjects.find(form.subject)
    ]
    return SubjectView(items=items, out_of_scope=list(OUT_OF_SCOPE))


@router.post(
    "/subjects/forget",
    summary="Take a subject out of the map",
    responses=responses(401, 403, 413, 429, 503),
)
def forget(form: SubjectForm, key: Operator, parts: Given) -> Forgotten:
    """Forget what belongs to a subject; the run stays as it is. Completed erasures do so too."""
    del key
    return Forgotten(items=parts.subjects.forget(form.subject))
