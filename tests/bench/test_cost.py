"""What is timed was carried out, and both tables name it."""

from __future__ import annotations

import numpy as np

from grapheraser.bench import cost


def test_every_operation_is_timed_on_both_kinds_of_graph() -> None:
    report = cost.run(["demo"], ["gcn", "closed-form"], sizes=[(2000, 6)], requests=2)
    assert [(row["dataset"], row["model"]) for row in report["rows"]] == [
        ("demo", "gcn"),
        ("demo", "closed-form"),
    ]
    gcn, closed = report["rows"]
    assert gcn["scratch"] > 0
    assert gcn["pyg"] > 0
    assert closed["scratch"] is None
    for row in report["rows"]:
        assert 0 < sum(row["parts"].values()) <= 1.5 * row["request"]
    assert [row["model"] for row in report["sizes"]] == ["gcn", "closed-form"]
    for row in report["sizes"]:
        assert row["nodes"] == 2000
        assert row["request_and_save"] > 0
        assert row["peak_gb"] > 0.01
    text = cost.markdown(report)
    assert "our engine from scratch" in text
    assert "predict 1,000" in text
    assert "geometric mean" in text


def test_half_of_the_generated_edges_join_like_nodes() -> None:
    x, edges, y = cost.generated_arrays(5000, 10)
    assert x.shape == (5000, 100)
    assert edges.min() >= 0
    assert edges.max() < 5000
    like = (y[edges[0]] == y[edges[1]]).mean()
    assert 0.5 < like < 0.6
    again = cost.generated_arrays(5000, 10)
    assert all(np.array_equal(a, b) for a, b in zip((x, edges, y), again, strict=True))
