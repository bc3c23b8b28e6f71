"""Why a request failed, in words that name nobody: they are kept for good."""

from __future__ import annotations

from grapheraser.errors import (
    DatabaseError,
    EmptyEnsembleError,
    GraphEraserError,
    InputError,
    MissingExtraError,
    StorageFullError,
    StoreError,
    TrainingError,
    UnknownEdgeError,
    UnknownNodeError,
)

_WORDS: dict[type[BaseException], str] = {
    EmptyEnsembleError: "it would leave nothing to learn from; delete the run instead",
    UnknownNodeError: "it changes nodes that are not in the graph",
    UnknownEdgeError: "it changes edges that are not in the graph",
    InputError: "it does not fit the graph",
    StorageFullError: "the disk is full",
    StoreError: "the run can't be written",
    DatabaseError: "the database can't be used",
    TrainingError: "training failed",
    MissingExtraError: "a package is not installed",
    MemoryError: "there was not enough memory",
}
NOTHING_THERE = "nothing of it is in the run: it never was, or it has been forgotten already"
NO_LABELS = "a run that predicts links keeps no labels"


def reason_of(error: BaseException) -> str:
    """What to say of an error: its kind, nothing of its values."""
    for kind in type(error).__mro__:
        if kind in _WORDS:
            return f"{_WORDS[kind]} ({type(error).__name__})"
    known = isinstance(error, GraphEraserError)
    return f"{'it failed' if known else 'something unexpected happened'} ({type(error).__name__})"


def is_final(error: BaseException) -> bool:
    """Whether trying again, with nothing else changed, would fail again."""
    return isinstance(error, InputError | EmptyEnsembleError)


def some_missing(missing: int, named: int) -> str:
    """What to say of a request that names some things that are not there."""
    return f"{missing} of {named} things that it names were not in the run"
