"""Checking a receipt that somebody brings: the same words as `grapheraser receipt verify`."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from grapheraser.errors import VerificationError
from grapheraser.receipts import Part
from grapheraser.receipts.checking import check_part
from grapheraser.service.api.access import Anyone
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import responses
from grapheraser.store.keys import known_keys

router = APIRouter(tags=["audit"])


class CheckedReceipt(BaseModel):
    """Whether a receipt holds, and what was checked."""

    valid: bool
    wrong: str | None = Field(default=None, description="What is wrong with it.")
    hint: str | None = Field(default=None, description="What to do about it.")
    about: str | None = Field(default=None, description="What was asked.")
    statement: str | None = None
    reason: str | None = Field(default=None, description="The statement in words.")
    run: str | None = Field(default=None, description="The log that it is an entry of.")
    sequence: int | None = Field(default=None, description="Its number there.")
    completed_at: datetime | None = None
    key: str | None = Field(default=None, description="Id of the key that signed it.")
    checked: list[str] = Field(default_factory=list, description="What was checked, in words.")


@router.post(
    "/receipts/verify",
    summary="Check a receipt",
    responses=responses(401, 403, 413, 429, 503),
    openapi_extra={
        "requestBody": {
            "description": "The file that was handed out, as it is.",
            "required": True,
            "content": {"application/json": {"schema": {}}},
        }
    },
)
async def verify(request: Request, key: Anyone, parts: Given) -> CheckedReceipt:
    """Check a receipt with the keys of this machine, and against the log as it is now.

    Whoever trusts nobody here checks it offline: `grapheraser receipt verify FILE --key PUB`.
    """
    del key
    return await run_in_threadpool(_checked, await request.body(), parts)


def _checked(content: bytes, parts: Parts) -> CheckedReceipt:
    try:
        part = Part.from_json(content.decode())
        found = check_part(part, known_keys())
        _check_log(part, parts)
    except UnicodeDecodeError:
        return CheckedReceipt(valid=False, wrong="not a readable receipt, or a truncated one.")
    except VerificationError as error:
        return CheckedReceipt(valid=False, wrong=error.message, hint=error.hint)
    lines = [*found.lines, "the log as it is now holds it at its place"]
    facts = found.to_dict() | {"about": part.in_words, "checked": lines}
    return CheckedReceipt.model_validate({"valid": True, **facts})


def _check_log(part: Part, parts: Parts) -> None:
    """Refuse a receipt that is no entry of the log that is served."""
    receipts, ends = parts.log.read()
    receipt = part.receipt
    if receipt.run != ends.run:
        raise VerificationError(
            "the receipt is of another run than the one that is served here.",
            hint="check it offline: `grapheraser receipt verify FILE --key PUB`.",
        )
    if receipt.sequence > len(receipts) or receipts[receipt.sequence - 1] != receipt:
        raise VerificationError("the receipt is not in the log that is served here.")
