"""What is served: the published version of a run, replaced in one step."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.eraser import GraphEraser
from grapheraser.errors import RunKindError
from grapheraser.links import LinkEraser
from grapheraser.links.loading import load_eraser
from grapheraser.store import load_receipts

Model: TypeAlias = GraphEraser | LinkEraser
Watcher: TypeAlias = "Callable[[Published, Published], None]"
_LOG = logging.getLogger(__name__)


class Published(NamedTuple):
    """One version of a run.

    Attributes:
        model: an eraser that nobody changes.
        version: size of the run's log.
        answers: posteriors of all nodes, in the order of the graph; None: worked out when asked.
    """

    model: Model
    version: int
    answers: NDArray[np.float32] | None = None


class Served:
    """The version that predictions are made with; read `now` once for each answer.

    Args:
        path: the folder of the run.
        own: parts of the user's own, by argument of `GraphEraser.load`.
        answered: how many nodes a graph may have for the posteriors of all of them to be worked
            out before a version is served. They have the bits of any other prediction.
    """

    def __init__(self, path: Path, own: Mapping[str, Any] | None = None, answered: int = 0) -> None:
        self.path, self.own, self._answered = path, dict(own or {}), answered
        self._watchers: list[Watcher] = []
        self._now = self._loaded()

    @property
    def now(self) -> Published:
        """The published version."""
        return self._now

    @property
    def run(self) -> str:
        """The name of the run's log."""
        return load_receipts(self.path)[1].run

    @property
    def is_for_links(self) -> bool:
        return isinstance(self._now.model, LinkEraser)

    def publish(self, model: Model) -> None:
        """Serve another state from now on; answers that were begun keep theirs."""
        if not _is_same(model, self._now):
            self._take(self._published(model))

    def refresh(self, answers: NDArray[np.float32] | None = None) -> bool:
        """Serve what is in the folder, where another process has changed it; says whether so.

        Args:
            answers: posteriors of all nodes by what is there, where that process has them.
        """
        if self.size_on_disk() == self._now.version:
            return False
        self._take(self._loaded(answers))
        return True

    def watch(self, watcher: Watcher) -> None:
        """Have somebody told of every switch from one version to the next, once it is made."""
        self._watchers.append(watcher)

    def _take(self, published: Published) -> None:
        """Switch to a version: the one place where that is done."""
        before, self._now = self._now, published
        for watcher in self._watchers:
            try:
                watcher(before, published)
            except Exception as error:
                _LOG.warning("a version was not noted: %s", type(error).__name__)

    def size_on_disk(self) -> int:
        """Size of the log of the run in the folder."""
        return load_receipts(self.path)[1].receipts

    def predict_proba(self, nodes: ArrayLike) -> tuple[NDArray[np.float32], int]:
        """Posteriors ``[len(nodes), num_classes]`` and the version that they are of."""
        model, version, answers = self._now
        if not isinstance(model, GraphEraser):
            raise RunKindError("this run predicts links, not the classes of nodes.")
        if answers is None:
            return model.predict_proba(nodes), version
        return answers[model.graph_.positions(nodes)], version

    def predict_links(self, pairs: ArrayLike) -> tuple[NDArray[np.float32], int]:
        """The probability of a link for each pair ``[m, 2]``, and the version that it is of."""
        model, version, _ = self._now
        if not isinstance(model, LinkEraser):
            raise RunKindError("this run predicts the classes of nodes, not links.")
        return model.predict_proba(pairs), version

    def _loaded(self, answers: NDArray[np.float32] | None = None) -> Published:
        return self._published(load_eraser(self.path, **self.own), answers)

    def _published(self, model: Model, answers: NDArray[np.float32] | None = None) -> Published:
        """A state as it is now; what happens to ``model`` from now on does not change it."""
        frozen = copy.copy(model)
        wanted = isinstance(frozen, GraphEraser) and frozen.graph_.num_nodes <= self._answered
        if wanted and answers is None:
            answers = frozen.predict_proba(frozen.graph_.ids)
        return Published(frozen, len(frozen.receipts_), answers)


def _is_same(model: Model, published: Published) -> bool:
    """Whether a state is the one that is published."""
    old, new = published.model.receipts_, model.receipts_
    if len(old) != len(new) or published.model.log_name_ != model.log_name_:
        return False
    return len(new) == 0 or old[-1].digest == new[-1].digest
