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

The message says what is wrong and what was found; ``hint`` says how to fix it. Each has a ``code``,
which never changes: ``grapheraser explain GE-011`` says more about it.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, ClassVar

# An error names so many ids; where there are more, it counts them.
_MAX_NAMED = 10


def named(items: Sequence[object], last: str = "and") -> str:
    """Some items as a list in a sentence, and how many more there are.

    >>> named([3, 17, 21]), named(range(100))
    ('3, 17 and 21', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 90 more')
    """
    words = [str(item) for item in items[:_MAX_NAMED]]
    if len(items) > _MAX_NAMED:
        words.append(f"{len(items) - _MAX_NAMED:,} more")
    *first, end = words or ("",)
    return f"{', '.join(first)} {last} {end}" if first else end


class GraphEraserError(Exception):
    """Base of all errors raised by this package.

    Example: ``except ge.errors.GraphEraserError as error: print(error.code, error.hint)``

    What to do: read `hint`; catch this one to catch all.
    """

    code: ClassVar[str] = "GE-001"

    def __init_subclass__(cls, code: int | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if code is not None:  # a class of somebody else's has the code of its base
            cls.code = f"GE-{code:03}"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n\nhint: {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        # The default loses the hint on the way through a process pool.
        return _rebuild, (type(self), self.message, self.__dict__)


def explained() -> dict[str, tuple[type[GraphEraserError], str]]:
    """Return every error by its code, with its docstring as plain paragraphs."""
    found = [GraphEraserError]
    for cls in found:  # grows while it is walked
        found += [child for child in cls.__subclasses__() if child.__module__ == __name__]
    return {cls.code: (cls, inspect.cleandoc(cls.__doc__ or "")) for cls in found}


def _rebuild(cls: type[GraphEraserError], message: str, state: dict[str, Any]) -> GraphEraserError:
    error = cls.__new__(cls)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    return error


class InputError(GraphEraserError, ValueError, code=10):
    """The input of the caller can't be used.

    Example: a body of a request that names nodes as words where the graph has numbers.

    What to do: correct what the message names; nothing was changed.
    """


class ParameterError(InputError, code=11):
    """An argument has the wrong type or is out of range.

    Example: ``ge.GraphEraser(num_shards=0)``: shards are counted from 1 on.

    What to do: the message names the argument, what it may be and what it was.
    """

    @classmethod
    def of(cls, name: str, owner: str, constraint: str, got: object) -> ParameterError:
        """The error for a bad argument, in the one form of message."""
        return cls(f"'{name}' of {owner} must be {constraint}. Got {got!r}.")


class GraphError(InputError, code=12):
    """The data of a graph is malformed.

    Example: features with a NaN in row 3, or an edge to a node that has no row.

    What to do: put the data right where the message points; see docs/limits.md for what graphs
    can't have.
    """


class UnknownNodeError(InputError, code=13):
    """A node id is not in the graph; ``ids`` holds all that are not.

    Example: ``eraser.unlearn(ge.Nodes([12]))`` twice: the second time 12 is gone.

    What to do: look the ids up (``graph.contains``), or pass ``missing="skip"`` to `unlearn`.
    """

    ids: tuple[int, ...] = ()

    @classmethod
    def of(cls, ids: Sequence[int], asked: int) -> UnknownNodeError:
        """The error for these of so many ids."""
        said = str(ids[0])[:5] in ("user ", "item ")  # it says itself what it is
        noun = "" if said else "node " if len(ids) == 1 else "nodes "
        error = cls(
            f"{noun}{named(ids)} {'is' if len(ids) == 1 else 'are'} not in the graph "
            f"({len(ids)} of {asked} ids are unknown).",
            hint="it was never in the graph, or it has been forgotten already.",
        )
        error.ids = tuple(ids)
        return error


class UnknownEdgeError(InputError, code=14):
    """An edge is not in the graph; ``edges`` holds all that are not.

    Example: ``ge.Edges([(3, 17)])`` where 3 and 17 are no neighbours.

    What to do: look the pairs up (``graph.has_edges``), or pass ``missing="skip"`` to `unlearn`.
    """

    edges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, edges: Sequence[tuple[int, int]], asked: int) -> UnknownEdgeError:
        """The error for these of so many edges."""
        noun, pairs = "edge", [f"{u}-{v}" for u, v in edges]
        if str(edges[0][0])[:5] in ("user ", "item "):  # they say themselves what they are
            noun = "interaction"
            pairs = ["-".join(sorted(map(str, edge), reverse=True)) for edge in edges]
        error = cls(
            f"there is no {noun} {named(pairs, 'or')} in the graph "
            f"({len(edges)} of {asked} requested {noun}s do not exist).",
            hint="it never existed, or it has been forgotten already.",
        )
        error.edges = tuple(edges)
        return error


class NothingToForgetError(InputError, code=15):
    """The request is empty, or its data is gone already.

    Example: ``ge.Nodes([])``, or ``missing="skip"`` where nothing is left to skip.

    What to do: nothing; whatever it named is not there.
    """


class PartitionError(InputError, code=16):
    """A partition can't be made, or doesn't fit the graph.

    Example: ``num_shards=100`` with 40 training nodes.

    What to do: ask for fewer shards, a larger ``gamma``, or another method.
    """


class EmptyEnsembleError(GraphEraserError, code=20):
    """The request would leave no trained shard.

    Example: a request that names every training node.

    What to do: keep some labelled nodes, or delete the run instead.
    """


class NotFittedError(GraphEraserError, ValueError, AttributeError, code=21):
    """The eraser has not been fitted yet.

    Example: ``ge.GraphEraser().predict([1])``.

    What to do: call `fit`, or `load` a run.
    """


class DatasetError(GraphEraserError, code=30):
    """A data set can't be loaded.

    Example: an ``.npz`` file that is damaged.

    What to do: check its files, and `GRAPHERASER_DATA`.
    """


class UnknownDatasetError(DatasetError, code=31):
    """No data set has that name.

    Example: ``grapheraser fit coar``.

    What to do: choose one that ``grapheraser datasets`` lists, or give the path of a file.
    """


class DatasetNotFoundError(DatasetError, code=32):
    """The files of a known data set are missing.

    Example: ``grapheraser fit cora`` without a network and without its files.

    What to do: let it be downloaded, or put its files below `GRAPHERASER_DATA`.
    """


class MissingExtraError(GraphEraserError, ImportError, code=40):
    """An optional dependency is not installed.

    Example: ``engine="pyg"`` where torch is not installed.

    What to do: run the ``pip install`` of the hint.
    """

    @classmethod
    def of(cls, package: str, extra: str, purpose: str) -> MissingExtraError:
        """The error for a missing extra, with the command that installs it."""
        return cls(
            f"{purpose} needs the package '{package}', which is not installed.",
            hint=f"in a checkout of GraphEraser: pip install '.[{extra}]'",
        )


class TrainingError(GraphEraserError, code=41):
    """One or more shards failed to train; ``failures`` maps each shard to its error.

    Example: a module of your own that raises in ``forward`` on a shard without edges.

    What to do: read the errors by shard; where the loss diverged, lower the learning rate.
    """

    def __init__(self, failures: dict[int, BaseException], *, hint: str | None = None) -> None:
        lines = [f"  shard {shard}: {type(e).__name__}: {e}" for shard, e in failures.items()]
        super().__init__("training failed:\n" + "\n".join(lines), hint=hint)
        self.failures = failures


class WorkerError(GraphEraserError, code=42):
    """A worker of a cluster was lost, ran out of memory, or would compute other bits.

    Example: a Ray node that was shut down while it trained.

    What to do: give tasks more memory, or all nodes the same versions; see docs/clusters.md.
    """


class StoreError(GraphEraserError, code=50):
    """A run folder can't be read or written.

    Example: a run below a folder that may not be written.

    What to do: check the path and its permissions.
    """


class RunNotFoundError(StoreError, code=51):
    """The folder holds no run.

    Example: ``grapheraser predict runs/coar``.

    What to do: check the path; ``grapheraser fit DATASET --out RUN`` makes a run.
    """


class CorruptRunError(StoreError, code=52):
    """A file of the run is missing, truncated, altered or foreign.

    Example: a shard file that was edited, or copied from another run.

    What to do: restore the run from a backup, or fit it again with ``--replace``.
    """


class RunVersionError(StoreError, code=53):
    """The run has another version of the format.

    Example: a run that a release of two years ago saved.

    What to do: use the release that wrote it, or fit it again with ``--replace``.
    """


class RunKindError(StoreError, code=54):
    """The run predicts something else: links instead of classes, or the other way round.

    Example: ``ge.GraphEraser.load`` of a run of links.

    What to do: load it with the other class, `LinkEraser` or `GraphEraser`.
    """


class RunBusyError(StoreError, code=55):
    """Another process is changing the run.

    Example: ``grapheraser unlearn RUN`` while ``grapheraser serve RUN`` forgets somebody.

    What to do: wait until that is done; reading needs no lock.
    """


class RunExistsError(StoreError, code=56):
    """A save would overwrite another run.

    Example: ``eraser.save("runs/cora")`` where another fit was saved.

    What to do: choose another folder, or pass ``replace=True`` (``--replace``).
    """


class ReceiptLossError(StoreError, code=57):
    """A save would lose receipts of the run in that folder.

    Example: two processes loaded one run, and both forgot and saved.

    What to do: load the run again, and repeat the change on what is there now.
    """


class StorageFullError(StoreError, code=58):
    """The disk is full; the run is unchanged.

    Example: no space left in the middle of a save.

    What to do: free space, and repeat the change.
    """


class ServiceError(GraphEraserError, code=60):
    """The service can't do what it was asked.

    Example: a key that has no right to approve.

    What to do: read the message; the log of the service has the request's id.
    """


class UnknownRequestError(ServiceError, code=61):
    """No request has that id.

    Example: ``grapheraser requests show`` of an id that was mistyped.

    What to do: ``grapheraser requests list`` shows all ids.
    """


class UnknownSubjectError(ServiceError, code=62):
    """The subject map does not have that identity.

    Example: an erasure for ``ada@example.org``, whom no row of the map names.

    What to do: load it into the subject map, or name the nodes themselves.
    """


class ConflictError(ServiceError, code=63):
    """The request can't be changed that way, or its idempotency key was used for another.

    Example: cancelling a request that is completed.

    What to do: look at its state first; take a new key for a new request.
    """


class DatabaseError(ServiceError, code=64):
    """The database can't be reached, read or written.

    Example: PostgreSQL restarts while requests arrive.

    What to do: check its URL and that it runs; then submit again with the same idempotency key.
    """


class VerificationError(GraphEraserError, code=70):
    """A receipt, chain or tensor does not match.

    Example: a receipt in which somebody changed an id.

    What to do: don't rely on it: the message says what differs from what was claimed.
    """
