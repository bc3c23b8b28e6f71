"""What is timed was carried out, and the table names it."""

from __future__ import annotations

from grapheraser_lab.bench import cost, scratch


def test_every_operation_is_timed_and_the_table_names_its_rivals() -> None:
    report = cost.run(["demo"], ["gcn", "closed-form"], requests=3)
    assert [(row["dataset"], row["model"]) for row in report["rows"]] == [
        ("demo", "gcn"),
        ("demo", "closed-form"),
    ]
    for row in report["rows"]:
        assert 0 < sum(row["parts"].values()) <= 1.5 * row["request"]
        assert len(row["runs"]["request"]) == 3
    rivals = scratch.run(["demo"], ["gcn"], measured=1)
    assert all(rivals["rows"][0][name] > 0 for name in scratch.RIVALS)
    text = cost.markdown(cost.beside(report, rivals))
    assert "our engine from scratch" in text
    assert "geometric mean" in text
    assert "±" in text
