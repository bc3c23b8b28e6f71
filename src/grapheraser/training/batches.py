"""What the reference loop takes its steps on: the whole shard, or samples of neighbourhoods.

Which nodes share a batch, and which neighbours are sampled, follow from the task's seed, the epoch
and ids, by keyed hashes: each node chooses its neighbours whatever else is in the shard or in its
batch. So a shard learns the same from the same graph, and forgetting one neighbour leaves the
choice of the others, but for the one that moves up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from grapheraser.graph import UNLABELLED, Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.neighbourhoods import admit, places_for, put_in_order
from grapheraser.seeding import derive, keyed_hash
from grapheraser.training.stopping import held_out
from grapheraser.training.task import ShardTask, TrainingConfig

ALL = -1  # neighbours


@dataclass(frozen=True, eq=False)
class Batch:
    """What one step is taken on.

    Attributes:
        x: ``[n, columns]``.
        edge_index: ``[2, m]``.
        carried: what edges carry, as far as the module takes it.
        y: ``[n]``, labels to learn from, and `UNLABELLED` for all other nodes.
    """

    x: Tensor
    edge_index: Tensor
    carried: Mapping[str, Tensor]
    y: Tensor


class Batches(Protocol):
    """All batches of a shard."""

    def epoch(self, number: int) -> Iterator[Batch]:
        """Those of an epoch."""

    def held_out(self) -> list[Batch]:
        """Those with the labels that are held out, the same in every epoch; [] where none are."""


def batches_of(
    task: ShardTask,
    config: TrainingConfig,
    columns: NDArray[np.int32],
    carried: Mapping[str, Tensor],
    device: str = "cpu",
) -> Batches:
    """The batches of a shard, as the config says.

    Args:
        task: the shard.
        config: how it is trained.
        columns: of the features.
        carried: what edges carry, in the order of the graph's ``edge_index``.
        device: where the tensors go.
    """
    y, kept_back = _targets(task, config)
    if config.neighbours is None:
        return WholeShard(task.graph, columns, carried, y, kept_back, device)
    assert config.batch_size is not None
    sizes = config.neighbours, config.batch_size
    return SampledShard(task, columns, carried, y, kept_back, device, *sizes)


def _targets(
    task: ShardTask, config: TrainingConfig
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """The labels to learn from, and those that are held out, if any."""
    y = task.graph.y.copy()
    if config.early_stopping is None:
        return y, None
    out = held_out(task, config.early_stopping.share)
    if not out.any():
        return y, None
    return np.where(out, UNLABELLED, y), np.where(out, y, UNLABELLED)


def shard_tensors(
    graph: Graph, columns: NDArray[np.int32], device: str = "cpu"
) -> tuple[Tensor, Tensor]:
    """Dense features ``[n, len(columns)]`` and ``edge_index`` of a (small) graph."""
    return (
        torch.from_numpy(_features(graph, columns).toarray()).to(device),
        torch.from_numpy(graph.edge_index).to(device),
    )


def _features(graph: Graph, columns: NDArray[np.int32]) -> sp.csr_array:
    return graph.x if len(columns) == graph.num_features else graph.x[:, columns]


class WholeShard:
    """One batch: all of the shard."""

    def __init__(
        self,
        graph: Graph,
        columns: NDArray[np.int32],
        carried: Mapping[str, Tensor],
        y: NDArray[np.int64],
        kept_back: NDArray[np.int64] | None,
        device: str,
    ) -> None:
        tensors = (*shard_tensors(graph, columns, device), carried)
        self._batch = Batch(*tensors, torch.from_numpy(y).to(device))
        self._held_out = [
            Batch(*tensors, torch.from_numpy(labels).to(device))
            for labels in (kept_back,)
            if labels is not None
        ]

    def epoch(self, number: int) -> Iterator[Batch]:
        """See `Batches`."""
        yield self._batch

    def held_out(self) -> list[Batch]:
        """See `Batches`."""
        return self._held_out


class SampledShard:
    """Batches of labelled nodes, with a sample of the nodes around them.

    Of each node in a batch so many neighbours are chosen, of each of these again so many, and so
    on. A batch is a graph of the nodes that were reached and the edges that were chosen: both ways,
    or in a directed graph those that lead towards the batch's nodes.
    """

    def __init__(
        self,
        task: ShardTask,
        columns: NDArray[np.int32],
        carried: Mapping[str, Tensor],
        y: NDArray[np.int64],
        kept_back: NDArray[np.int64] | None,
        device: str,
        neighbours: Sequence[int],
        batch_size: int,
    ) -> None:
        graph = task.graph
        self._seed, self._ids, self._device = task.seed, graph.ids, device
        self._x, self._carried = _features(graph, columns), carried
        self._y, self._kept_back = y, kept_back
        self._neighbours, self._batch_size = neighbours, batch_size
        self._directed = graph.directed
        # Edges by target and then source. Where each edge leads both ways, the place of an edge in
        # this order is that of its opposite in the graph's own.
        self._edges = graph.edge_index
        self._order = np.lexsort(self._edges)
        counts = np.bincount(self._edges[1], minlength=graph.num_nodes)
        self._ends = np.concatenate([[0], np.cumsum(counts)])
        self._sources = self._edges[0][self._order]

    def epoch(self, number: int) -> Iterator[Batch]:
        """See `Batches`."""
        learned = np.flatnonzero(self._y != UNLABELLED)
        shuffled = np.argsort(keyed_hash(self._ids[learned], self._key("batches", number)))
        yield from self._batches(learned[shuffled], self._y, self._key("neighbours", number))

    def held_out(self) -> list[Batch]:
        """See `Batches`."""
        if self._kept_back is None:
            return []
        nodes = np.flatnonzero(self._kept_back != UNLABELLED)
        return list(self._batches(nodes, self._kept_back, self._key("held-out neighbours")))

    def _key(self, *path: str | int) -> int:
        return derive(self._seed, *path)

    def _batches(
        self, nodes: NDArray[np.int64], labels: NDArray[np.int64], key: int
    ) -> Iterator[Batch]:
        """Batches of about the same size."""
        for part in np.array_split(nodes, -(-len(nodes) // self._batch_size)):
            yield self._batch(np.sort(part), labels, np.uint64(key))

    def _batch(self, seeds: NDArray[np.int64], labels: NDArray[np.int64], key: np.uint64) -> Batch:
        nodes, places = self._sampled(seeds, key)
        edges = np.searchsorted(nodes, self._edges[:, places])
        y = np.full(len(nodes), UNLABELLED, dtype=np.int64)
        y[np.searchsorted(nodes, seeds)] = labels[seeds]
        where = torch.from_numpy(places).to(self._device)
        tensors = (self._x[nodes].toarray(), edges.astype(np.int64), y)
        x, edge_index, targets = (torch.from_numpy(each).to(self._device) for each in tensors)
        carried = {name: values[where] for name, values in self._carried.items()}
        return Batch(x, edge_index, carried, targets)

    def _sampled(
        self, seeds: NDArray[np.int64], key: np.uint64
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The nodes around some, themselves included, and the edges between them; both sorted."""
        nodes, frontier = seeds, seeds
        found = [np.zeros(0, dtype=np.int64)]
        for count in self._neighbours:
            most = len(self._sources) if count == ALL else count
            chosen = chosen_edges(self._ends, self._sources, self._ids, frontier, most, key)
            found.append(chosen)
            reached = np.union1d(nodes, self._sources[chosen])
            frontier, nodes = np.setdiff1d(reached, nodes, assume_unique=True), reached
        chosen = np.concatenate(found)
        places = self._order[chosen]
        return nodes, np.unique(places if self._directed else np.concatenate([places, chosen]))


