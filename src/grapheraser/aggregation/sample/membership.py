"""Which training nodes an aggregation learns from.

A node is in the sample because of a keyed hash of its id, not because of a draw. With a share, the
hash lies below a threshold: deleting a node never changes whether another is sampled. With a
count, the sample is the nodes with the smallest hashes: deleting a sampled node lets in the next
one, every other stays. Both are functions of the key and of the ids that are left, nothing else,
so a fresh fit on the remaining data samples the same nodes. (A threshold worked out once from a
count would not be: it would still know how many nodes there were.)
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import ParameterError
from grapheraser.graph import TRAIN, UNLABELLED, Graph
from grapheraser.seeding import derive, keyed_hash

Sample: TypeAlias = float | int | str

DEFAULT = "auto"
ALL = "all"
DEFAULT_SHARE, DEFAULT_COUNT = 0.1, 1000


def sampled_nodes(graph: Graph, limit: tuple[float, int | None], seed: int) -> NDArray[np.int64]:
    """Sorted ids of the sampled nodes among the labelled training nodes of a graph.

    Args:
        graph: the current graph.
        limit: the share of the nodes, and how many at the most; see `limits`.
        seed: the run's seed.
    """
    share, count = limit
    nodes = graph.ids[(graph.role == TRAIN) & (graph.y != UNLABELLED)]
    hashes = keyed_hash(nodes, derive(seed, "sample"))
    if share < 1:
        below = hashes < np.uint64(int(share * 2.0**64))
        nodes, hashes = nodes[below], hashes[below]
    if count is not None and count < len(nodes):
        # The hash of an id is unique for 64-bit ids up to chance; a stable sort settles the rest.
        nodes = nodes[np.argsort(hashes, kind="stable")[:count]]
    return np.sort(nodes)


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
