"""The contract of partitioners, as a suite to run against your own.

from grapheraser.partition import check_partitioner

def test_mine() -> None:
    check_partitioner(my_partitioner)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import GraphEraserError
from grapheraser.graph import Graph
from grapheraser.partition.base import Partition, Partitioner
from grapheraser.partition.partitioning import (
    PartitionFunction,
    partition_graph,
    resolve_partitioner,
)


class BrokenContractError(AssertionError):
    """A partitioner broke its contract; the text names the promise and the graph."""


def check_partitioner(method: str | Partitioner | PartitionFunction, *, seed: int = 0) -> None:
    """Run a partitioner on small and awkward graphs and check every promise.

    The graphs: one node, a path, a star, a clique, no edges at all, two components and some
    isolated nodes, no features at all, few labels, and a random graph; each partitioned into 1, 2,
    3, n / 2 and n shards, strictly balanced and with slack.

    Raises:
        BrokenContractError: on the first broken promise.
    """
    for graph in awkward_graphs():
        n = graph.num_nodes
        for num_shards in sorted({k for k in (1, 2, 3, n // 2, n) if 1 <= k <= n}):
            for gamma in (0.0, 0.3):
                check_case(method, graph, num_shards, seed=seed, gamma=gamma)


def check_case(
    method: str | Partitioner | PartitionFunction,
    graph: Graph,
    num_shards: int,
    *,
    seed: int = 0,
    gamma: float = 0.0,
) -> Partition:
    """Partition one graph, check every promise, and return the partition.

    Every node of the training graph is in exactly one of ``num_shards`` shards; no shard exceeds
    the capacity, unless the partitioner is not ``strict`` and its notes say so; the graph is
    unchanged; the same seed gives the same partition; all figures are finite.
    """
    name = resolve_partitioner(method).name
    where = f"on '{graph.name}' with num_shards={num_shards}, gamma={gamma}, seed={seed}"

    def require(promise: bool, text: str) -> None:
        if not promise:
            raise BrokenContractError(f"partitioner '{name}' {text}, {where}.")

    # A copy has nothing cached, so its fingerprint is that of the arrays as they are now.
    training = graph.training_graph
    before = training.with_fields().fingerprint
    try:
        partition = partition_graph(graph, method, num_shards=num_shards, seed=seed, gamma=gamma)
        again = partition_graph(graph, method, num_shards=num_shards, seed=seed, gamma=gamma)
    except GraphEraserError as error:
        raise BrokenContractError(f"partitioner '{name}' failed {where}: {error}") from error
    require(training.with_fields().fingerprint == before, "changed its input graph")
    require(
        np.array_equal(partition.nodes, graph.sharded_nodes)
        and int(partition.sizes.sum()) == len(graph.sharded_nodes),
        "did not put every node into exactly one shard",
    )
    require(len(partition.sizes) == num_shards, f"made {len(partition.sizes)} shards")
    largest = int(partition.sizes.max())
    require(
        largest <= partition.capacity or bool(partition.notes),
        f"put {largest} nodes into a shard that may hold {partition.capacity}, without a note",
    )
    require(
        np.array_equal(partition.labels, again.labels) and partition.moved == again.moved,
        "returned two partitions for one seed",
    )
    quality = partition.quality
    require(
        quality is not None
        and np.isfinite(quality.modularity)
        and bool(np.isfinite(quality.label_entropy).all()),
        "has figures that are not finite",
    )
    return partition


def awkward_graphs() -> Iterator[Graph]:
    """Small graphs that partitioners are likely to fail on."""
    rng = np.random.Generator(np.random.PCG64(0))
    everyone = np.arange(12)
    pairs = np.array([(u, v) for u in everyone for v in everyone if u < v])
    yield _graph("one node", 1, [])
    yield _graph("path", 12, np.stack([everyone[:-1], everyone[1:]], axis=1))
    yield _graph("star", 12, np.stack([np.zeros(11, dtype=int), everyone[1:]], axis=1))
    yield _graph("clique", 12, pairs)
    yield _graph("no edges", 10, [])
    apart = [(0, 1), (1, 2), (0, 2), (4, 5), (5, 6), (6, 7), (4, 7)]
    yield _graph("two components and isolated nodes", 11, apart)
    yield _graph("no features", 12, pairs[::3], features=np.zeros((12, 3)))
    yield _graph("few labels", 12, pairs[::4], train=[0, 5, 7])
    yield _graph("random", 40, rng.integers(0, 40, size=(80, 2)))


def _graph(
    name: str,
    n: int,
    pairs: NDArray[np.int64] | list[tuple[int, int]],
    features: NDArray[np.float64] | None = None,
    train: list[int] | None = None,
) -> Graph:
    edges = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    edges = edges[edges[:, 0] != edges[:, 1]]
    x = np.eye(n, 5) if features is None else features
    return Graph.from_arrays(x, edges.T, np.arange(n) % 2, train=train, name=name)
