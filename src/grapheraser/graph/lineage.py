"""Which pages of a graph are others than in the graph that it was made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

_REMEMBERED = 16


@dataclass(frozen=True, eq=False)
class Lineage:
    """What has changed since some earlier versions of a sequence of pages, of the same length.

    Attributes:
        token: stands for this version, and holds nothing of it.
        before: tokens of earlier versions, the latest first, and the numbers of the pages that are
            others than there.
    """

    token: object = field(default_factory=object)
    before: tuple[tuple[object, frozenset[int]], ...] = ()

    def changed(self, numbers: Iterable[int]) -> Lineage:
        """The lineage of the version with other pages in the place of these."""
        new = frozenset(numbers)
        longer = ((token, old | new) for token, old in self.before[: _REMEMBERED - 1])
        return Lineage(before=((self.token, new), *longer))

    def since(self, token: object) -> frozenset[int] | None:
        """The numbers of the pages that are others than in that version; None where unknown."""
        if token is self.token:
            return frozenset()
        return next((numbers for known, numbers in self.before if known is token), None)

    def __reduce__(self) -> tuple[type[Lineage], tuple[()]]:
        """Tokens mean nothing to another process."""
        return Lineage, ()
