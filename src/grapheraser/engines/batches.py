"""Batches of the reference loop: the whole shard, or samples of neighbourhoods.

Which nodes share a batch, and which neighbours are sampled, follow from the task's seed, the epoch
and ids, by keyed hashes: each node chooses its neighbours whatever else is in the shard or in its
batch. So a shard learns the same from the same graph, and forgetting one neighbour leaves the
choice of the others, but for the one that moves up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from grapheraser.arrays import AnyArray, Bools, Floats32, Ints, Ints32
from grapheraser.engines.graph_checks import CARRIED
from grapheraser.engines.task import ShardTask, TrainingConfig
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.graph.csr import slices_of
from grapheraser.kernels.hashing import keyed_uniform
from grapheraser.kernels.neighbourhoods import smallest_of_each
from grapheraser.seeding import derive, keyed_hash, paired_hash

ALL = -1  # neighbours


@dataclass(frozen=True, eq=False)
class Batch:
    """Tensors that one step of the optimiser sees."""

    x: Tensor  # ``[n, columns]``
    edge_index: Tensor  # ``[2, m]``
    carried: Mapping[str, Tensor]  # what edges carry, as far as the module takes it
    # ``[n]``, labels to learn from, and `UNLABELLED` for all other nodes; or targets ``[n, t]``,
    # NaN for those that are not learned from.
    y: Tensor


def shard_tensors(graph: Graph, columns: Ints32, device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Return dense features ``[n, len(columns)]`` and ``edge_index`` of a (small) graph."""
    x = with_types(graph, graph.ids, _features(graph, columns).toarray())
    return (
        torch.from_numpy(x).to(device),
        torch.from_numpy(graph.edge_index).to(device),
    )


def with_types(graph: Graph, nodes: Ints, x: Floats32) -> Floats32:
    """Return dense rows of nodes (ids); in a typed graph with a last column, the type's number."""
    if graph.types is None:
        return x
    return np.column_stack([x, graph.types.of(nodes).astype(np.float32)])


def edge_tensors(graph: Graph, device: str = "cpu") -> dict[str, Tensor]:
    """Return what the edges of a graph carry, by name, in the order of its ``edge_index``."""
    found = {name: getattr(graph, name) for name in CARRIED}
    return {
        name: torch.tensor(values, device=device)
        for name, values in found.items()
        if values is not None
    }


def _features(graph: Graph, columns: Ints32) -> sp.csr_array:
    return graph.x if len(columns) == graph.num_features else graph.x[:, columns]


def held_out(task: ShardTask, share: float) -> Bools:
    """Choose the nodes of a shard that early stopping holds out, by a keyed hash of their ids.

    Where that would be all labelled nodes, the one with the largest hash stays. Only the shard's
    own nodes and its seed decide: validation nodes of the graph have no part in it, so they may be
    forgotten without retraining anything.
    """
    labelled = np.flatnonzero(task.graph.labelled)
    key = derive(task.seed, "held out")
    uniform = keyed_uniform(task.graph.ids[labelled], 1, key).reshape(-1)
    out = np.zeros(task.graph.num_nodes, dtype=bool)
    out[labelled] = uniform < share
    if len(labelled) and out[labelled].all():
        out[labelled[uniform.argmax()]] = False
    return out


def targets_of(task: ShardTask, config: TrainingConfig) -> tuple[AnyArray, AnyArray | None]:
    """Return the labels to learn from, and those that are held out, if any."""
    if not task.graph.label_kind.is_classes:
        return _rows_of_targets(task, config)
    y = task.graph.y.copy()
    if config.early_stopping is None:
        return y, None
    out = held_out(task, config.early_stopping.share)
    if not out.any():
        return y, None
    return np.where(out, UNLABELLED, y), np.where(out, y, UNLABELLED)


def _rows_of_targets(task: ShardTask, config: TrainingConfig) -> tuple[Floats32, Floats32 | None]:
    single: Floats32 = task.targets.astype(np.float32)
    out = np.zeros(len(single), dtype=bool)
    if config.early_stopping is not None:
        out = held_out(task, config.early_stopping.share)
    if not out.any():
        return single, None
    kept = (np.where(some[:, None], np.float32(np.nan), single) for some in (out, ~out))
    return next(kept), next(kept)


