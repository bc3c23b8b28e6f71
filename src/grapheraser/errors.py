"""Every error that GraphEraser raises on purpose.

    GraphEraserError
    ├── InputError (ValueError)
    │   ├── ParameterError          an argument has the wrong type or is out of range
    │   ├── GraphError              the data of a graph is malformed
    │   ├── UnknownNodeError        a node id is not in the graph
    │   ├── UnknownEdgeError        an edge is not in the graph
    │   ├── NothingToForgetError    the request is empty, or its data is gone already
    │   └── PartitionError          a partition can't be made, or doesn't fit the graph
    ├── EmptyEnsembleError          the request would leave no trained shard
    ├── NotFittedError              predict, score, unlearn, insert or save before fit
    ├── DatasetError
    │   ├── UnknownDatasetError     no data set has that name
    │   └── DatasetNotFoundError    the files of a known data set are missing
    ├── MissingExtraError (ImportError)   an optional dependency is not installed
    ├── TrainingError               one or more shards failed to train
    ├── WorkerError                 a worker of a cluster was lost, or can't do its task
    ├── StoreError
    │   ├── RunNotFoundError        the folder holds no run
    │   ├── CorruptRunError         a file of the run is missing, truncated, altered or foreign
    │   ├── RunVersionError         the run has another version of the format
    │   ├── RunKindError            the run predicts something else
    │   ├── RunBusyError            another process is changing the run
    │   ├── RunExistsError          a save would overwrite another run
    │   ├── ReceiptLossError        a save would lose receipts of the run in that folder
    │   └── StorageFullError        the disk is full; the run is unchanged
    ├── ServiceError
    │   ├── UnknownRequestError     no request has that id
    │   ├── UnknownSubjectError     the subject map does not have that identity
    │   ├── ConflictError           the request can't be changed that way, or its key is taken
    │   └── DatabaseError           the database can't be reached, read or written
    └── VerificationError           a receipt, chain or tensor does not match

The message says what is wrong and what was found; ``hint`` says how to fix it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# An error names so many ids; where there are more, it counts them.
_MOST_NAMED = 10


def named(items: Sequence[object], last: str = "and") -> str:
    """Some items as a list in a sentence, and how many more there are.

    >>> named([3, 17, 21]), named(range(100))
    ('3, 17 and 21', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 90 more')
    """
    words = [str(item) for item in items[:_MOST_NAMED]]
    if len(items) > _MOST_NAMED:
        words.append(f"{len(items) - _MOST_NAMED:,} more")
    *first, end = words or ("",)
    return f"{', '.join(first)} {last} {end}" if first else end


class GraphEraserError(Exception):
    """Base of all errors raised by this package.

    What to do: read `hint`; catch this one to catch all.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n\nhint: {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        # The default loses the hint on the way through a process pool.
        return _rebuild, (type(self), self.message, self.__dict__)


def _rebuild(cls: type[GraphEraserError], message: str, state: dict[str, Any]) -> GraphEraserError:
    error = cls.__new__(cls)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    return error


class InputError(GraphEraserError, ValueError):
    """The input of the caller can't be used.

    What to do: correct what the message names; nothing was changed.
    """


class ParameterError(InputError):
    """An argument has the wrong type or is out of range.

    What to do: the message names the argument, what it may be and what it was.
    """

    @classmethod
    def of(cls, name: str, owner: str, constraint: str, got: object) -> ParameterError:
        """The error for a bad argument, in the one form of message."""
        return cls(f"'{name}' of {owner} must be {constraint}. Got {got!r}.")


class GraphError(InputError):
    """The data of a graph is malformed.

    What to do: put the data right where the message points; see docs/limits.md for what graphs
    can't have.
    """


class UnknownNodeError(InputError):
    """A node id is not in the graph; ``ids`` holds all that are not.

    What to do: look the ids up (``graph.contains``), or pass ``missing="skip"`` to `unlearn`.
    """

    ids: tuple[int, ...] = ()

    @classmethod
    def of(cls, ids: Sequence[int], asked: int) -> UnknownNodeError:
        """The error for these of so many ids."""
        which = f"node {ids[0]} is" if len(ids) == 1 else f"nodes {named(ids)} are"
        error = cls(
            f"{which} not in the graph ({len(ids)} of {asked} ids are unknown).",
            hint="it was never in the graph, or it has been forgotten already.",
        )
        error.ids = tuple(ids)
        return error


class UnknownEdgeError(InputError):
    """An edge is not in the graph; ``edges`` holds all that are not.

    What to do: look the pairs up (``graph.has_edges``), or pass ``missing="skip"`` to `unlearn`.
    """

    edges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, edges: Sequence[tuple[int, int]], asked: int) -> UnknownEdgeError:
        """The error for these of so many edges."""
        error = cls(
            f"there is no edge {named([f'{u}-{v}' for u, v in edges], 'or')} in the graph "
            f"({len(edges)} of {asked} requested edges do not exist).",
            hint="it never existed, or it has been forgotten already.",
        )
        error.edges = tuple(edges)
        return error


class NothingToForgetError(InputError):
    """The request is empty, or its data is gone already.

    What to do: nothing; whatever it named is not there.
    """


class PartitionError(InputError):
    """A partition can't be made, or doesn't fit the graph.

    What to do: ask for fewer shards, a larger ``gamma``, or another method.
    """


class EmptyEnsembleError(GraphEraserError):
    """The request would leave no trained shard.

    What to do: keep some labelled nodes, or delete the run instead.
    """


class NotFittedError(GraphEraserError, ValueError, AttributeError):
    """The eraser has not been fitted yet.

    What to do: call `fit`, or `load` a run.
    """


class DatasetError(GraphEraserError):
    """A data set can't be loaded.

    What to do: check its files, and `GRAPHERASER_DATA`.
    """


class UnknownDatasetError(DatasetError):
    """No data set has that name.

    What to do: choose one that ``grapheraser datasets`` lists, or give the path of a file.
    """


class DatasetNotFoundError(DatasetError):
    """The files of a known data set are missing.

    What to do: let it be downloaded, or put its files below `GRAPHERASER_DATA`.
    """


class MissingExtraError(GraphEraserError, ImportError):
    """An optional dependency is not installed.

    What to do: run the ``pip install`` of the hint.
    """

    @classmethod
    def of(cls, package: str, extra: str, purpose: str) -> MissingExtraError:
        """The error for a missing extra, with the command that installs it."""
        return cls(
            f"{purpose} needs the package '{package}', which is not installed.",
            hint=f"in a checkout of GraphEraser: pip install '.[{extra}]'",
        )


class TrainingError(GraphEraserError):
    """One or more shards failed to train; ``failures`` maps each shard to its error.

    What to do: read the errors by shard; where the loss diverged, lower the learning rate.
    """

    def __init__(self, failures: dict[int, BaseException], *, hint: str | None = None) -> None:
        lines = [f"  shard {shard}: {type(e).__name__}: {e}" for shard, e in failures.items()]
        super().__init__("training failed:\n" + "\n".join(lines), hint=hint)
        self.failures = failures


class WorkerError(GraphEraserError):
    """A worker of a cluster was lost, ran out of memory, or would compute other bits.

    What to do: give tasks more memory, or all nodes the same versions; see docs/clusters.md.
    """


class StoreError(GraphEraserError):
    """A run folder can't be read or written.

    What to do: check the path and its permissions.
    """


class RunNotFoundError(StoreError):
    """The folder holds no run.

    What to do: check the path; ``grapheraser fit DATASET --out RUN`` makes a run.
    """


class CorruptRunError(StoreError):
    """A file of the run is missing, truncated, altered or foreign.

    What to do: restore the run from a backup, or fit it again with ``--replace``.
    """


class RunVersionError(StoreError):
    """The run has another version of the format.

    What to do: use the release that wrote it, or fit it again with ``--replace``.
    """


class RunKindError(StoreError):
    """The run predicts something else: links instead of classes, or the other way round.

    What to do: load it with the other class, `LinkEraser` or `GraphEraser`.
    """


class RunBusyError(StoreError):
    """Another process is changing the run.

    What to do: wait until that is done; reading needs no lock.
    """


class RunExistsError(StoreError):
    """A save would overwrite another run.

    What to do: choose another folder, or pass ``replace=True`` (``--replace``).
    """


class ReceiptLossError(StoreError):
    """A save would lose receipts of the run in that folder.

    What to do: load the run again, and repeat the change on what is there now.
    """


class StorageFullError(StoreError):
    """The disk is full; the run is unchanged.

    What to do: free space, and repeat the change.
    """


class ServiceError(GraphEraserError):
    """The service can't do what it was asked.

    What to do: read the message; the log of the service has the request's id.
    """


class UnknownRequestError(ServiceError):
    """No request has that id.

    What to do: ``grapheraser requests list`` shows all ids.
    """


class UnknownSubjectError(ServiceError):
    """The subject map does not have that identity.

    What to do: load it into the subject map, or name the nodes themselves.
    """


class ConflictError(ServiceError):
    """The request can't be changed that way, or its idempotency key was used for another.

    What to do: look at its state first; take a new key for a new request.
    """


class DatabaseError(ServiceError):
    """The database can't be reached, read or written.

    What to do: check its URL and that it runs; then submit again with the same idempotency key.
    """


class VerificationError(GraphEraserError):
    """A receipt, chain or tensor does not match.

    What to do: don't rely on it: the message says what differs from what was claimed.
    """
