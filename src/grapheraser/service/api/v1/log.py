"""The log of receipts: entries, the signed checkpoint, and proofs for auditors."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from grapheraser.service.api.access import Anyone, Auditor
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import Problem, responses, unknown
from grapheraser.store.keys import known_keys

router = APIRouter(tags=["log"])
_Size = Annotated[int, Query(ge=1, lt=2**63)]


class LogEntry(BaseModel):
    """One receipt of the log, as it is kept: nobody is named in it."""

    sequence: int
    digest: str
    envelope: dict[str, Any] = Field(description="DSSE envelope with an in-toto statement.")


class LogPage(BaseModel):
    """Some entries of the log."""

    run: str = Field(description="The log's name.")
    size: int = Field(description="Of the log; the model's version.")
    checkpoint: str | None = Field(description="Signed, of this size; null where unsigned.")
    entries: list[LogEntry]
    next: int | None = Field(description="Where the next page starts; null on the last.")


class InclusionView(BaseModel):
    """The proof that an entry is in the log (RFC 9162)."""

    index: int
    size: int
    leaf: str
    proof: list[str]
    root: str
    checkpoint: str | None = Field(description="Of the log of this size, if it is the current.")


class ConsistencyView(BaseModel):
    """The proof that the log only grew (RFC 9162)."""

    first: int
    second: int
    proof: list[str]


@router.get("/log", summary="Export the log", responses=responses(401, 403, 429, 503))
def entries(
    key: Auditor,
    parts: Given,
    start: Annotated[int, Query(ge=1, lt=2**63, description="The first entry.")] = 1,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 100,
) -> LogPage:
    """Receipts in order, with the checkpoint of the log."""
    del key
    receipts, ends = parts.log.read()
    found = receipts[start - 1 : start - 1 + limit]
    last = start - 1 + len(found)
    return LogPage(
        run=ends.run,
        size=ends.receipts,
        checkpoint=ends.checkpoint,
        entries=[
            LogEntry(sequence=r.sequence, digest=r.digest, envelope=json.loads(r.to_json()))
            for r in found
        ],
        next=last + 1 if found and last < ends.receipts else None,
    )


@router.get(
    "/log/checkpoint",
    summary="The log's checkpoint",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **responses(401, 403, 404, 429, 503)},
)
def checkpoint(key: Anyone, parts: Given) -> Response:
    """The signed checkpoint of the log; keep it elsewhere."""
    del key
    ends = parts.log.read()[1]
    if ends.checkpoint is None:
        raise Problem(404, "no-checkpoint", "the log is empty, or its last receipt is unsigned.")
    return Response(ends.checkpoint, media_type="text/plain")


@router.get(
    "/log/keys",
    summary="The keys that sign",
    response_class=Response,
    responses={200: {"content": {"application/x-pem-file": {}}}, **responses(401, 403, 429)},
)
def public_keys(key: Anyone) -> Response:
    """The public keys of the operator, the current one first, as PEM."""
    del key
    text = "".join(found.to_pem() for found in known_keys())
    return Response(text, media_type="application/x-pem-file")


@router.get(
    "/log/consistency",
    summary="Prove that the log only grew",
    responses=responses(401, 403, 404, 429, 503),
)
def consistency(key: Auditor, parts: Given, first: _Size, second: _Size) -> ConsistencyView:
    """The proof that the log of the second size begins as that of the first."""
    del key
    if not first <= second <= _size(parts):
        raise unknown("log size")
    proof = parts.log.consistent(first, second)
    return ConsistencyView(first=first, second=second, proof=[part.hex() for part in proof])


@router.get(
    "/log/{sequence}/proof",
    summary="Prove that an entry is in the log",
    responses=responses(401, 403, 404, 429, 503),
)
def inclusion(
    sequence: Annotated[int, Path(ge=1, lt=2**63, description="Number of the receipt.")],
    key: Auditor,
    parts: Given,
    size: Annotated[int | None, Query(ge=1, lt=2**63, description="Default: all of it.")] = None,
) -> InclusionView:
    """The proof that a receipt is in the log of this size."""
    del key
    ends = parts.log.read()[1]
    whole = size or ends.receipts
    if not sequence <= whole <= ends.receipts:
        raise unknown("log entry")
    found = parts.log.included(sequence - 1, whole)
    return InclusionView(
        index=found.index,
        size=found.size,
        leaf=found.leaf.hex(),
        proof=[part.hex() for part in found.proof],
        root=found.root.hex(),
        checkpoint=ends.checkpoint if whole == ends.receipts else None,
    )


def _size(parts: Parts) -> int:
    return parts.log.read()[1].receipts
