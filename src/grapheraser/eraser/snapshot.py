"""A snapshot: one published state of an eraser, with its settings and receipts, as one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from grapheraser.eraser.arithmetic import made_with
from grapheraser.eraser.seals import Seals, document, name_of_run
from grapheraser.eraser.settings import Settings
from grapheraser.eraser.state import State
from grapheraser.eraser.task import Task
from grapheraser.receipts import Ends, Receipt, Receipts, digest_of


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One published state, with everything that a fit or a request leaves behind.

    An eraser holds one and replaces it in one step: a caller that reads it once sees one state.
    """

    task: Task  # what the run is about
    arguments: Mapping[str, Any]  # those of the fit, by name
    settings: Settings  # the same, resolved
    state: State  # what was trained
    configuration: dict[str, Any]  # the settings as plain JSON
    receipts: Sequence[Receipt]  # one per change since the fit, oldest first
    ends: Ends  # where the receipts begin and end, and the log of them
    seals: Seals  # what hides this state in the receipts
    document: Mapping[str, Any]  # all that this state consists of; see `seals.document`
    # The manifest of a run that was read and not compared with its last receipt yet; see
    # `verify.check_loaded`.
    loaded: Mapping[str, Any] | None = None

    @classmethod
    def first(
        cls,
        task: Task,
        arguments: Mapping[str, Any],
        settings: Settings,
        state: State,
        configuration: dict[str, Any],
        made: dict[str, str] | None = None,
    ) -> Self:
        """Return the snapshot of a fit, with no receipts yet; ``made``: with what, if elsewhere."""
        # Digested now, so that the first request does not wait for it.
        seals = Seals.fresh(state.graph.ids, made_with(settings) if made is None else made)
        described = document(state, configuration, seals)
        digest = digest_of(described)
        ends = Ends(name_of_run(), digest, digest_of(configuration), digest)
        kept = (configuration, Receipts(), ends, seals, described)
        return cls(task, arguments, settings, state, *kept)

    def redacted(self) -> Self:
        """Return the snapshot without what only the caller of the last change is told."""
        return replace(self, receipts=Receipts.of(self.receipts).redacted())
