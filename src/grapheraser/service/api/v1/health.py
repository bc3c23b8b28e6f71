"""Whether the service is alive, and whether it is ready to answer. Both need no key."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from grapheraser.service.api.parts import Given
from grapheraser.service.api.problems import Problem, responses

router = APIRouter(tags=["health"])


class Alive(BaseModel):
    """The service answers."""

    status: str = "alive"


class Ready(BaseModel):
    """What works."""

    status: str = "ready"
    checks: dict[str, bool]


@router.get("/health", summary="Is it alive?")
async def health() -> Alive:
    """Answers whenever the process does."""
    return Alive()


@router.get("/ready", summary="Is it ready?", responses=responses(503))
def ready(parts: Given) -> Ready:
    """Whether database, model and worker are there; 503 and which of them is not."""
    checks = parts.checks()
    if not all(checks.values()):
        missing = ", ".join(name for name, works in checks.items() if not works)
        raise Problem(503, "not-ready", f"not ready: {missing}.", members={"checks": checks})
    return Ready(checks=checks)
