"""Timed requests of a cell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import grapheraser as ge
from grapheraser_lab.experiments.catalogue import KINDS, Options
from grapheraser_lab.framework.shared_cells import SCRATCH, pyg_cell, requests_cell
from grapheraser_lab.measure.requests import _requests


def test_requests_are_independent_of_each_other(options: Options) -> None:
    cell = requests_cell(options, options.datasets[0], "gcn", "blpa")
    value = KINDS.get("requests").measure(cell.config)
    assert cell.timed
    for what in ("nodes", "edges"):
        assert len(value[what]["seconds"]) == options.requests == 3
        assert all(seconds > 0 for seconds in value[what]["seconds"])
    assert value["nodes"]["retrained"] == [1, 1, 1]
    assert set(value["edges"]["retrained"]) <= {0, 1}
    assert value["engine"] == "cpu"


def test_an_edge_that_is_cut_retrains_nothing(options: Options) -> None:
    cell = requests_cell(
        replace(options, requests=40), options.datasets[0], "gcn", "random", num_shards=None
    )
    value = KINDS.get("requests").measure(cell.config)
    graph = ge.load_dataset(options.datasets[0])
    part = ge.partition_graph(graph, "random", num_shards=4)
    asked = _requests(graph, 40, 0)["edges"][1:]
    inside = [
        int(len(set(part.shard_of(np.array(request.pairs[0])))) == 1)
        for request in asked
        if isinstance(request, ge.Edges)
    ]
    assert value["edges"]["retrained"] == inside


def test_scratch_times_nodes_alone_and_as_many_as_are_asked_for(options: Options) -> None:
    cell = requests_cell(options, options.datasets[0], "gcn", SCRATCH)
    value = KINDS.get("requests").measure(cell.config)
    assert len(value["nodes"]["seconds"]) == options.scratch_requests == 2
    assert "edges" not in value


def test_few_large_shards_are_asked_less_often(options: Options) -> None:
    many = replace(options, requests=100, scratch_requests=5)
    asked = {
        k: requests_cell(many, options.datasets[0], "gcn", "blpa", num_shards=k)["requests"]
        for k in (2, 10, 100)
    }
    assert asked == {2: 10, 10: 50, 100: 100}
    assert requests_cell(many, options.datasets[0], "gcn", "blpa")["requests"] == 100


def test_pyg_is_timed_for_a_few_epochs(options: Options) -> None:
    cell = pyg_cell(replace(options, epochs=40), options.datasets[0], "gcn")
    value = KINDS.get("pyg-scratch").measure(cell.config)
    assert cell.timed
    assert value["epochs_measured"] == 11
    assert value["seconds"] > 0
