"""API keys: make one, list them, take one away."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from grapheraser.service.api.access import Key, Operator, Role
from grapheraser.service.api.forms import Form, Text
from grapheraser.service.api.parts import Given
from grapheraser.service.api.problems import Problem, responses, unknown

router = APIRouter(tags=["access"])


class KeyForm(Form):
    """Whose key it is, and what it allows."""

    name: Annotated[Text, Field(max_length=200)]
    role: Role


class KeyView(BaseModel):
    """A key, without its secret."""

    id: str
    name: str
    role: Role
    created: datetime
    revoked: datetime | None = None


class NewKey(KeyView):
    """A key that was just made."""

    key: str = Field(description="The key itself. It is shown this once and kept nowhere.")


@router.post(
    "/keys", status_code=201, summary="Make a key", responses=responses(401, 403, 413, 429, 503)
)
def create(form: KeyForm, key: Operator, parts: Given) -> NewKey:
    """Make an API key. Only its hash is kept."""
    del key
    made, text = parts.keys.create(form.name, form.role)
    return NewKey(**made.__dict__, key=text)


@router.get("/keys", summary="List keys", responses=responses(401, 403, 429, 503))
def list_keys(key: Operator, parts: Given) -> list[KeyView]:
    """All keys, without their secrets."""
    del key
    return [_view(found) for found in parts.keys.list()]


@router.delete(
    "/keys/{name}",
    status_code=204,
    summary="Revoke a key",
    responses=responses(401, 403, 404, 409, 429, 503),
)
def revoke(
    name: Annotated[str, Path(pattern="^[0-9a-f]{12}$", description="Id of a key.")],
    key: Operator,
    parts: Given,
) -> None:
    """Take a key away. It is refused at once here, and within seconds by other processes."""
    if name == key.id:
        raise Problem(409, "own-key", "a key can't revoke itself.")
    if not parts.keys.revoke(name):
        raise unknown("key")


def _view(key: Key) -> KeyView:
    return KeyView(**key.__dict__)
