"""Reasons why a request failed, in words that name nobody: they are kept for good."""

from __future__ import annotations

from grapheraser import errors
from grapheraser.service.queue.requests import UPDATE

_WORDS: dict[type[BaseException], str] = {
    errors.EmptyEnsembleError: "it would leave nothing to learn from; delete the run instead",
    errors.UnknownNodeError: "it changes nodes that are not in the graph",
    errors.UnknownEdgeError: "it changes edges that are not in the graph",
    errors.InputError: "it does not fit the run",
    errors.StorageFullError: "the disk is full",
    errors.StoreError: "the run can't be written",
    errors.DatabaseError: "the database can't be used",
    errors.TrainingError: "training failed",
    errors.MissingExtraError: "a package is not installed",
    MemoryError: "there was not enough memory",
}
NOTHING_THERE = "nothing of it is in the run: it never was, or it has been forgotten already"
OTHER_KIND = "it names a kind of data that a run of this task does not have"
NO_NAMES = "it names nodes by name, and those of this run have none"


def reason_of(error: BaseException) -> str:
    """Describe an error by its kind, without its values."""
    for kind in type(error).__mro__:
        if kind in _WORDS:
            return f"{_WORDS[kind]} ({type(error).__name__})"
    known = isinstance(error, errors.GraphEraserError)
    return f"{'it failed' if known else 'something unexpected happened'} ({type(error).__name__})"


def is_final(error: BaseException, kind: str) -> bool:
    """Tell whether a request is to blame, and would fail again.

    Of an erasure it is known that what it names is there, so if its input is refused, something
    else is missing, such as the device that the run was fitted on.
    """
    refused = isinstance(error, errors.InputError) and kind == UPDATE
    return refused or isinstance(error, errors.EmptyEnsembleError)


def trouble_of(error: BaseException) -> str:
    """Describe an error that keeps the worker from working to the operator.

    Messages of the service, the store and the database name files and rows, and nobody.
    """
    if isinstance(error, errors.ServiceError | errors.StoreError):
        return error.message
    return reason_of(error)


def some_missing(missing: int, named: int) -> str:
    """Describe a request that names some things that are not there."""
    return f"{missing} of {named} things that it names were not in the run"
