"""The benchmark of a user's own module."""

from __future__ import annotations

from grapheraser_lab.bench import engines


def test_both_sides_are_measured_in_one_run() -> None:
    report = engines.modules(["demo"], num_shards=2, aggregations=["mean"], repeats=2)
    (row,) = report["rows"]
    assert (row["dataset"], row["shards"], row["aggregation"]) == ("demo", 2, "mean")
    assert min(row[key] for key in ("first", "median", "p95", "hundred", "pyg")) > 0
    assert len(engines.markdown(report).splitlines()) == 3
