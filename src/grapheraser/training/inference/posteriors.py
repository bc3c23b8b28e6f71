"""Posteriors of any nodes under shard models, from sparse features, row by row.

A node's posterior is a function of the weights and of its own neighbourhood. Every sum
runs over one row in the order of node positions, so the bits of a row do not depend on which
other rows are asked for, on their order or on the number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.execution.base import worker_count
from grapheraser.graph import Graph
from grapheraser.models import CustomModel, Model, ModelSpec
from grapheraser.training.inference import forward
from grapheraser.training.inference.cuda import runs_here
from grapheraser.training.inference.deep import deep
from grapheraser.training.inference.gather import (
    ALL_FEATURES,
    NO_FEATURES,
    OWN_FEATURES,
    WHOLE,
    Bound,
    Gathered,
    Numbers,
    Part,
    gather_field,
    part_of,
    whole_part,
)
from grapheraser.training.inference.rows import Field, Hop, softmax
from grapheraser.training.inference.weights import by_role
from grapheraser.training.task import ShardWeights

# A shard model, and the numbers of the gathered nodes that it is asked about; None: all of them.
_Question: TypeAlias = tuple[ShardWeights, Numbers | None]
# So many questions about one node each are worth starting threads for; so many for each core,
# sending to a GPU.
_WORTH_THREADS = 1000
_WORTH_SENDING = 5000


def shard_posteriors(
    model: Model,
    weights: Sequence[ShardWeights],
    graph: Graph,
    positions: NDArray[np.int64],
    device: str = "cpu",
) -> NDArray[np.float32]:
    """Posteriors of all shard models on the current graph.

    Returns: float32 ``[len(weights), len(positions), num_classes]``. For built-in models a node's
    posterior has the same bits whatever other nodes are asked for with it.
    """
    if isinstance(model, CustomModel):
        from grapheraser.training.inference.module import module_posteriors

        return module_posteriors(model, weights, graph, positions)
    return posteriors(model, weights, graph, positions, device=device)


def posteriors(
    spec: ModelSpec,
    weights: Sequence[ShardWeights],
    graph: Graph,
    positions: NDArray[np.int64],
    bound: Bound = WHOLE,
    *,
    device: str = "cpu",
) -> NDArray[np.float32]:
    """Class probabilities in eval mode.

    Args:
        spec: the architecture of every shard model.
        weights: one entry per shard.
        graph: the whole current graph; all of its edges count, also those between shards.
        positions: int64 ``[m]``, rows of ``graph``; any order, repeats allowed.
        bound: how many neighbours of a node count.
        device: where large questions may go; the bits are the same.

    Returns: float32 ``[len(weights), m, num_classes]``.
    """
    out = np.empty((len(weights), len(positions), graph.num_classes), dtype=np.float32)
    if len(positions):
        gathered = gather_field(graph, positions, bound, hops=spec.hops)
        questions: list[_Question] = [(each, None) for each in weights]
        for shard, found in enumerate(_answers(spec, gathered, questions, device)):
            out[shard] = found
    return out


def features_read(model: Model) -> int:
    """Whose features `asked_posteriors` reads of what was gathered."""
    if isinstance(model, CustomModel):
        return NO_FEATURES
    return ALL_FEATURES if model.hops else OWN_FEATURES


def asked_posteriors(
    spec: ModelSpec,
    weights: Mapping[int, ShardWeights],
    gathered: Gathered,
    asked: NDArray[np.int32],
    num_classes: int,
    device: str = "cpu",
) -> NDArray[np.float32]:
    """What a few shard models say about each node, all from the same gathered neighbourhood.

    Args:
        spec: the architecture of every shard model.
        weights: by shard id.
        gathered: the nodes with their neighbourhoods.
        asked: int32 ``[gathered.wanted, m]``, ids of the shards to ask, each once; -1 for nobody.
        num_classes: of the graph.
        device: where large questions may go; the bits are the same.

    Returns: float32 ``[gathered.wanted, m, num_classes]``; zeros where nobody was asked.
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
    for group, found in zip(groups, _answers(spec, gathered, questions, device), strict=True):
        flat[group] = found
    return out


def _answers(
    spec: ModelSpec, gathered: Gathered, questions: Sequence[_Question], device: str
) -> list[NDArray[np.float32]]:
    """The posteriors that each question asks for; many are answered on all cores, or by a GPU."""
    for weights, _ in questions:
        by_role(spec, weights)
    size = sum(gathered.wanted if rows is None else len(rows) for _, rows in questions)
    usual = spec.layers is None  # what the kernels of a GPU are written for
    if usual and size >= _WORTH_SENDING * worker_count(None) and runs_here(device):
        return _answered_there(spec, gathered, questions, device)
    workers = min(worker_count(None), len(questions)) if size >= _WORTH_THREADS else 1
    if workers < 2:
        return _answered(spec, gathered, questions)
    shares = [questions[start::workers] for start in range(workers)]
    out: list[NDArray[np.float32]] = [np.empty(0, dtype=np.float32)] * len(questions)
    with ThreadPoolExecutor(workers) as pool:
        found = pool.map(lambda share: _answered(spec, gathered, share), shares)
        for start, answers in enumerate(found):
            out[start::workers] = answers
    return out


def _answered(
    spec: ModelSpec, gathered: Gathered, questions: Sequence[_Question]
) -> list[NDArray[np.float32]]:
    hops = spec.hops
    place = np.zeros(gathered.num_features, dtype=np.int32)
    room = np.full(len(gathered.nodes), -1, dtype=np.int32)
    passed, whole = getattr(forward, spec.kind) if spec.layers is None else deep, None
    out = []
    for weights, rows in questions:
        if rows is None:
            field = whole = whole or _field(gathered, None, place, room, hops)
        else:
            field = _field(gathered, rows, place, room, hops)
        out.append(passed(spec, by_role(spec, weights), field))
    return out


def _answered_there(
    spec: ModelSpec, gathered: Gathered, questions: Sequence[_Question], device: str
) -> list[NDArray[np.float32]]:
    """`_answered` on a GPU: it works on a part while the processor looks for the next ones."""
    from grapheraser.training.inference.cuda.forward import as_numpy, features_of, field_of, logits

    hops, features = spec.hops, features_of(gathered, device)
    whole = field_of(whole_part(gathered), features, hops)
    rooms = threading.local()

    def part(question: _Question) -> Part | None:
        if question[1] is None:
            return None
        if not hasattr(rooms, "room"):
            rooms.room = np.full(len(gathered.nodes), -1, dtype=np.int32)
        return part_of(gathered, question[1], rooms.room, hops)

    found = []
    with ThreadPoolExecutor(worker_count(None)) as pool:
        for (weights, _), own in zip(questions, pool.map(part, questions), strict=True):
            field = whole if own is None else field_of(own, features, hops)
            found.append(logits(spec, by_role(spec, weights), field))
    return [softmax(each) for each in as_numpy(found)]


def _field(
    gathered: Gathered, rows: Numbers | None, place: Numbers, room: Numbers, hops: int
) -> Field:
    part = whole_part(gathered) if rows is None else part_of(gathered, rows, room, hops)
    outer = Hop(part.indptr, part.indices, part.degree, part.weights)
    inner = outer._replace(indptr=part.indptr[: part.wanted + 1])
    numbers = part.numbers if hops else part.numbers[: part.wanted]
    x = gathered.x_indptr, gathered.x_indices, gathered.x_data
    return Field(outer, inner, numbers, *x, place)
