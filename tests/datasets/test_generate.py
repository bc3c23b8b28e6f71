"""Generated graphs: what they look like, and that every block stands for itself."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.datasets import GeneratedGraph
from grapheraser.errors import ParameterError
from grapheraser.graph.roles import CONTEXT, TEST


def homophily(graph: ge.Graph) -> float:
    """The share of edges between nodes of one class."""
    ends = graph.labels(graph.edges.ravel()).reshape(-1, 2)
    return float((ends[:, 0] == ends[:, 1]).mean())


def hill(degree: np.ndarray, share: float = 0.02) -> float:
    """Hill's estimate of the exponent of a tail."""
    ordered = np.sort(degree)[::-1].astype(float)
    k = int(len(degree) * share)
    return 1.0 + 1.0 / float(np.log(ordered[:k] / ordered[k]).mean())


def test_degrees_have_the_mean_and_the_heavy_tail_that_were_asked_for() -> None:
    graph = ge.generate_graph(30_000, degree=16, num_features=2)
    assert 14.5 < graph.degree.mean() <= 16
    assert graph.degree.max() > 25 * graph.degree.mean()
    assert np.percentile(graph.degree, 10) < 0.4 * graph.degree.mean()
    steep = ge.generate_graph(30_000, degree=16, num_features=2, tail=4.0)
    assert hill(graph.degree) < 3.2 < hill(steep.degree)


@pytest.mark.parametrize("wanted", [0.2, 0.5, 0.9])
def test_so_many_edges_join_nodes_of_one_class(wanted: float) -> None:
    graph = ge.generate_graph(20_000, num_features=2, homophily=wanted, mislabelled=0.0)
    assert homophily(graph) == pytest.approx(wanted, abs=0.02)


def test_edges_within_communities_are_more_than_chance() -> None:
    plan = GeneratedGraph(20_000, communities=40)
    pairs = plan.edges(0, plan.num_pairs)
    assert ((pairs[:, 0] - pairs[:, 1]) % 40 == 0).mean() > 0.3


def test_a_block_is_the_same_whatever_it_is_computed_with() -> None:
    plan = GeneratedGraph(3_001, degree=7, num_classes=4, labelled=0.6, seed=5)
    edges, nodes = plan.edges(0, plan.num_pairs), plan.nodes(0, plan.num_nodes)
    assert np.array_equal(plan.edges(777, 1_234), edges[777:1_234])
    assert np.array_equal(np.concatenate([*plan.edge_blocks(500)]), edges)
    for part, whole in zip(map(np.asarray, plan.nodes(1_000, 1_700)), nodes, strict=True):
        assert np.array_equal(part, np.asarray(whole)[1_000:1_700])
    assert sum(len(block.ids) for block in plan.node_blocks(256)) == 3_001
    assert edges.min() >= 0
    assert edges.max() < 3_001


def test_the_same_arguments_give_the_same_bytes_everywhere() -> None:
    plan = GeneratedGraph(500, degree=6, num_features=5, num_classes=3, labelled=0.9, seed=1)
    content = plan.edges(0, plan.num_pairs).tobytes()
    content += b"".join(np.asarray(part).tobytes() for part in plan.nodes(0, 500))
    assert hashlib.sha256(content).hexdigest() == RECORDED


def test_shares_of_labels_and_roles_are_those_asked_for() -> None:
    graph = ge.generate_graph(20_000, num_features=2, labelled=0.5, test_share=0.3)
    assert (graph.role == CONTEXT).mean() == pytest.approx(0.5, abs=0.02)
    assert (graph.role == TEST).mean() == pytest.approx(0.15, abs=0.02)
    assert np.array_equal(graph.y == -1, graph.role == CONTEXT)


def test_features_tell_classes_apart_as_far_as_the_signal_says() -> None:
    def spread(signal: float) -> float:
        plan = GeneratedGraph(4_000, num_features=16, signal=signal, mislabelled=0.0)
        block = plan.nodes(0, 4_000)
        means = np.stack([block.x[block.y == k].mean(axis=0) for k in range(10)])
        return float(means.std(axis=0).mean())

    assert spread(0.0) < 0.1 < spread(0.5) < spread(2.0)


def test_seeds_give_other_graphs_and_names_are_for_people() -> None:
    one, two = ge.generate_graph(300, seed=0), ge.generate_graph(300, seed=1)
    assert one != two
    assert one == ge.generate_graph(300, name="mine")
    assert ge.generate_graph(300, name="mine").name == "mine"


@pytest.mark.parametrize(
    "wrong",
    [{"num_nodes": 1}, {"tail": 2.0}, {"homophily": 1.5}, {"communities": 3}, {"num_classes": 1}],
)
def test_what_makes_no_graph_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        ge.generate_graph(**{"num_nodes": 100, **wrong})  # type: ignore[arg-type]


RECORDED = "38ef4815aea2b501509354a9e2e3ce6762f42e34544c7713102bb2e5baf2b4e0"
