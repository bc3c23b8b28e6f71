"""Graphs and requests of a cell."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.graph import Graph, Nodes
from grapheraser_lab.experiments.catalogue import Options
from grapheraser_lab.measure.inputs import community_of, graph_of, request_of


@pytest.fixture(scope="module")
def graph(tiny: str) -> Graph:
    return ge.load_dataset(tiny)


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


def test_rows_of_features_are_divided_by_their_sum(options: Options, graph: Graph) -> None:
    rows = graph_of({**options.data(options.datasets[0], 0), "features": "rows"})
    sums = rows.x.sum(axis=1)
    there = graph.x.sum(axis=1) > 0
    assert sums[there] == pytest.approx(1)
    assert np.array_equal(rows.x.indices, graph.x.indices)
    assert rows.x.has_sorted_indices
    assert rows.fingerprint != graph.fingerprint


def test_thinning_takes_training_edges_only(options: Options, graph: Graph) -> None:
    config = {**options.data(options.datasets[0], 0), "drop_edges": 0.5}
    thin = graph_of(config)
    before, after = graph.training_graph.num_edges, thin.training_graph.num_edges
    assert after == before - round(0.5 * before)
    assert graph.num_edges - thin.num_edges == before - after