@compiled
def chosen_edges(
    ends: NDArray[np.int64],
    sources: NDArray[np.int64],
    ids: NDArray[np.int64],
    nodes: NDArray[np.int64],
    most: int,
    key: np.uint64,
) -> NDArray[np.int64]:
    """Of the edges that lead to each node at most so many: those with the smallest keyed hashes.

    Args:
        ends: ``[n + 1]``, where the edges to each node begin and end.
        sources: of all edges, by target.
        ids: of the nodes.
        nodes: whose edges are chosen.
        most: how many of each.
        key: of the hashes of the ids of both ends.
    """
    room, largest = 0, 0
    for v in nodes:
        degree = ends[v + 1] - ends[v]
        room += min(degree, most)
        largest = max(largest, degree)
    out = np.empty(room, dtype=np.int64)
    hashes, chosen = places_for(min(most, largest))
    end = 0
    for v in nodes:
        count, own = 0, paired(key, np.uint64(ids[v]))
        if ends[v + 1] - ends[v] <= most:
            for e in range(ends[v], ends[v + 1]):
                out[end] = e
                end += 1
            continue
        for e in range(ends[v], ends[v + 1]):
            value = paired(own, np.uint64(ids[sources[e]]))
            count = admit(value, e, hashes, chosen, count)
        put_in_order(chosen, count)
        for i in range(count):
            out[end] = chosen[i]
            end += 1
    return out
