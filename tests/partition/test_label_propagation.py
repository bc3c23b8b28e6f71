"""`lpa` and `blpa` against Algorithm 1, written down as plainly as it can be."""

from __future__ import annotations

import numpy as np
import pytest

from grapheraser.graph import Graph
from grapheraser.partition import BlpaPartitioner, LpaPartitioner, partition_graph, shard_capacity
from grapheraser.partition.data_free import balanced_labels
from grapheraser.partition.label_propagation import best_destinations
from grapheraser.seeding import generator
from tests.partition.strategies import random_graph


def plain_blpa(
    graph: Graph, k: int, capacity: int, seed: int, *, exchange: bool = False, rounds: int = 30
) -> tuple[list[int], list[int]]:
    """Algorithm 1 with every profile stored, staying included, and a comparison sort."""
    n = graph.num_nodes
    labels = balanced_labels(n, k, seed).tolist()
    around = [graph.indices[graph.indptr[u] : graph.indptr[u + 1]].tolist() for u in range(n)]
    moved = []
    for step in range(rounds):
        order = generator(seed, "partition", "blpa", step).permutation(n).tolist()
        rank = {u: r for r, u in enumerate(order)}
        profiles = []
        for u in range(n):
            for shard in {labels[v] for v in around[u]}:
                count = sum(labels[v] == shard for v in around[u])
                stays_first = shard != labels[u]
                profiles.append((-count, rank[u], stays_first, (shard - rank[u]) % k, u, shard))
        old = list(labels)
        settled: set[int] = set()
        left: set[int] = set()
        waiting: list[tuple[int, int]] = []
        for *_, u, to in sorted(profiles):
            if u in settled:
                continue
            if to == old[u]:
                settled.add(u)
            elif labels.count(to) < capacity and labels.count(old[u]) > 1:
                labels[u] = to
                settled.add(u)
                left.add(u)
            elif exchange:
                partners = [
                    v for v, there in waiting if v not in left and (old[v], there) == (to, old[u])
                ]
                if partners:
                    v = partners[0]
                    labels[u], labels[v] = to, old[u]
                    settled |= {u, v}
                    left |= {u, v}
                else:
                    waiting.append((u, to))
        moved.append(sum(a != b for a, b in zip(labels, old, strict=True)))
        if moved[-1] == 0:
            break
    return labels, moved


def _cases(count: int) -> list[tuple[int, Graph, int]]:
    cases = []
    for seed in range(count):
        graph = random_graph(seed)
        k = int(generator(seed, "k").integers(1, graph.num_nodes + 1))
        cases.append((seed, graph, min(k, 6) if seed % 3 else k))
    return cases


def test_blpa_equals_the_plain_algorithm_on_hundreds_of_graphs() -> None:
    any_moved = 0
    for seed, graph, k in _cases(300):
        capacity = shard_capacity(graph.num_nodes, k, gamma=0.1 * (seed % 3))
        assignment = BlpaPartitioner(exchange=False)(graph, k, capacity=capacity, seed=seed)
        labels, moved = plain_blpa(graph, k, capacity, seed)
        assert assignment.labels.tolist() == labels, seed
        assert list(assignment.moved) == moved, seed
        any_moved += sum(moved) > 0
    assert any_moved > 100


def test_exchange_equals_the_plain_algorithm_on_hundreds_of_graphs() -> None:
    any_moved = 0
    for seed, graph, k in _cases(300):
        capacity = shard_capacity(graph.num_nodes, k)
        assignment = BlpaPartitioner(exchange=True)(graph, k, capacity=capacity, seed=seed)
        labels, moved = plain_blpa(graph, k, capacity, seed, exchange=True)
        assert assignment.labels.tolist() == labels, seed
        assert list(assignment.moved) == moved, seed
        any_moved += sum(moved) > 0
    assert any_moved > 100


def test_lpa_is_the_same_without_a_capacity() -> None:
    for seed, graph, k in _cases(150):
        assignment = LpaPartitioner()(graph, k, capacity=1, seed=seed)
        labels, moved = plain_blpa(graph, k, graph.num_nodes, seed)
        assert assignment.labels.tolist() == labels, seed
        assert list(assignment.moved) == moved, seed


def test_the_wish_of_a_node_is_the_first_of_its_profiles() -> None:
    for seed, graph, k in _cases(150):
        labels = balanced_labels(graph.num_nodes, k, seed)
        order = generator(seed).permutation(graph.num_nodes)
        wishes, gains = best_destinations(graph.indptr, graph.indices, labels, order, k)
        for rank, u in enumerate(order.tolist()):
            around = labels[graph.indices[graph.indptr[u] : graph.indptr[u + 1]]].tolist()
            own = around.count(labels[u])
            better = [(-around.count(s), (s - rank) % k, s) for s in set(around)]
            better = sorted(b for b in better if -b[0] > own)
            assert wishes[u] == (better[0][2] if better else labels[u])
            assert gains[u] == (-better[0][0] - own if better else 0)


def test_many_destinations_for_one_node_are_sorted_too() -> None:
    hub = np.stack([np.zeros(199, dtype=np.int64), np.arange(1, 200)])
    graph = Graph.from_arrays(np.ones((200, 1)), hub, np.zeros(200, dtype=int))
    for k in (100, 150):
        assignment = BlpaPartitioner(exchange=False)(graph, k, capacity=3, seed=1)
        assert assignment.labels.tolist() == plain_blpa(graph, k, 3, 1)[0]


def test_isolated_nodes_stay_where_they_were_put() -> None:
    pairs = np.array([(0, 1), (1, 2), (2, 3), (3, 0)]).T
    graph = Graph.from_arrays(np.ones((13, 1)), pairs, np.zeros(13, dtype=int))
    for method in ("lpa", "blpa", "blpa-exchange", "blpa-lp"):
        partition = partition_graph(graph, method, num_shards=3, seed=4)
        assert partition.labels[4:].tolist() == balanced_labels(13, 3, 4)[4:].tolist()


def test_nodes_change_places_where_no_shard_has_room() -> None:
    graph = random_graph(7, largest=24)
    n = graph.num_nodes - graph.num_nodes % 4
    graph = graph.subgraph(graph.ids[:n])
    partition = partition_graph(graph, "blpa", num_shards=4, seed=0)
    assert set(partition.sizes) == {n // 4}
    assert partition.moved[0] > 0
    assert "changed places" in partition.notes[0]


def test_ties_do_not_go_by_node_order() -> None:
    """On a clique every destination is a tie at first, so another seed moves other nodes."""
    pairs = np.array([(u, v) for u in range(20) for v in range(u)]).T
    graph = Graph.from_arrays(np.ones((20, 1)), pairs, np.zeros(20, dtype=int))
    start = balanced_labels(20, 3, 0)
    first_movers = set()
    for seed in range(10):
        order = generator(seed).permutation(20)
        wishes, gains = best_destinations(graph.indptr, graph.indices, start, order, 3)
        first_movers.add(int(order[gains[order] > 0][0]))
        assert (wishes[gains > 0] != start[gains > 0]).all()
    assert len(first_movers) > 3


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_max_iterations_is_honoured(rounds: int) -> None:
    graph = random_graph(11, largest=24)
    assignment = BlpaPartitioner(max_iterations=rounds)(graph, 3, capacity=99, seed=0)
    assert len(assignment.moved) <= rounds
