"""What cells measure: against GraphEraser itself."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.aggregation import Ensemble
from grapheraser.aggregation.remembering import KeptEnsemble
from grapheraser.experiments.catalogue import KINDS, Options
from grapheraser.experiments.framework.shared_cells import requests_cell, utility_cell
from grapheraser.experiments.measure.classical_communities import communities
from grapheraser.experiments.measure.inputs import community_of, graph_of, request_of
from grapheraser.graph import Graph, Nodes
from grapheraser.models import resolve_model


@pytest.fixture(scope="module")
def graph(tiny: str) -> Graph:
    return ge.load_dataset(tiny)


def test_kept_posteriors_are_the_ensembles_own(graph: Graph) -> None:
    eraser = ge.GraphEraser(num_shards=4, epochs=2).fit(graph)
    model = resolve_model("gcn")
    plain = Ensemble(eraser.graph_, eraser.partition_, eraser.shards_, model, 0)
    kept = KeptEnsemble.of(plain)
    for positions, shards in (([5, 2, 5], None), ([2, 9], [3, 1]), ([], None)):
        rows = np.array(positions, dtype=np.int64)
        assert np.array_equal(kept.posteriors(rows, shards), plain.posteriors(rows, shards))


def test_f1_after_forgetting_is_that_of_an_eraser_that_unlearned(
    options: Options, graph: Graph
) -> None:
    forget = {"what": "nodes", "share": 0.2, "where": "large"}
    cell = utility_cell(options, options.datasets[0], "gcn", 0, "blpa", forget=forget)
    value = KINDS.get("utility").measure(cell.config)
    eraser = ge.GraphEraser(
        model="gcn:paper", partition="blpa", num_shards=4, aggregation="mean", epochs=2
    ).fit(graph)
    request = request_of(forget, graph, eraser.partition_, 0)
    assert request is not None
    eraser.unlearn(request)
    assert value["f1"]["mean"] == eraser.score(graph.test_nodes)
    assert value["train_nodes"] == len(eraser.graph_.train_nodes)


def test_larger_requests_contain_smaller_ones_and_stay_where_they_should(graph: Graph) -> None:
    partition = ge.partition_graph(graph, "random", num_shards=4)
    for forget in ({"what": "nodes", "where": "large"}, {"what": "community"}):
        small, large = (
            request_of({**forget, "share": share}, graph, partition, 3) for share in (0.25, 0.5)
        )
        assert isinstance(small, Nodes)
        assert isinstance(large, Nodes)
        assert set(small.ids) < set(large.ids)
        if forget["what"] == "nodes":
            assert len(set(partition.shard_of(large.ids).tolist())) <= 2
        else:
            assert set(large.ids) <= set(community_of(graph.training_graph, 3).tolist())


def test_thinning_takes_training_edges_only(options: Options, graph: Graph) -> None:
    config = {**options.data(options.datasets[0], 0), "drop_edges": 0.5}
    thin = graph_of(config)
    before, after = graph.training_graph.num_edges, thin.training_graph.num_edges
    assert after == before - round(0.5 * before)
    assert graph.num_edges - thin.num_edges == before - after


def test_communities_end_where_everyone_agrees_with_most_neighbours(graph: Graph) -> None:
    labels = communities(graph, 0)
    sizes = np.bincount(labels)
    assert (np.diff(sizes) <= 0).all()
    for node in range(graph.num_nodes):
        around = labels[graph.indices[graph.indptr[node] : graph.indptr[node + 1]]]
        if len(around):
            counts = np.bincount(around, minlength=len(sizes))
            assert counts[labels[node]] == counts.max()


def test_isolated_nodes_are_communities_of_their_own() -> None:
    lonely = Graph.from_arrays(np.eye(4), np.array([[0], [1]]), np.zeros(4, dtype=int))
    assert sorted(np.bincount(communities(lonely, 0)).tolist()) == [1, 1, 2]


def test_requests_are_independent_of_each_other(options: Options) -> None:
    cell = requests_cell(options, options.datasets[0], "gcn", "blpa")
    value = KINDS.get("requests").measure(cell.config)
    assert cell.timed
    for what in ("nodes", "edges"):
        assert value[what]["requests"] == 3
        assert value[what]["mean"] > 0
    assert value["nodes"]["retrained"] == 1
    assert 0 <= value["edges"]["retrained"] <= 1
