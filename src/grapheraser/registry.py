"""Registries of parts that users choose by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

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
