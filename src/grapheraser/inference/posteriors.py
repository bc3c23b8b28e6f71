"""Posteriors of any nodes under shard models, from sparse features, row by row.

A node's posterior is a function of the weights and of its own neighbourhood. Every sum runs over
one row in the order of node positions, so the bits of a row do not depend on which other rows are
asked for, on their order or on the number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines.task import Reader, ShardWeights
from grapheraser.execution.base import worker_count
from grapheraser.graph import Graph
from grapheraser.inference import forward
from grapheraser.inference.gather import (
    ALL_FEATURES,
    NO_FEATURES,
    OWN_FEATURES,
    WHOLE,
    Bound,
    Gathered,
    Numbers,
    gather_field,
    part_of,
)
from grapheraser.inference.rows import Field, Hop
from grapheraser.inference.weights import by_role
from grapheraser.models import CustomModel, Model, ModelSpec

# A shard model, and the numbers of the gathered nodes that it is asked about; None: all of them.
_Question: TypeAlias = tuple[ShardWeights, Numbers | None]
# From this many pairs of a model and a node on, threads are worth starting.
_WORTH_THREADS = 1000


def shard_posteriors(
    model: Model, weights: Sequence[ShardWeights], graph: Graph, positions: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the posteriors of all shard models on the current graph.

    Returns: float32 ``[len(weights), len(positions), num_classes]``. For built-in models a node's
    posterior has the same bits whatever other nodes are asked for with it.
    """
    if isinstance(model, Reader):
        return model.posteriors(weights, graph, positions)
    if isinstance(model, CustomModel):
        from grapheraser.inference.module import module_posteriors

        return module_posteriors(model, weights, graph, positions)
    return posteriors(model, weights, graph, positions)


def posteriors(
    spec: ModelSpec,
    weights: Sequence[ShardWeights],
    graph: Graph,
    positions: NDArray[np.int64],
    bound: Bound = WHOLE,
) -> NDArray[np.float32]:
    """Return class probabilities in eval mode.

    Float32 ``[len(weights), m, num_classes]``, for ``m`` rows of the whole current graph in any
    order, repeats allowed. All edges count, also those between shards, but at most ``bound`` of a
    node.
    """
    out = np.empty((len(weights), len(positions), graph.num_classes), dtype=np.float32)
    if len(positions):
        gathered = gather_field(graph, positions, bound, hops=spec.hops)
        questions: list[_Question] = [(each, None) for each in weights]
        raw = not graph.label_kind.is_classes
        for shard, found in enumerate(_answers(spec, gathered, questions, raw)):
            out[shard] = found
    return out


def features_read(model: Model) -> int:
    """Return which gathered nodes' features `asked_posteriors` reads."""
    if isinstance(model, CustomModel):
        return NO_FEATURES
    return ALL_FEATURES if model.hops else OWN_FEATURES


def asked_posteriors(
    spec: ModelSpec,
    weights: Mapping[int, ShardWeights],
    gathered: Gathered,
    asked: NDArray[np.int32],
    num_classes: int,
    *,
    raw: bool = False,
) -> NDArray[np.float32]:
    """Ask a few shard models about each node, all from the same gathered neighbourhood.

    ``asked`` is int32 ``[gathered.wanted, m]``, ids of the shards to ask, each once, and -1 for
    nobody. Returns float32 ``[gathered.wanted, m, num_classes]``, zeros where nobody was asked;
    ``raw``: outputs as they are, log-odds of labels or numbers.
    """
    out = np.zeros((*asked.shape, num_classes), dtype=np.float32)
    order = np.argsort(asked, axis=None, kind="stable")
    labels = asked.reshape(-1)[order]
    first = int(np.searchsorted(labels, 0))
    ends = [first, *(np.flatnonzero(np.diff(labels[first:])) + first + 1).tolist(), len(labels)]
    groups = [order[a:b] for a, b in pairwise(ends) if a < b]
    rows = [(group // asked.shape[1]).astype(np.int32) for group in groups]
    questions: list[_Question] = [
        (weights[int(asked.flat[group[0]])], None if len(own) == gathered.wanted else own)
        for group, own in zip(groups, rows, strict=True)
    ]
    flat = out.reshape(-1, num_classes)
    for group, found in zip(groups, _answers(spec, gathered, questions, raw), strict=True):
        flat[group] = found
    return out


def _answers(
    spec: ModelSpec, gathered: Gathered, questions: Sequence[_Question], raw: bool
) -> list[NDArray[np.float32]]:
    """Answer each question with posteriors; many are answered on all cores."""
    for weights, _ in questions:
        by_role(spec, weights)  # not in the threads, which would each compute what they share
    size = sum(gathered.wanted if rows is None else len(rows) for _, rows in questions)
    workers = min(worker_count(None), len(questions)) if size >= _WORTH_THREADS else 1
    if workers < 2:
        return _answer(spec, gathered, questions, raw)
    shares = [questions[start::workers] for start in range(workers)]
    out: list[NDArray[np.float32]] = [np.empty(0, dtype=np.float32)] * len(questions)
    with ThreadPoolExecutor(workers) as pool:
        found = pool.map(lambda share: _answer(spec, gathered, share, raw), shares)
        for start, answers in enumerate(found):
            out[start::workers] = answers
    return out


def _answer(
    spec: ModelSpec, gathered: Gathered, questions: Sequence[_Question], raw: bool
) -> list[NDArray[np.float32]]:
    """Answer these questions one after the other."""
    place = np.zeros(gathered.num_features, dtype=np.int32)
    room = np.full(len(gathered.nodes), -1, dtype=np.int32)
    passed, whole = forward.deep if spec.beyond_kernels else getattr(forward, spec.kind), None
    passed = forward.scores if raw else passed
    out = []
    for weights, rows in questions:
        if rows is None:
            field = whole = whole or _field(gathered, None, place, room, spec.hops)
        else:
            field = _field(gathered, rows, place, room, spec.hops)
        out.append(passed(spec, by_role(spec, weights), field))
    return out


def _field(
    gathered: Gathered, rows: Numbers | None, place: Numbers, room: Numbers, hops: int
) -> Field:
    """Take what some of the gathered nodes, or all of them, depend on."""
    part = part_of(gathered, rows, room, hops)
    outer = Hop(part.indptr, part.indices, part.degree, part.weights)
    inner = outer._replace(indptr=part.indptr[: part.wanted + 1])
    numbers = part.numbers if hops else part.numbers[: part.wanted]
    return Field(
        outer, inner, numbers, gathered.x_indptr, gathered.x_indices, gathered.x_data, place
    )
