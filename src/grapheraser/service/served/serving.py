"""The served version of a run, replaced in one step."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.eraser import Eraser, load_eraser
from grapheraser.eraser.task import Question
from grapheraser.errors import RunKindError
from grapheraser.store import load_receipts

Model: TypeAlias = Eraser
Watcher: TypeAlias = "Callable[[Published, Published], None]"
_LOG = logging.getLogger(__name__)


class Published(NamedTuple):
    """One version of a run: an eraser that nobody changes, and the size of its log.

    ``answers`` are the posteriors of all nodes, in the order of the graph; None: not precomputed.
    """

    model: Model
    version: int
    answers: NDArray[np.float32] | None = None

    def values(self, ids: ArrayLike) -> NDArray[np.float32]:
        """Return what the run says of nodes ``[m]``, pairs ``[m, 2]`` or facts ``[m, 3]``."""
        if self.answers is not None:
            return self.answers[self.model.graph_.positions(ids)]
        return question_of(self.model).values(self.model, ids)


class Served:
    """The version that predictions are made with; read `now` once for each answer.

    ``answered`` is how many nodes a graph may have for all posteriors to be computed before a
    version is served; they have the bits of any other prediction.
    """

    def __init__(self, path: Path, own: Mapping[str, Any] | None = None, answered: int = 0) -> None:
        self.path, self.own, self._answered = path, dict(own or {}), answered
        self._watchers: list[Watcher] = []
        self._current = self._loaded()

    @property
    def now(self) -> Published:
        """The published version."""
        return self._current

    @property
    def run(self) -> str:
        """The name of the run's log."""
        return load_receipts(self.path)[1].run

    @property
    def task(self) -> str:
        """The kind of prediction in a word: ``classes``, ``links``, ..."""
        return task_word(self._current.model)

    def publish(self, model: Model) -> None:
        """Serve another state from now on; answers that were begun keep theirs."""
        if not _is_same(model, self._current):
            self._take(self._freeze(model))

    def refresh(self, answers: NDArray[np.float32] | None = None) -> bool:
        """Serve the state in the folder if another process has changed it; tell whether it has.

        ``answers`` are its posteriors of all nodes, where that process has them.
        """
        if self.size_on_disk() == self._current.version:
            return False
        self._take(self._loaded(answers))
        return True

    def watch(self, watcher: Watcher) -> None:
        """Call ``watcher`` after every switch, with the old and the new version."""
        self._watchers.append(watcher)

    def _take(self, published: Published) -> None:
        """Switch to a version. Nothing else does."""
        before, self._current = self._current, published
        for watcher in self._watchers:
            try:
                watcher(before, published)
            except Exception as error:
                _LOG.warning("a version was not noted: %s", type(error).__name__)

    def size_on_disk(self) -> int:
        """Return the size of the log of the run in the folder."""
        return load_receipts(self.path)[1].receipts

    @property
    def question(self) -> Question:
        """The question that the run answers; refuses a task that answers none over the network."""
        return question_of(self._current.model)

    def predict(self, ids: ArrayLike) -> tuple[NDArray[np.float32], int]:
        """Return what the run says of nodes ``[m]`` or pairs ``[m, 2]``, and by which version."""
        published = self._current
        return published.values(ids), published.version

    def _loaded(self, answers: NDArray[np.float32] | None = None) -> Published:
        return self._freeze(load_eraser(self.path, **self.own), answers)

    def _freeze(self, model: Model, answers: NDArray[np.float32] | None = None) -> Published:
        """Freeze a state; later changes of ``model`` do not reach it."""
        frozen = copy.copy(model)
        question = frozen.task.question(frozen.graph_)
        few = frozen.graph_.num_nodes <= self._answered
        if (
            answers is None
            and few
            and question is not None
            and question.ends == 1
            and question.of_nodes
            and frozen.graph_.types is None
        ):
            answers = question.values(frozen, frozen.graph_.ids)
        return Published(frozen, len(frozen.receipts_), answers)


def question_of(model: Model) -> Question:
    """Return the question that a run answers; refuse a task that answers none here."""
    if (question := model.task.question(model.graph_)) is None:
        raise RunKindError(f"a run of task '{task_word(model)}' is not asked over the network.")
    return question


def task_word(model: Model) -> str:
    """Return the kind of prediction of a run in a word."""
    return "classes" if model.classifier is not None else model.task.name


def _is_same(model: Model, published: Published) -> bool:
    """Tell whether a state is the one that is published."""
    old, new = published.model.receipts_, model.receipts_
    if len(old) != len(new) or published.model.log_name_ != model.log_name_:
        return False
    return len(new) == 0 or old[-1].digest == new[-1].digest
