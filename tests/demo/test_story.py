"""What the demonstration does, in which order, and what it measures."""

from __future__ import annotations

import pytest

import grapheraser as ge
from grapheraser.demo.story import DemoResult, run_demo
from grapheraser.errors import ParameterError


def test_nodes_are_forgotten_before_edges_one_by_one(result: DemoResult) -> None:
    counts = [(r.counts["nodes"], r.counts["edges"]) for r in result.receipts]
    assert counts == [(1, 0), (1, 0), (0, 1), (0, 1)]
    assert [r.sequence for r in result.receipts] == [1, 2, 3, 4]
    left = result.eraser.graph_
    assert left.num_nodes == result.graph.num_nodes - 2
    assert not left.contains([result.scene.node]).any()


def test_what_is_left_is_scored_before_after_and_from_scratch(result: DemoResult) -> None:
    afresh = ge.GraphEraser(**result.eraser.get_params()).fit(result.eraser.graph_)
    assert result.f1["after"] == afresh.score(result.eraser.graph_.test_nodes)
    before = ge.GraphEraser(**result.eraser.get_params()).fit(result.graph)
    assert result.f1["before"] == before.score(result.graph.test_nodes)
    assert result.f1.keys() == {"before", "after", "scratch", "retrained"}


def test_rivals_are_measured_in_nodes_forgotten(result: DemoResult) -> None:
    times = [receipt.timings["total"] for receipt in result.receipts]
    assert result.seconds["node"] == pytest.approx((times[0] + times[1]) / 2)
    assert result.seconds["edge"] == pytest.approx((times[2] + times[3]) / 2)
    for rival in ("retrain", "afresh", "pyg"):
        assert result.times(rival) == result.seconds[rival] / result.seconds["node"]
    assert result.to_dict()["speedup"].keys() == {"retrain", "afresh", "pyg"}


def test_a_partition_that_was_computed_from_the_data_is_kept_for_the_fresh_fit(
    graph: ge.Graph,
) -> None:
    eraser = ge.GraphEraser(partition="blpa", num_shards=3, epochs=2)
    found = run_demo(graph, eraser, requests=1)
    assert found.proof.is_identical
    assert found.receipts[-1].statement == "exact given partition"


def test_more_requests_than_there_are_edges_for_are_refused(graph: ge.Graph) -> None:
    with pytest.raises(ParameterError, match=r"leave .* edges"):
        run_demo(graph, ge.GraphEraser(num_shards=3, epochs=1), requests=350)
