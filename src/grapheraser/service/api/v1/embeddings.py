"""Rows that moved in a served embedding, for an index or a feature store that follows it."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from grapheraser.embeddings import Embedder
from grapheraser.errors import ParameterError
from grapheraser.service.api.access import READERS, route
from grapheraser.service.api.parts import Given
from grapheraser.service.api.problems import Problem

router = APIRouter(prefix="/embeddings", tags=["embeddings"])


class MovedRows(BaseModel):
    """Rows that moved, as they are now. Who is gone is found by asking what is not known here."""

    log: str = Field(description="Name of the log that versions are counted in.")
    version: int = Field(description="The version that an index has once it took these over.")
    ids: list[int | str] = Field(description="Ids of nodes, or names.")
    rows: list[list[float]] = Field(description="One row for each of them.")
    more: int | None = Field(description="Ask again with this as `after`; null: all told.")


class Gone(BaseModel):
    """Ids of those that were asked about which are no longer in the graph."""

    version: int
    ids: list[int | str]


class Known(BaseModel):
    """Ids, or names, of the rows that an index has."""

    ids: list[int | str] = Field(max_length=100_000)


@router.get("/changes", **route("The rows that moved", READERS, 404, 409))
def changes(
    parts: Given,
    since: Annotated[
        int | None, Query(ge=0, description="Version of the index; none: all.")
    ] = None,
    log: Annotated[str | None, Query(max_length=200, description="Log of that version.")] = None,
    after: Annotated[int, Query(ge=0, description="How many of them to leave out.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000, description="How many at the most.")] = 1000,
) -> MovedRows:
    """List rows that moved after a version, in the order of ids; all rows without one."""
    embedder = _served(parts)
    try:
        found = embedder.changes(since, log=log)
    except ParameterError as error:
        raise Problem(409, "unknown-version", error.message) from error
    ids, rows = found.part(after, after + limit)
    return MovedRows(
        log=found.log,
        version=found.version,
        ids=ids.tolist(),
        rows=rows.tolist(),
        more=after + limit if after + limit < len(found) else None,
    )


@router.post("/gone", **route("Who is gone", READERS, 404))
def gone(known: Known, parts: Given) -> Gone:
    """Tell which of these are no longer in the graph, so that an index can drop them."""
    embedder = _served(parts)
    found = embedder.changes(embedder.version_)
    return Gone(version=found.version, ids=found.gone(known.ids).tolist())


def _served(parts: Given) -> Embedder:
    model = parts.served.now.model
    if model.task.name != Embedder.task.name:
        raise Problem(404, "unknown-embedding", "the served run is no embedding.")
    return cast(Embedder, model)
