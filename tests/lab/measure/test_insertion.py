"""Nodes inserted later: against an eraser that is asked to insert them."""

from __future__ import annotations

from dataclasses import replace

import grapheraser as ge
from grapheraser_lab.experiments.catalogue import KINDS, Options
from grapheraser_lab.experiments.insertion import _cell


def test_all_three_stages_are_measured_on_the_same_test_nodes(options: Options) -> None:
    options = replace(options, protocol="literal")
    cell = _cell(options, options.datasets[0], "gcn", "blpa", 0)
    value = KINDS.get("insertion").measure({**cell.config, "count": 5})
    graph = ge.load_dataset(options.datasets[0])
    assert (value["inserted"], value["test_nodes"]) == (5, len(graph.test_nodes))
    fresh = ge.GraphEraser(
        model="gcn:paper", partition="blpa", num_shards=4, aggregation="mean", epochs=2
    ).fit(graph)
    mean = KINDS.get("insertion").measure({**cell.config, "count": 5, "aggregation": "mean"})
    assert mean["fresh"] == fresh.score(graph.test_nodes)
    assert value["retrained"] == 1
    assert all(0 <= value[stage] <= 1 for stage in ("without", "after", "fresh"))


def test_facts_count_edges_in_both_ways(options: Options) -> None:
    value = KINDS.get("facts").measure(options.data(options.datasets[0], 0))
    graph = ge.load_dataset(options.datasets[0])
    assert value["edges"] == len({tuple(sorted(edge)) for edge in graph.edges.tolist()})
    assert value["entries"] == 2 * value["edges"]
    assert value["train_nodes"] + value["test_nodes"] == value["nodes"]
