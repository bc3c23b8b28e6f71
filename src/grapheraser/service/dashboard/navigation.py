"""The entries of the dashboard's navigation, and which roles see them."""

from __future__ import annotations

from dataclasses import dataclass

from grapheraser.service.api.access import Role

HOME = "/dashboard"


@dataclass(frozen=True)
class Entry:
    """A page that the navigation leads to.

    Attributes:
        name: of its module, template and script.
        title: what people read.
        roles: that may see it.
    """

    name: str
    title: str
    roles: frozenset[Role]

    @property
    def path(self) -> str:
        return HOME if self.name == "overview" else f"{HOME}/{self.name}"


_ALL = frozenset(Role)
ENTRIES = (
    Entry("overview", "Overview", _ALL),
    Entry("graph", "Graph", frozenset({Role.OPERATOR})),
    Entry("requests", "Requests", _ALL - {Role.READER}),
    Entry("shards", "Shards", frozenset({Role.AUDITOR, Role.OPERATOR})),
    Entry("audit", "Audit", frozenset({Role.AUDITOR, Role.OPERATOR})),
)


def entry_named(name: str) -> Entry:
    """An entry by its name."""
    return next(entry for entry in ENTRIES if entry.name == name)


def entries_for(role: Role) -> list[Entry]:
    """What somebody with this role is offered."""
    return [entry for entry in ENTRIES if role in entry.roles]
