"""What the demonstration does, in which order, and what it measures."""

from __future__ import annotations

import pytest

import grapheraser as ge
from grapheraser.demo.story import DemoResult, run_demo
from grapheraser.errors import ParameterError
from tests.strategies import HAS_TORCH


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
    assert result.rivals == (("retrain", "afresh", "pyg") if HAS_TORCH else ("retrain", "afresh"))
    for rival in result.rivals:
        assert result.times(rival) == result.seconds[rival] / result.seconds["node"]
    assert result.to_dict()["speedup"].keys() == set(result.rivals)


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


def test_what_decides_is_counted_and_said(result: DemoResult) -> None:
    eraser = ge.GraphEraser(**result.eraser.get_params()).fit(result.graph)
    shard = dict(
        zip(eraser.partition_.nodes.tolist(), eraser.partition_.labels.tolist(), strict=True)
    )
    pairs = [(u, v) for u, v in result.graph.edges.tolist() if u in shard and v in shard]
    inside = sum(shard[u] == shard[v] for u, v in pairs)
    assert result.edges_inside == inside / len(set(shard.values()))
    nodes = result.graph.test_nodes[:100].tolist()
    others = [
        sum(each.weight for each in eraser.explain(node).members if "shard" not in each.member)
        for node in nodes
    ]
    assert result.shards_decide == pytest.approx(1 - sum(others) / len(others))
    assert 0 < result.shards_decide < 1
    said = f"a shard holds {result.edges_inside:.0f} edges on average"
    assert said in result.decides
    assert f"{result.shards_decide:.0%} of the decision" in result.decides
    assert "closed-form members" in result.decides
