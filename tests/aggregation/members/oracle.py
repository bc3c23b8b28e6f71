"""Graphs that try members hard, plain Python to judge them by, and steps from graph to graph."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser import graph as graphs
from grapheraser.aggregation import Change, Ensemble
from grapheraser.aggregation.members.base import Ids
from grapheraser.aggregation.sample.membership import sampled_nodes
from grapheraser.eraser.plan import plan_removal
from grapheraser.graph import TEST, TRAIN, UNLABELLED
from grapheraser.models import PRESETS
from grapheraser.seeding import derive
from tests.strategies import requests_for


def random_graph(
    seed: int = 0,
    *,
    n: int = 40,
    num_features: int = 10,
    density: float = 0.3,
    edges: int = 80,
    classes: int = 3,
    hub: bool = False,
    apart: int = 1,
    in_pages: bool = False,
) -> ge.Graph:
    """With test nodes, an isolated node, a node without features and a training node unlabelled.

    A hub is next to every node but the isolated one. Ids are multiples of ``apart``.
    Held in pages, dense features are kept with their zeros, and all training nodes have labels.
    """
    rng = np.random.default_rng(seed)
    ids = np.sort(rng.choice(3 * n, size=n, replace=False)) * apart
    x = rng.normal(size=(n, num_features)) * 10.0 ** rng.integers(-1, 3, size=num_features)
    x *= rng.random((n, num_features)) < density
    x[n // 2] = 0
    linked = np.delete(np.arange(n), n // 3)
    pairs = linked[rng.integers(len(linked), size=(2, edges))]
    if hub:
        spokes = linked[linked != linked[0]]
        pairs = np.hstack([pairs, [np.full(len(spokes), linked[0]), spokes]])
    pairs = pairs[:, pairs[0] != pairs[1]]
    graph = ge.Graph.from_arrays(
        x,
        ids[pairs],
        rng.integers(classes, size=n),
        ids=ids,
        test=rng.permutation(ids[1:])[: n // 4],
        num_classes=classes,
    )
    return graph if in_pages else unlabelled(graph, graph.train_nodes[-1:])


def unlabelled(graph: ge.Graph, nodes: Iterable[int]) -> ge.Graph:
    """The graph without these labels."""
    y = graph.y.copy()
    y[graph.positions(list(nodes))] = UNLABELLED
    return graph.with_fields(y=y)


def as_test_nodes(graph: ge.Graph, nodes: Iterable[int]) -> ge.Graph:
    """The graph with these nodes there, but not trained on."""
    role = graph.role.copy()
    role[graph.positions(list(nodes))] = TEST
    return graph.with_fields(role=role)


GRAPHS: dict[str, ge.Graph] = {
    "sparse": random_graph(1),
    "dense": random_graph(2, density=0.9),
    "about half dense": random_graph(3, n=20, num_features=4, density=0.55),
    "hub": random_graph(4, n=110, density=0.2, hub=True),
    "many edges": random_graph(5, edges=400),
    "no edges": random_graph(6, edges=0),
    "one class": random_graph(7, classes=1),
    "far ids": random_graph(10, n=300, edges=500, apart=10**10),
    "dense, in pages": random_graph(12, n=300, density=0.9, edges=600, in_pages=True),
    "tiny": random_graph(11, n=5, num_features=3, edges=6),
}


def ensemble_of(graph: ge.Graph, seed: int = 0) -> Ensemble:
    """No shards at all."""
    partition = ge.partition_graph(graph, "hash", num_shards=1)
    return Ensemble(graph, partition, {}, PRESETS["gcn"], seed)


def sample_of(ensemble: Ensemble, share: float = 0.4, count: int | None = None) -> Ids:
    return sampled_nodes(ensemble.graph, (share, count), ensemble.seed)


def known(graph: ge.Graph) -> dict[int, int]:
    """The class of every training node that has one."""
    rows = zip(graph.ids.tolist(), graph.y.tolist(), graph.role.tolist(), strict=True)
    return {node: y for node, y, role in rows if role == TRAIN and y != UNLABELLED}


def prior(graph: ge.Graph) -> NDArray[np.float64]:
    """Shares of the classes with one more node of each."""
    counts = np.bincount(list(known(graph).values()), minlength=graph.num_classes)
    shares: NDArray[np.float64] = (counts + 1) / (counts.sum() + graph.num_classes)
    return shares


def mixed(a: int, b: int) -> int:
    """`kernels.hashing.paired` in Python's own integers."""
    whole = 2**64
    z = (a + b * 0x9E3779B97F4A7C15) % whole
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % whole
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % whole
    return z ^ (z >> 31)


def chosen(graph: ge.Graph, node: int, allowed: Iterable[int], most: int, key: int) -> list[int]:
    """The allowed neighbours with the smallest hashes."""
    own = mixed(key, node)
    near = set(graph.neighbours(node).tolist()) & set(allowed)
    return sorted(sorted(near, key=lambda other: mixed(own, other))[:most])


def labels_key(seed: int) -> int:
    return derive(seed, "labels around")


def step(ensemble: Ensemble, data: st.DataObject) -> tuple[Ensemble, Change] | None:
    """One request or insertion; None where it would leave no training node."""
    graph = ensemble.graph
    none = np.zeros(0, dtype=np.int64)
    if data.draw(st.integers(0, 4)) == 0:
        node = int(graph.ids.max()) + data.draw(st.integers(1, 3))
        wide = min(8, graph.num_features)
        row = data.draw(st.lists(st.sampled_from([0.0, 1.5]), min_size=wide, max_size=wide))
        features = np.zeros(graph.num_features)
        features[: len(row)] = row
        others = np.unique(data.draw(st.lists(st.sampled_from(graph.ids.tolist()), max_size=4)))
        label = data.draw(st.integers(0, graph.num_classes - 1))
        after = graph.with_node(node, features, label, others.astype(np.int64))
        touched, gone = np.union1d(others.astype(np.int64), [node]), none
    else:
        removal = graphs.coalesce(graph, data.draw(requests_for(graph)))
        after = graph.without(removal)
        if not known(after):
            return None
        touched = plan_removal(graph, ensemble.partition, removal).touched
        gone = removal.nodes
    return ensemble_of(after, ensemble.seed), Change(ensemble, frozenset(), touched, gone)
