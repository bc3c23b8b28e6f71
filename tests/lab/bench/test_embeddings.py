"""The benchmark of embeddings: splits that leak nothing, rivals that do what they are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
from grapheraser_lab.bench import embeddings as bench
from grapheraser_lab.measure.embeddings import (
    Split,
    _walks,
    adjacency,
    fastrp,
    link_auc,
    probe,
)


@pytest.fixture(scope="module")
def graph() -> ge.Graph:
    return ge.load_dataset("demo")


@pytest.fixture(scope="module")
def split(graph: ge.Graph) -> Split:
    return Split.of(graph.num_nodes, graph.edges, seed=0)


def test_a_split_holds_out_edges_and_draws_pairs_without_one(split: Split) -> None:
    known = set(map(tuple, split.edges.tolist()))
    kept = set(map(tuple, split.kept.tolist()))
    pairs = {name: [set(map(tuple, p.tolist())) for p in two] for name, two in split.pairs.items()}
    assert pairs["learn"][0] <= kept
    assert not (pairs["validate"][0] | pairs["test"][0]) & kept
    assert not pairs["validate"][0] & pairs["test"][0]
    for edges, others in pairs.values():
        assert len(edges) == len(others)
        assert edges <= known
        assert not others & known
    assert sum(map(len, split.nodes)) == split.num_nodes == len(set().union(*map(set, split.nodes)))


def test_rows_that_tell_the_class_score_well_and_noise_does_not(
    graph: ge.Graph, split: Split
) -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(graph.num_nodes, 16)).astype(np.float32)
    told = noise + 3 * np.eye(16, dtype=np.float32)[graph.y]
    assert probe(told, graph.y, split)[1] > 0.9
    assert probe(noise, graph.y, split)[1] < 0.5
    assert 0.45 < link_auc(noise, split)[1] < 0.55 < link_auc(told, split)[1]


def test_walks_follow_edges_and_p_decides_about_turning_back(graph: ge.Graph) -> None:
    matrix = adjacency(graph.num_nodes, graph.edges)
    matrix.sort_indices()
    back = {}
    for p in (0.1, 10.0):
        walks = _walks(matrix, np.arange(300), 12, p, 1.0, np.random.default_rng(0))
        ends = np.stack([walks[:, :-1].ravel(), walks[:, 1:].ravel()], axis=1)
        assert graph.has_edges(ends[ends[:, 0] != ends[:, 1]]).all()
        back[p] = float((walks[:, 2:] == walks[:, :-2]).mean())
    assert back[0.1] > 2 * back[10.0]


def test_reports_are_kept_and_become_tables(tmp_path: Path) -> None:
    methods = (bench.OURS, "FastRP")
    bench.RIVALS["FastRP"] = lambda n, edges, seed: fastrp(n, edges, seed, draws=1)
    try:
        report = bench.run(["demo"], methods, folder=tmp_path)
    finally:
        bench.RIVALS["FastRP"] = fastrp
    assert bench.run(["demo"], methods, folder=tmp_path)["cells"] == report["cells"]
    assert all(cell["f1"] > 0.3 and cell["auc"] > 0.55 for cell in report["cells"])
    told = bench.markdown(report)
    assert "F1 of Embedder over that of the best rival" in told
