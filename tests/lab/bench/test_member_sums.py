"""Sums that were changed by requests are compared with sums that were made once more."""

from __future__ import annotations

import numpy as np

import grapheraser as ge
from grapheraser.execution import LocalExecutor
from grapheraser_lab.bench import member_sums
from grapheraser_lab.timing import median_of


def test_no_sum_differs_after_requests_of_every_kind() -> None:
    report = member_sums.run(["5e3"], requests=10)
    (row,) = report["rows"]
    assert set(row["requests"]) == {"Nodes", "Edges", "Features", "Labels"}
    assert row["same_graph"]
    assert row["verified"]
    assert {key.split("/")[1] for key in row["sums"]} >= {"classes", "pairs", "sums", "gram"}
    assert all(found["numbers"] > 0 == found["differ"] for found in row["sums"].values())
    text = member_sums.markdown(report)
    assert "| `features/gram` |" in text
    assert "none" in text


def test_a_node_that_is_still_counted_is_noticed() -> None:
    graph = ge.generate_graph(400, num_features=16)
    eraser = ge.GraphEraser("closed-form", executor=LocalExecutor(workers=1)).fit(graph)
    rest = graph.without(ge.Nodes(graph.train_nodes[:1]))
    kept, again = member_sums._sums(eraser), member_sums.summed(rest, eraser)
    assert kept.keys() == again.keys()
    assert all((value != again[key]).any() for key, value in kept.items())


def test_the_error_of_a_median_is_that_of_medians_of_other_samples() -> None:
    drawn = np.random.default_rng(0).normal(5, 1, size=(400, 100))
    median, error = median_of(drawn[0].tolist())
    assert median == np.median(drawn[0])
    assert 0.7 < error / np.median(drawn, axis=1).std() < 1.4
