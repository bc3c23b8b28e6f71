"""The larger embedded graph, and how much it is like a real one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import grapheraser as ge
from grapheraser.datasets.papers import PAPERS, papers_graph

LARGE = "2748dc88bfa024428904272eca2ad16759931c97f583bf2365e93f35ae1b1d94"


@pytest.fixture(scope="module")
def large() -> ge.Graph:
    return ge.load_dataset("demo-large")


@dataclass(frozen=True)
class Portrait:
    """A graph in figures, worked out apart from the package.

    Attributes:
        degrees: quartiles, the 90th and the 99th percentile.
        mean_degree, largest_degree: of all nodes.
        tail: Hill's estimate of the exponent, from the top 2 % of the degrees.
        homophily: share of edges within a class.
        transitivity: triangles over connected triples.
        words, spread: of a node, mean and standard deviation.
        common: share of the nodes that have the most common word.
        alike: mean cosine of the words of two ends of an edge, and of two nodes of different
            classes.
    """

    degrees: tuple[float, ...]
    mean_degree: float
    largest_degree: int
    tail: float
    homophily: float
    transitivity: float
    words: float
    spread: float
    common: float
    alike: tuple[float, float]


def portrait(graph: ge.Graph) -> Portrait:
    other = nx.Graph(graph.edges.tolist())
    other.add_nodes_from(graph.ids.tolist())
    degrees = np.array([degree for _, degree in other.degree()])
    top = np.sort(degrees)[::-1]
    head = len(top) // 50
    y = dict(zip(graph.ids.tolist(), graph.y.tolist(), strict=True))
    bag = graph.x.astype(bool).astype(np.float64)
    length = np.asarray(bag.sum(axis=1)).ravel()
    unit = sp.diags_array(1 / np.sqrt(np.maximum(length, 1))) @ bag
    rng = np.random.default_rng(0)
    edges = np.searchsorted(graph.ids, rng.permutation(graph.edges)[:4000]).T
    pairs = rng.integers(graph.num_nodes, size=(2, 20_000))
    pairs = pairs[:, graph.y[pairs[0]] != graph.y[pairs[1]]]
    return Portrait(
        tuple(np.quantile(degrees, [0.25, 0.5, 0.75, 0.9, 0.99]).tolist()),
        float(degrees.mean()),
        int(top[0]),
        float(1 + 1 / np.log(top[:head] / top[head]).mean()),
        float(np.mean([y[u] == y[v] for u, v in other.edges()])),
        nx.transitivity(other),
        float(length.mean()),
        float(length.std()),
        float(np.asarray(bag.mean(axis=0)).max()),
        (_cosine(unit, edges), _cosine(unit, pairs)),
    )


def _cosine(unit: sp.csr_array, pairs: np.ndarray) -> float:
    return float(unit[pairs[0]].multiply(unit[pairs[1]]).sum(axis=1).mean())


def test_it_is_the_same_everywhere(large: ge.Graph) -> None:
    assert large.fingerprint == LARGE
    assert large.name == "demo-large"
    assert large.notes == ()


def test_it_has_the_size_of_pubmed_and_the_words_of_cora(large: ge.Graph) -> None:
    assert large.num_nodes == PAPERS == 24_000
    assert (large.num_classes, large.num_features) == (7, 1_500)
    assert (len(large.train_nodes), len(large.test_nodes)) == (19_200, 4_800)
    assert set(large.x.data.tolist()) == {1.0}, "a bag of words"
    assert large.degree.min() == 1, "every paper cites or is cited"


def test_another_seed_is_another_graph(large: ge.Graph) -> None:
    other = papers_graph(seed=1)
    assert not np.array_equal(other.edges[:100], large.edges[:100])
    assert not np.array_equal(other.y, large.y)


@pytest.mark.data
@pytest.mark.long
@pytest.mark.parametrize("name", ["cora", "pubmed"])
def test_its_degrees_homophily_and_triangles_are_like_those_of_a_real_graph(
    large: ge.Graph, data_root: Path, name: str
) -> None:
    ours, real = portrait(large), portrait(ge.load_dataset(name, data_root))
    assert ours.mean_degree == pytest.approx(real.mean_degree, rel=0.15)
    assert ours.largest_degree == pytest.approx(real.largest_degree, rel=0.15)
    assert ours.tail == pytest.approx(real.tail, rel=0.2)
    assert ours.homophily == pytest.approx(real.homophily, abs=0.02)
    # Cora lies at 0.09, Pubmed at 0.05.
    assert real.transitivity / 2 < ours.transitivity < 2.5 * real.transitivity


@pytest.mark.data
def test_its_degrees_and_words_are_distributed_like_those_of_cora(
    large: ge.Graph, data_root: Path
) -> None:
    ours, real = portrait(large), portrait(ge.load_dataset("cora", data_root))
    assert ours.degrees == real.degrees
    assert ours.words == pytest.approx(real.words, rel=0.05)
    assert ours.spread == pytest.approx(real.spread, rel=0.1)
    assert ours.common == pytest.approx(real.common, rel=0.1)
    assert ours.alike == pytest.approx(real.alike, rel=0.25)
    shares = [np.sort(np.bincount(g.y))[::-1] / g.num_nodes for g in (large, _cora(data_root))]
    assert np.abs(shares[0] - shares[1]).max() < 0.02, "classes of the same sizes"


@pytest.mark.data
def test_a_gnn_and_words_alone_do_as_well_on_it_as_on_cora(
    large: ge.Graph, data_root: Path
) -> None:
    """Neither a toy that every model solves, nor noise."""
    for model, distance in (("gcn", 0.04), ("mlp", 0.05)):
        scores = [_from_scratch(model, graph) for graph in (large, _cora(data_root))]
        assert scores[0] == pytest.approx(scores[1], abs=distance), model


def _cora(data_root: Path) -> ge.Graph:
    return ge.load_dataset("cora", data_root)


def _from_scratch(model: str, graph: ge.Graph) -> float:
    eraser = ge.GraphEraser(
        model=model, num_shards=1, partition="random", aggregation="mean", global_expert=False
    )
    return eraser.fit(graph).score(graph.test_nodes)
