"""Membership of the sample of training nodes that an aggregation learns from.

A node is in the sample because of a keyed hash of its id, not because of a draw. With a share, the
hash lies below a threshold: deleting a node never changes whether another is sampled. With a
count, the sample is the nodes with the smallest hashes: deleting a sampled node lets in the next
one, every other stays. Both are functions of the key and of the ids that are left, nothing else,
so a fresh fit on the remaining data samples the same nodes. (A threshold worked out once from a
count would not be: it would still know how many nodes there were.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.kernels.neighbourhoods import LABELLED, places_among, places_of
from grapheraser.kernels.paged import nodes_at
from grapheraser.kernels.sets import ranks
from grapheraser.seeding import derive, keyed_hash

Sample: TypeAlias = float | int | str

DEFAULT = "auto"
ALL = "all"
DEFAULT_SHARE, DEFAULT_COUNT = 0.1, 1000
# So many times as many candidates as are sampled.
_SPARE = 2


def sampled_nodes(graph: Graph, limit: tuple[float, int | None], seed: int) -> NDArray[np.int64]:
    """Sorted ids of the sampled nodes among the labelled training nodes of a graph.

    Args:
        graph: the current graph.
        limit: the share of the nodes, and how many at the most; see `limits`.
        seed: the run's seed.
    """
    return Candidates.of(graph, limit, seed).sampled


@dataclass(frozen=True, eq=False)
class Candidates:
    """The nodes that are sampled, and those that are let in next: what follows a sample cheaply.

    Attributes:
        limit: see `limits`.
        key: of the hash.
        bound: all labelled training nodes with a hash below it are candidates; 2**64 means all.
        nodes: their ids, by ascending hash; equal hashes by id.
        hashes: of them.
    """

    limit: tuple[float, int | None]
    key: int
    bound: int
    nodes: NDArray[np.int64]
    hashes: NDArray[np.uint64]

    @classmethod
    def of(cls, graph: Graph, limit: tuple[float, int | None], seed: int) -> Candidates:
        """Look at all nodes of a graph."""
        share, count = limit
        key, bound = derive(seed, "sample"), int(share * 2.0**64)
        trained: NDArray[np.int64] = nodes_at(graph.table, places_of(graph.table, LABELLED))
        if count is not None:
            bound = min(bound, 2**64 * _SPARE * count // max(1, len(trained)))
        found = cls._sorted(limit, key, bound, trained)
        if found._run_out:  # few, or by chance
            found = cls._sorted(limit, key, int(share * 2.0**64), trained)
        return found

    @classmethod
    def _sorted(
        cls, limit: tuple[float, int | None], key: int, bound: int, nodes: NDArray[np.int64]
    ) -> Candidates:
        hashes = keyed_hash(nodes, key)
        if bound < 2**64:
            below = hashes < np.uint64(bound)
            nodes, hashes = nodes[below], hashes[below]
        # The hash of an id is unique for 64-bit ids up to chance; a stable sort settles the rest.
        order = np.argsort(hashes, kind="stable")
        return cls(limit, key, bound, nodes[order], hashes[order])

    @property
    def _run_out(self) -> bool:
        """True where a node that is no candidate may have to be let in."""
        share, count = self.limit
        short = count is not None and len(self.nodes) < count
        return short and self.bound < int(share * 2.0**64)

    @cached_property
    def sampled(self) -> NDArray[np.int64]:
        """Sorted ids of the sampled nodes."""
        return np.sort(self.nodes[: self.limit[1]])

    def changed(self, graph: Graph, nodes: NDArray[np.int64], seed: int) -> Candidates:
        """Return the candidates of a graph that differs in these (sorted) nodes alone."""
        table = graph.table
        trained: NDArray[np.int64] = nodes_at(table, places_among(table, nodes, LABELLED))
        now = self._sorted(self.limit, self.key, self.bound, trained)
        was = ranks(self.nodes, nodes) >= 0
        if np.array_equal(self.nodes[was], now.nodes):
            return self
        left, hashes = self.nodes[~was], self.hashes[~was]
        if len(now.nodes):
            left, hashes = np.append(left, now.nodes), np.append(hashes, now.hashes)
            order = np.lexsort((left, hashes))
            left, hashes = left[order], hashes[order]
        found = replace(self, nodes=left, hashes=hashes)
        return Candidates.of(graph, self.limit, seed) if found._run_out else found


def few_labels(graph: Graph) -> bool:
    """Return whether most nodes in shards have no label, and too few have one to spare any.

    Decided anew with every request. In a typed graph nodes of other types have no label ever.
    """
    others = graph.types is not None or 2 * graph.num_train < graph.num_sharded
    return graph.num_train <= DEFAULT_COUNT and others


def limit_on(
    graph: Graph, sample: Sample, usual: tuple[float, int | None]
) -> tuple[float, int | None]:
    """The share and the count of a sample; ``auto`` takes all labels where they are few.

    Args:
        graph: the current graph.
        sample: the argument.
        usual: what ``auto`` stands for where labels are many.
    """
    if sample != DEFAULT:
        return limits(sample)
    return (1.0, DEFAULT_COUNT) if few_labels(graph) else usual


def limits(sample: Sample) -> tuple[float, int | None]:
    """The share and the count that a ``sample`` argument stands for; raises on anything else."""
    if sample == DEFAULT:
        return DEFAULT_SHARE, DEFAULT_COUNT
    if sample == ALL:
        return 1.0, None
    if isinstance(sample, float | np.floating) and 0 < sample <= 1:
        return float(sample), None
    if isinstance(sample, int | np.integer) and not isinstance(sample, bool) and sample >= 1:
        return 1.0, int(sample)
    raise ParameterError.of(
        "sample", "GraphEraser", "a share in (0, 1], a count of at least 1, 'auto' or 'all'", sample
    )
