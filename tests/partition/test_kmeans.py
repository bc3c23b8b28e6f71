"""`ekm`, `bekm` and `bekm-hungarian` against Algorithm 2, a plain sort, and scipy's optimum."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from grapheraser.errors import PartitionError
from grapheraser.graph import Graph
from grapheraser.partition import BekmPartitioner, partition_graph, smoothed_features
from grapheraser.partition.assignment import greedy_assignment, optimal_assignment
from grapheraser.partition.base import EDGES, FEATURES, LABELS, NODES
from grapheraser.partition.kmeans import (
    Assign,
    cheapest,
    cluster,
    nearest,
    nearest_with_room,
    squared_distances,
)
from grapheraser.seeding import generator
from tests.partition.strategies import random_graph


def _costs(seed: int) -> tuple[NDArray[np.float64], int]:
    """Costs with many ties (small integers) or none, and a capacity that holds all nodes."""
    rng = np.random.Generator(np.random.PCG64(seed))
    n = int(rng.integers(1, 30))
    k = int(rng.integers(1, n + 1))
    ties = rng.integers(0, 5, size=(n, k)).astype(np.float64)
    costs = ties if seed % 2 else rng.random((n, k)) * 10.0 ** rng.integers(-6, 6)
    return costs, -(-n // k) + int(rng.integers(0, 3))


def plain_greedy(
    distances: NDArray[np.floating], rank: NDArray[np.int64], capacity: int
) -> NDArray[np.int32]:
    """All n x k pairs, sorted."""
    n, k = distances.shape
    labels, sizes = np.full(n, -1, dtype=np.int32), [0] * k
    pairs = [(distances[i, j], rank[i], j, i) for i in range(n) for j in range(k)]
    for _, _, j, i in sorted(pairs):
        if labels[i] < 0 and sizes[j] < capacity:
            labels[i] = j
            sizes[j] += 1
    return labels


def plain_nearest(
    distances: NDArray[np.floating], rank: NDArray[np.int64], capacity: int
) -> NDArray[np.int32]:
    return np.array([min((d, j) for j, d in enumerate(row))[1] for row in distances], np.int32)


def test_deferred_acceptance_equals_the_sorted_greedy_pass() -> None:
    for seed in range(300):
        costs, capacity = _costs(seed)
        rank = generator(seed).permutation(len(costs))
        found = greedy_assignment(costs, rank, capacity)
        np.testing.assert_array_equal(found, plain_greedy(costs, rank, capacity))


def test_the_transport_costs_what_scipys_optimum_costs() -> None:
    for seed in range(300):
        costs, capacity = _costs(seed)
        labels = optimal_assignment(costs, capacity)
        assert np.bincount(labels).max() <= capacity
        places = np.repeat(costs, capacity, axis=1)
        best = places[linear_sum_assignment(places)].sum()
        np.testing.assert_allclose(costs[np.arange(len(costs)), labels].sum(), best, rtol=1e-9)


def test_a_larger_transport_is_optimal_too() -> None:
    rng = np.random.Generator(np.random.PCG64(5))
    points, centres = rng.normal(size=(300, 3)), rng.normal(size=(7, 3)) * 0.3
    costs = ((points[:, None] - centres[None]) ** 2).sum(axis=2)
    labels = optimal_assignment(costs, 43)
    places = np.repeat(costs, 43, axis=1)
    best = places[linear_sum_assignment(places)].sum()
    np.testing.assert_allclose(costs[np.arange(300), labels].sum(), best, rtol=1e-12)


def plain_kmeans(
    points: NDArray[np.float32], k: int, capacity: int, seed: int, assign: Assign
) -> tuple[list[int], list[int]]:
    n = len(points)
    rank = generator(seed, "partition", "kmeans", "rank").permutation(n)
    first = generator(seed, "partition", "kmeans", "centroids").choice(n, k, replace=False)
    centroids = [points[i] for i in first]
    labels, moved = [-1] * n, []
    for _ in range(30):
        distances = np.zeros((n, k), dtype=np.float32)
        for i in range(n):
            for j in range(k):
                for f in range(points.shape[1]):
                    difference = points[i, f] - centroids[j][f]
                    distances[i, j] += difference * difference
        new = assign(distances, rank, capacity).tolist()
        for j in range(k):
            if new.count(j) == 0:
                spare = [i for i in range(n) if new.count(new[i]) > 1]
                new[min(spare, key=lambda i: (distances[i, j], rank[i]))] = j
        moved.append(sum(a != b for a, b in zip(new, labels, strict=True)))
        labels = new
        if moved[-1] == 0:
            break
        for j in range(k):
            total = np.zeros(points.shape[1])
            for i in range(n):
                if labels[i] == j:
                    total += points[i]
            centroids[j] = (total / labels.count(j)).astype(np.float32)
    return labels, moved


@pytest.mark.parametrize(
    ("assign", "plain"),
    [(nearest_with_room, plain_greedy), (nearest, plain_nearest)],
    ids=["bekm", "ekm"],
)
def test_kmeans_equals_the_plain_algorithm(assign: Assign, plain: Assign) -> None:
    for seed in range(120):
        rng = np.random.Generator(np.random.PCG64(seed))
        n = int(rng.integers(1, 22))
        k = int(rng.integers(1, min(n, 6) + 1)) if seed % 4 else n
        exact = rng.integers(0, 3, size=(n, 2)).astype(np.float32)
        points = exact if seed % 2 else rng.normal(size=(n, 3)).astype(np.float32)
        capacity = -(-n // k) + seed % 2
        found = cluster(points, k, capacity=capacity, max_iterations=30, seed=seed, assign=assign)
        labels, moved = plain_kmeans(points, k, capacity, seed, plain)
        assert found[0].tolist() == labels, seed
        assert list(found[1]) == moved, seed


def test_the_optimal_assignment_never_costs_more_than_the_greedy_one() -> None:
    for seed in range(50):
        costs, capacity = _costs(seed)
        rank = generator(seed).permutation(len(costs))
        rows = np.arange(len(costs))
        narrow = costs.astype(np.float32)
        optimal = cheapest(narrow, rank, capacity)
        greedy = nearest_with_room(narrow, rank, capacity)
        assert narrow[rows, optimal].sum() <= narrow[rows, greedy].sum() * (1 + 1e-5)


def test_distances_are_squared_euclidean() -> None:
    rng = np.random.Generator(np.random.PCG64(0))
    points, centres = rng.normal(size=(40, 5)), rng.normal(size=(6, 5))
    expected = ((points[:, None] - centres[None]) ** 2).sum(axis=2)
    found = squared_distances(points, np.ascontiguousarray(centres.T))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_default_embedding_is_the_smoothed_projected_features() -> None:
    graph = random_graph(3)
    n = graph.num_nodes
    x = graph.x.toarray().astype(np.float64)
    x /= np.maximum(np.sqrt((x**2).sum(axis=1, keepdims=True)), 1e-300)
    a = np.eye(n)
    a[graph.sources, graph.indices] = 1
    scale = 1 / np.sqrt(a.sum(axis=1))
    a = scale[:, None] * a * scale[None]
    projected = x @ generator(9, "partition", "embedding").standard_normal((x.shape[1], 32))
    expected = np.linalg.matrix_power(a, 4) @ projected
    lengths = np.sqrt((expected**2).sum(axis=1, keepdims=True))
    found = smoothed_features(graph, 9)
    assert found.shape == (n, 32)
    np.testing.assert_allclose(found, expected / np.where(lengths > 0, lengths, 1), atol=1e-6)


def test_an_embedding_of_ones_own_is_used_and_its_reading_is_declared() -> None:
    graph = random_graph(5, largest=20)
    ones = BekmPartitioner(embedding=lambda g, seed: np.arange(g.num_nodes)[:, None] * 1.0)
    partition = partition_graph(graph, ones, num_shards=2, seed=0)
    assert partition.labels[0] != partition.labels[-1]
    assert partition.inputs == {NODES, EDGES, FEATURES, LABELS}
    honest = BekmPartitioner(embedding=ones.embedding, reads=frozenset({EDGES}))
    assert honest.inputs == {NODES, EDGES}
    assert LABELS not in BekmPartitioner().inputs


@pytest.mark.parametrize(
    ("points", "message"),
    [(np.ones((3, 2)), "must be"), (np.ones(20), "must be"), (np.full((20, 2), np.nan), "finite")],
)
def test_a_malformed_embedding_is_refused(points: NDArray[np.float64], message: str) -> None:
    graph = Graph.from_arrays(np.ones((20, 1)), np.zeros((2, 0), int), np.zeros(20, int))
    with pytest.raises(PartitionError, match=message):
        partition_graph(graph, BekmPartitioner(embedding=lambda g, s: points), num_shards=2)
