"""Why a request failed, in words that name nobody: they are kept for good."""

from __future__ import annotations

from grapheraser.errors import (
    DatabaseError,
    EmptyEnsembleError,
    GraphEraserError,
    InputError,
    MissingExtraError,
    ServiceError,
    StorageFullError,
    StoreError,
    TrainingError,
    UnknownEdgeError,
    UnknownNodeError,
)
from grapheraser.service.requests import UPDATE

_WORDS: dict[type[BaseException], str] = {
    EmptyEnsembleError: "it would leave nothing to learn from; delete the run instead",
    UnknownNodeError: "it changes nodes that are not in the graph",
    UnknownEdgeError: "it changes edges that are not in the graph",
    InputError: "it does not fit the run",
    StorageFullError: "the disk is full",
    StoreError: "the run can't be written",
    DatabaseError: "the database can't be used",
    TrainingError: "training failed",
    MissingExtraError: "a package is not installed",
    MemoryError: "there was not enough memory",
}
NOTHING_THERE = "nothing of it is in the run: it never was, or it has been forgotten already"
NO_LABELS = "a run that predicts links keeps no labels"
NO_NAMES = "it names nodes by name, and those of this run have none"


def reason_of(error: BaseException) -> str:
    """What to say of an error: its kind, nothing of its values."""
    for kind in type(error).__mro__:
        if kind in _WORDS:
            return f"{_WORDS[kind]} ({type(error).__name__})"
    known = isinstance(error, GraphEraserError)
    return f"{'it failed' if known else 'something unexpected happened'} ({type(error).__name__})"


def is_final(error: BaseException, kind: str) -> bool:
    """Whether a request is to blame: trying it again would fail again.

    Of an erasure it is known that what it names is there, so if its input is refused, something
    else is missing, such as the device that the run was fitted on.
    """
    refused = isinstance(error, InputError) and kind == UPDATE
    return refused or isinstance(error, EmptyEnsembleError)


def trouble_of(error: BaseException) -> str:
    """What to tell the operator of an error that keeps the worker from working.

    Messages of the service, the store and the database name files and rows, and nobody.
    """
    if isinstance(error, ServiceError | StoreError):
        return error.message
    return reason_of(error)


def some_missing(missing: int, named: int) -> str:
    """What to say of a request that names some things that are not there."""
    return f"{missing} of {named} things that it names were not in the run"
