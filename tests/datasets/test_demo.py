"""The embedded graph."""

from __future__ import annotations

import networkx as nx

import grapheraser as ge
from grapheraser.datasets.demo import demo_graph

DEMO = "457d02f1400feffac44798e47c76efa1b47e5b858bf46a6883527ef6463b46a6"


def test_the_demo_graph_is_the_same_everywhere(demo: ge.Graph) -> None:
    assert demo.fingerprint == DEMO
    assert demo == ge.load_dataset("demo")


def test_the_demo_graph_is_of_the_size_of_cora(demo: ge.Graph) -> None:
    assert demo.num_nodes == 2700
    assert 4000 < demo.num_edges < 7000
    assert demo.num_classes == 7
    assert demo.num_features == 1400
    assert (len(demo.train_nodes), len(demo.test_nodes)) == (2160, 540)
    assert demo.notes == ()


def test_the_demo_graph_is_citation_like(demo: ge.Graph) -> None:
    assert demo.degree.max() > 15 * demo.degree.mean(), "heavy-tailed degrees"
    ends = demo.y[demo.edge_index]
    assert (ends[0] == ends[1]).mean() > 0.6, "papers cite their own topic most"
    assert set(demo.x.data.tolist()) == {1.0}, "a bag of words"
    assert demo.x.nnz < 0.02 * demo.num_nodes * demo.num_features
    other = nx.Graph(demo.edge_index.T.tolist())
    communities = nx.community.label_propagation_communities(other)
    assert nx.community.modularity(other, communities) > 0.4


def test_another_seed_is_another_demo_graph() -> None:
    assert demo_graph(seed=1) != demo_graph(seed=0)