class WholeShard:
    """One batch: all of the shard. For the arguments, see `batches_of`."""

    def __init__(
        self,
        task: ShardTask,
        config: TrainingConfig,
        columns: Ints32,
        carried: Mapping[str, Tensor],
        device: str,
    ) -> None:
        tensors = (*shard_tensors(task.graph, columns, device), carried)
        self._batch, *self._held_out = (
            Batch(*tensors, torch.from_numpy(labels).to(device))
            for labels in targets_of(task, config)
            if labels is not None
        )

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of an epoch."""
        yield self._batch

    def held_out(self) -> list[Batch]:
        """Return batches with the held-out labels, the same in every epoch; [] without any."""
        return self._held_out


class SampledShard:
    """Batches of labelled nodes, with a sample of the nodes around them.

    Of each node in a batch so many neighbours are chosen, of each of these again so many, and so
    on. A batch is a graph of the nodes that were reached and the edges that were chosen: both ways,
    or in a directed graph those that lead towards the batch's nodes.

    For the arguments, see `batches_of`.
    """

    def __init__(
        self,
        task: ShardTask,
        config: TrainingConfig,
        columns: Ints32,
        carried: Mapping[str, Tensor],
        device: str,
    ) -> None:
        assert config.neighbours is not None
        assert config.batch_size is not None
        graph = task.graph
        self._seed, self._ids, self._device = task.seed, graph.ids, device
        self._x, self._carried = _features(graph, columns), carried
        self._y, self._kept_back = targets_of(task, config)
        self._neighbours, self._batch_size = config.neighbours, config.batch_size
        self._directed = graph.directed
        # Edges by target and then source. Where each edge leads both ways, the place of an edge in
        # this order is that of its opposite in the graph's own.
        self._edges = graph.edge_index
        self._order = np.lexsort(self._edges)
        counts = np.bincount(self._edges[1], minlength=graph.num_nodes)
        self._ends = np.concatenate([[0], np.cumsum(counts)])
        self._sources = self._edges[0][self._order]

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of an epoch."""
        learned = np.flatnonzero(self._y != UNLABELLED)
        shuffled = np.argsort(keyed_hash(self._ids[learned], self._key("batches", number)))
        yield from self._batches(learned[shuffled], self._y, self._key("neighbours", number))

    def held_out(self) -> list[Batch]:
        """Return batches with the held-out labels, the same in every epoch; [] without any."""
        if self._kept_back is None:
            return []
        nodes = np.flatnonzero(self._kept_back != UNLABELLED)
        return list(self._batches(nodes, self._kept_back, self._key("held-out neighbours")))

    def _key(self, *path: str | int) -> int:
        return derive(self._seed, *path)

    def _batches(self, nodes: Ints, labels: Ints, key: int) -> Iterator[Batch]:
        """Yield batches of about the same size."""
        for part in np.array_split(nodes, -(-len(nodes) // self._batch_size)):
            yield self._batch(np.sort(part), labels, np.uint64(key))

    def _batch(self, seeds: Ints, labels: Ints, key: np.uint64) -> Batch:
        nodes, places = self._sampled(seeds, key)
        edges = np.searchsorted(nodes, self._edges[:, places])
        y = np.full(len(nodes), UNLABELLED, dtype=np.int64)
        y[np.searchsorted(nodes, seeds)] = labels[seeds]
        where = torch.from_numpy(places).to(self._device)
        tensors = (self._x[nodes].toarray(), edges.astype(np.int64), y)
        x, edge_index, targets = (torch.from_numpy(each).to(self._device) for each in tensors)
        carried = {name: values[where] for name, values in self._carried.items()}
        return Batch(x, edge_index, carried, targets)

    def _sampled(self, seeds: Ints, key: np.uint64) -> tuple[Ints, Ints]:
        """Return the nodes around some, these included, and the chosen edges; both sorted."""
        nodes, frontier = seeds, seeds
        found = [np.zeros(0, dtype=np.int64)]
        for count in self._neighbours:
            limit = len(self._sources) if count == ALL else count
            chosen = chosen_edges(self._ends, self._sources, self._ids, frontier, limit, key)
            found.append(chosen)
            reached = np.union1d(nodes, self._sources[chosen])
            frontier, nodes = np.setdiff1d(reached, nodes, assume_unique=True), reached
        chosen = np.concatenate(found)
        places = self._order[chosen]
        return nodes, np.unique(places if self._directed else np.concatenate([places, chosen]))


Batches: TypeAlias = WholeShard | SampledShard


def batches_of(
    task: ShardTask,
    config: TrainingConfig,
    columns: Ints32,
    carried: Mapping[str, Tensor],
    device: str = "cpu",
) -> Batches:
    """Return the batches of a shard.

    ``carried`` is what edges carry, in the order of the graph's ``edge_index``.
    """
    kind = WholeShard if config.neighbours is None else SampledShard
    return kind(task, config, columns, carried, device)


def chosen_edges(
    ends: Ints, sources: Ints, ids: Ints, nodes: Ints, limit: int, key: np.uint64
) -> Ints:
    """Choose at most so many edges that lead to each node: those with the smallest keyed hashes.

    The edges to ``nodes[i]`` lie within ``ends``, ``[n + 1]``; ``sources`` are those of all edges,
    by target; ``key`` hashes the ids of both ends.
    """
    places = slices_of(ends, nodes)
    owner = np.repeat(np.arange(len(nodes)), ends[nodes + 1] - ends[nodes])
    hashes = paired_hash(paired_hash(key, ids[nodes])[owner], ids[sources[places]])
    return places[smallest_of_each(owner, hashes, limit)]
