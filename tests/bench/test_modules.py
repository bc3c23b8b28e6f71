"""The benchmark of a user's own module."""

from __future__ import annotations

from grapheraser.bench import modules


def test_both_sides_are_measured_in_one_run() -> None:
    report = modules.run(["demo"], num_shards=2, aggregations=["mean"], repeats=2)
    (row,) = report["rows"]
    assert (row["dataset"], row["shards"], row["aggregation"]) == ("demo", 2, "mean")
    assert min(row[key] for key in ("first", "median", "p95", "hundred", "pyg")) > 0
    assert len(modules.markdown(report).splitlines()) == 3
