"""What is timed was carried out, and the table names it."""

from __future__ import annotations

from grapheraser_lab.bench import cost


def test_every_operation_is_timed() -> None:
    report = cost.run(["demo"], ["gcn", "closed-form"], requests=2)
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
    text = cost.markdown(report)
    assert "our engine from scratch" in text
    assert "geometric mean" in text
