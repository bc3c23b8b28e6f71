"""The log of receipts: entries, the signed checkpoint, and proofs for auditors."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from grapheraser.receipts.tree import consistency_proof, inclusion_proof, root_of
from grapheraser.service.api.access import ANYONE, AUDITORS, route
from grapheraser.service.api.parts import Given
from grapheraser.service.api.problems import Problem, unknown
from grapheraser.store.keys import known_keys
from grapheraser.untrusted import parse_json

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


@router.get("/log", **route("Export the log", AUDITORS))
def entries(
    parts: Given,
    start: Annotated[int, Query(ge=1, lt=2**63, description="The first entry.")] = 1,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 100,
) -> LogPage:
    """Receipts in order, with the checkpoint of the log."""
    receipts, ends = parts.log.read()
    found = receipts[start - 1 : start - 1 + limit]
    last = start - 1 + len(found)
    return LogPage(
        run=ends.run,
        size=ends.receipts,
        checkpoint=ends.checkpoint,
        entries=[
            LogEntry(sequence=r.sequence, digest=r.digest, envelope=parse_json(r.to_json()))
            for r in found
        ],
        next=last + 1 if found and last < ends.receipts else None,
    )


@router.get(
    "/log/checkpoint",
    response_class=Response,
    **route("The log's checkpoint", ANYONE, 404, ok={"content": {"text/plain": {}}}),
)
def checkpoint(parts: Given) -> Response:
    """The signed checkpoint of the log, with cosignatures of witnesses; keep it elsewhere."""
    ends = parts.log.read()[1]
    if ends.checkpoint is None:
        raise Problem(404, "no-checkpoint", "the log is empty, or its last receipt is unsigned.")
    return Response(parts.cosigned.best(ends.receipts) or ends.checkpoint, media_type="text/plain")


@router.get(
    "/log/keys",
    response_class=Response,
    **route("The keys that sign", ANYONE, ok={"content": {"application/x-pem-file": {}}}),
)
def public_keys() -> Response:
    """The public keys of the operator, the current one first, as PEM."""
    text = "".join(found.to_pem() for found in known_keys())
    return Response(text, media_type="application/x-pem-file")


@router.get("/log/consistency", **route("Prove that the log only grew", AUDITORS, 404))
def consistency(parts: Given, first: _Size, second: _Size) -> ConsistencyView:
    """The proof that the log of the second size begins as that of the first."""
    if not first <= second <= parts.log.read()[1].receipts:
        raise unknown("log size")
    proof = consistency_proof(parts.log.leaves(second), first)
    return ConsistencyView(first=first, second=second, proof=[part.hex() for part in proof])


@router.get("/log/{sequence}/proof", **route("Prove that an entry is in the log", AUDITORS, 404))
def inclusion(
    sequence: Annotated[int, Path(ge=1, lt=2**63, description="Number of the receipt.")],
    parts: Given,
    size: Annotated[int | None, Query(ge=1, lt=2**63, description="Default: all of it.")] = None,
) -> InclusionView:
    """The proof that a receipt is in the log of this size."""
    ends = parts.log.read()[1]
    whole = size or ends.receipts
    if not sequence <= whole <= ends.receipts:
        raise unknown("log entry")
    leaves = parts.log.leaves(whole)
    return InclusionView(
        index=sequence - 1,
        size=whole,
        leaf=leaves[sequence - 1].hex(),
        proof=[part.hex() for part in inclusion_proof(leaves, sequence - 1)],
        root=root_of(leaves).hex(),
        checkpoint=ends.checkpoint if whole == ends.receipts else None,
    )
