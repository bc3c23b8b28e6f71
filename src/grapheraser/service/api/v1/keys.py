"""API keys: make one, list them, revoke one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from grapheraser.service.api.access import OPERATORS, Operator, route
from grapheraser.service.api.forms import Form, Text
from grapheraser.service.api.keys import Key, Role
from grapheraser.service.api.parts import Given
from grapheraser.service.api.problems import Problem, unknown

router = APIRouter(tags=["access"])


class KeyForm(Form):
    """A key to make, with its owner and role."""

    name: Annotated[Text, Field(max_length=200)]
    role: Role


class NewKey(Key):
    """A key that was just made."""

    key: str = Field(description="The key itself. It is shown this once and kept nowhere.")


@router.post("/keys", status_code=201, **route("Make a key", OPERATORS, 413))
def create(form: KeyForm, parts: Given) -> NewKey:
    """Make an API key. Only its hash is kept."""
    made, text = parts.keys.create(form.name, form.role)
    return NewKey(**made.model_dump(), key=text)


@router.get("/keys", **route("List keys", OPERATORS))
def list_keys(parts: Given) -> list[Key]:
    """All keys, without their secrets."""
    return parts.keys.list()


@router.delete("/keys/{name}", status_code=204, **route("Revoke a key", None, 404, 409))
def revoke(
    name: Annotated[str, Path(pattern="^[0-9a-f]{12}$", description="Id of a key.")],
    key: Operator,
    parts: Given,
) -> None:
    """Revoke a key. It is refused at once here, and within seconds by other processes."""
    if name == key.id:
        raise Problem(409, "own-key", "a key can't revoke itself.")
    if not parts.keys.revoke(name):
        raise unknown("key")
