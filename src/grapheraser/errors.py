"""Every error that GraphEraser raises on purpose.

    GraphEraserError
    ├── InputError (ValueError)
    │   ├── ParameterError          an argument is out of its range or of the wrong type
    │   ├── GraphError              the graph's own data is malformed
    │   ├── UnknownNodeError        a node id that is not in the graph
    │   ├── UnknownEdgeError        an edge that is not in the graph
    │   ├── NothingToForgetError    an empty request, or one whose data is already gone
    │   ├── AlreadyForgottenError   this very request was carried out before
    │   └── PartitionError          a partition that can't be made, or doesn't fit the graph
    ├── EmptyEnsembleError          the request would leave no trained shard at all
    ├── NotFittedError              predict, score, unlearn, insert or save before fit
    ├── DatasetError
    │   ├── UnknownDatasetError     no such name
    │   └── DatasetNotFoundError    a known name whose files are nowhere to be found
    ├── MissingExtraError (ImportError)   an optional dependency is not installed
    ├── TrainingError               one or more shards failed to train
    ├── StoreError
    │   ├── RunNotFoundError        no run in that folder
    │   ├── CorruptRunError         a file is missing, truncated, altered or foreign
    │   ├── RunVersionError         written by another version of the format
    │   ├── RunBusyError            another process is changing this run
    │   ├── ReceiptLossError        a save would lose receipts of the run that is there
    │   └── StorageFullError        the disk is full; the run is as it was
    └── VerificationError           a receipt, chain or tensor is not what it should be

The text of an error says what was wrong and what was found; ``hint`` says what to do about it.
"""

from __future__ import annotations

from typing import Any


class GraphEraserError(Exception):
    """Base of all errors raised by this package."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n\nhint: {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would lose the hint on its way through a process pool.
        return _rebuild, (type(self), self.message, self.__dict__)


def _rebuild(cls: type[GraphEraserError], message: str, state: dict[str, Any]) -> GraphEraserError:
    error = cls.__new__(cls)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    return error


class InputError(GraphEraserError, ValueError):
    """What the caller handed in can't be used."""


class ParameterError(InputError):
    """An argument is out of its range or of the wrong type."""

    @classmethod
    def of(cls, name: str, owner: str, constraint: str, got: object) -> ParameterError:
        """The one form of message for a bad parameter."""
        return cls(f"'{name}' of {owner} must be {constraint}. Got {got!r}.")


class GraphError(InputError):
    """The graph's own data is malformed."""


class UnknownNodeError(InputError):
    """A node id that is not in the graph."""


class UnknownEdgeError(InputError):
    """An edge that is not in the graph."""


class NothingToForgetError(InputError):
    """An empty request, or one whose data is already gone."""


class AlreadyForgottenError(InputError):
    """This very request was carried out before."""


class PartitionError(InputError):
    """A partition that can't be made, or doesn't fit the graph."""


class EmptyEnsembleError(GraphEraserError):
    """The request would leave no trained shard at all."""


class NotFittedError(GraphEraserError, ValueError, AttributeError):
    """The eraser has not been fitted yet."""


class DatasetError(GraphEraserError):
    """A data set can't be had."""


class UnknownDatasetError(DatasetError):
    """No data set of that name is known."""


class DatasetNotFoundError(DatasetError):
    """A known data set whose files are nowhere to be found."""


class MissingExtraError(GraphEraserError, ImportError):
    """An optional dependency is not installed."""

    @classmethod
    def of(cls, package: str, extra: str, purpose: str) -> MissingExtraError:
        """The one form of message for a missing extra."""
        return cls(
            f"{purpose} needs the package '{package}', which is not installed.",
            hint=f"pip install 'grapheraser[{extra}]'",
        )


class TrainingError(GraphEraserError):
    """One or more shards failed to train; ``failures`` maps each shard to its error."""

    def __init__(self, failures: dict[int, BaseException]) -> None:
        lines = [f"  shard {shard}: {type(e).__name__}: {e}" for shard, e in failures.items()]
        super().__init__("training failed:\n" + "\n".join(lines))
        self.failures = failures


class StoreError(GraphEraserError):
    """A run folder can't be read or written."""


class RunNotFoundError(StoreError):
    """There is no run in that folder."""


class CorruptRunError(StoreError):
    """A file of the run is missing, truncated, altered or foreign."""


class RunVersionError(StoreError):
    """The run was written by another version of the format."""


class RunBusyError(StoreError):
    """Another process is changing this run."""


class ReceiptLossError(StoreError):
    """A save would lose receipts of the run that is there."""


class StorageFullError(StoreError):
    """The disk is full; the run is as it was."""


class VerificationError(GraphEraserError):
    """A receipt, chain or tensor is not what it should be."""
