"""Parts by name: registries to choose from, and ``module:qualname`` of a user's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any, Generic, TypeVar

from grapheraser.errors import ParameterError

T = TypeVar("T")


class Registry(Generic[T]):
    """Parts of one kind by name; ``kind`` appears in messages."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def add(self, name: str, entry: T) -> T:
        """Register ``entry``; raise `ParameterError` if the name is taken."""
        if name in self._entries:
            raise ParameterError(f"{self.kind} '{name}' is registered already.")
        self._entries[name] = entry
        return entry

    def get(self, name: str) -> T:
        """Return the entry of that name; the error for an unknown one lists the choices."""
        if not isinstance(name, str) or name not in self._entries:
            raise ParameterError(f"unknown {self.kind} {name!r}. Choose from: {', '.join(self)}.")
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries


def name_of(part: Any) -> str:
    """Return ``module:qualname`` of a function, a class, or the type of any other object."""
    if isinstance(part, partial):
        return name_of(part.func)
    what = part if callable(part) and hasattr(part, "__qualname__") else type(part)
    return f"{what.__module__}:{what.__qualname__}"


def import_part(name: str, owner: str) -> Any:
    """Import what ``module:qualname`` names; this runs the module's code.

    Args:
        name: of the part.
        owner: who asked for it, for the message.
    """
    module, _, qualname = name.partition(":")
    if not module or not qualname or "<" in qualname:
        raise ParameterError(f"{owner} must be package.module:Name. Got {name!r}.")
    try:
        part = import_module(module)
        for attribute in qualname.split("."):
            part = getattr(part, attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ParameterError(
            f"{owner}: {name!r} can't be imported ({error}).",
            hint="name it as package.module:Name; modules are looked for in the current folder "
            "and on Python's path.",
        ) from error
    return part


def check_importable(owner: str, part: Any) -> None:
    """Refuse a function or class that its name does not lead back to."""
    what = part.func if isinstance(part, partial) else part
    module, _, qualname = name_of(what).partition(":")
    found: Any = sys.modules.get(module)
    for attribute in qualname.split("."):
        found = getattr(found, attribute, None)
    same = found is what or (not hasattr(what, "__qualname__") and found is type(what))
    if not same:
        raise ParameterError(
            f"{owner} can't be written into a run: {module}:{qualname} does not lead back to it.",
            hint="define it with a name of its own at the top of a module, and pass it again to "
            "GraphEraser.load.",
        )
