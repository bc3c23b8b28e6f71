"""Batch scoring: the classes of many nodes, block by block through the executor, into a file."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.eraser.snapshot import Snapshot
from grapheraser.errors import GraphError, WorkerError
from grapheraser.execution import streamed
from grapheraser.nodes.answers import posteriors_at, refuse_numbers, said_of
from grapheraser.progress import progress
from grapheraser.receipts import digest_of
from grapheraser.store.scores import Parts, Rows, score_format

# Nodes that are judged together, and kept together. No part of the bits with built-in models.
BLOCK = 16_384
Posteriors = NDArray[np.float32]


@dataclass(frozen=True)
class Scored:
    """Result of batch scoring.

    Attributes:
        path: the file.
        rows: nodes in it.
        blocks: into which they were divided.
        kept: of these, those that an interrupted call had finished.
        seconds: that it took.
    """

    path: Path
    rows: int
    blocks: int
    kept: int
    seconds: float


def score_nodes(
    snapshot: Snapshot,
    nodes: NDArray[np.int64],
    path: Path,
    *,
    posteriors: bool = False,
    mitigation: Callable[[Posteriors], Posteriors] | None = None,
) -> Scored:
    """Write the class of each node into a file; see `GraphEraser.predict_to`."""
    write, started = score_format(path), time.perf_counter()
    if posteriors:
        refuse_numbers(snapshot.state.graph)
    if not len(nodes):
        raise GraphError("there are no nodes to score.")
    snapshot.state.graph.positions(nodes)  # refuses unknown ones before anything is written
    blocks = [nodes[start : start + BLOCK] for start in range(0, len(nodes), BLOCK)]
    parts = Parts(path, _contents(snapshot, nodes))
    kept = len(parts)
    _score(snapshot, blocks, parts)

    def rows() -> Iterator[Rows]:
        for number, block in enumerate(blocks):
            said: Posteriors = parts.read(number)
            said = said if mitigation is None else mitigation(said)
            yield _rows(snapshot, block, said, posteriors)

    write(path, rows())
    parts.close()
    return Scored(path, len(nodes), len(blocks), kept, time.perf_counter() - started)


def _contents(snapshot: Snapshot, nodes: NDArray[np.int64]) -> dict[str, Any]:
    """Return what identifies the parts of a file: this state, these nodes."""
    return {
        "state": digest_of(snapshot.document),
        "nodes": hashlib.sha256(nodes.tobytes()).hexdigest(),
        "block": BLOCK,
    }


def _score(snapshot: Snapshot, blocks: list[NDArray[np.int64]], parts: Parts) -> None:
    """Judge the blocks that are not there, and keep each as soon as it is."""
    missing = [number for number in range(len(blocks)) if number not in parts]
    tasks = [snapshot.state.graph.positions(blocks[number]) for number in missing]
    judge = partial(posteriors_at, snapshot.state)
    failures: list[BaseException] = []
    with progress("scoring nodes", len(missing)) as tick:
        for place, said in streamed(snapshot.settings.executor, judge, tasks):
            if isinstance(said, BaseException):
                failures.append(said)
            else:
                parts.write(missing[place], said)
            tick()
    if failures:
        error = failures[0]
        raise WorkerError(
            f"{len(failures)} of {len(blocks)} blocks of nodes could not be scored: "
            f"{type(error).__name__}: {error}",
            hint="the others are kept; the same call goes on from there.",
        ) from error


def _rows(snapshot: Snapshot, nodes: NDArray[np.int64], said: Posteriors, posteriors: bool) -> Rows:
    graph, labels = snapshot.state.graph, said.argmax(axis=1)
    rows: dict[str, NDArray[Any]] = {"node": nodes}
    if graph.named:
        rows["name"] = graph.names_of(nodes)
    if not graph.label_kind.is_classes:
        found = np.reshape(said_of(snapshot.state, said), (len(nodes), graph.num_classes))
        rows |= dict(zip(graph.label_kind.target_names, found.T, strict=True))
        return rows | ({"posterior": said} if posteriors else {})
    rows["class"] = labels
    if graph.class_names:
        rows["class_name"] = np.array(graph.class_names, dtype=object)[labels]
    return rows | ({"posterior": said} if posteriors else {})
