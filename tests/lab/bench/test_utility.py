"""The utility benchmark goes on where it was, and prints the paper's own figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from grapheraser_lab.bench import utility


def test_finished_cells_are_not_measured_again(tmp_path: Path) -> None:
    told: list[str] = []
    options = {"partitions": ["hash"], "seeds": 1, "folder": tmp_path, "epochs": 2}
    first = utility.run(["demo"], ["gcn"], progress=told.append, **options)  # type: ignore[arg-type]
    assert told[-1] == "2 cells measured, 2 in all"
    again = utility.run(["demo"], ["gcn"], progress=told.append, **options)  # type: ignore[arg-type]
    assert told[-1] == "0 cells measured, 2 in all"
    assert again["cells"] == first["cells"]
    assert [cell["partition"] for cell in first["cells"]] == ["scratch", "hash"]
    assert list(first["cells"][1]["f1"]) == list(utility.MEMBERS)


def test_every_partition_and_aggregation_is_measured_for_the_papers_table(tmp_path: Path) -> None:
    report = utility.partitions(
        ["demo"], ["gcn"], partitions=["hash"], seeds=1, folder=tmp_path, epochs=2
    )
    assert report["benchmark"] == "utility-partitions"
    assert list(report["cells"][1]["f1"]) == list(utility.AGGREGATIONS)


def test_one_table_has_every_partition_and_aggregation_beside_scratch_and_the_paper() -> None:
    both = {"mean": 0.5, "pooled": 0.9}
    report = {
        "benchmark": "utility-partitions",
        "cells": [
            _cell("scratch", 0, {"scratch": 0.8}),
            _cell("scratch", 1, {"scratch": 0.9}),
            _cell("hash", 0, dict.fromkeys(utility.AGGREGATIONS, 0.6) | both),
            _cell("hash", 1, dict.fromkeys(utility.AGGREGATIONS, 0.7) | both),
            _cell("blpa", 0, dict.fromkeys(utility.AGGREGATIONS, 0.4)),
        ],
    }
    table = utility.markdown(report).split("\n")
    assert table[0] == "| data | model | aggregation | scratch | hash | blpa | paper's best |"
    rows = table[2 : 2 + len(utility.AGGREGATIONS)]
    assert rows[0] == "| cora | gcn | mean | 0.850 (0.739) | 0.500 | 0.400 (0.590) | 0.676 |"
    learned = "| cora | gcn | learned | 0.850 (0.739) | 0.650 | 0.400 (0.676) | 0.676 |"
    assert learned in rows
    # Ratios are to scratch of the same seeds: blpa was measured with the first alone.
    assert "| pooled | 1.059 (1.059) | 0.500 (0.500) |" in table


def test_the_defaults_are_judged_by_the_same_model_and_by_the_best_one() -> None:
    """Of two models from scratch, 0.8 and 0.4: a ratio to the one that failed is capped."""
    parts = {"routed": 0.6, "closed-form": 0.8, "pooled": 0.84}
    cells = [
        {**_cell(partition, 0, f1), "model": model}
        for model, scratch in (("gcn", 0.8), ("gin", 0.4))
        for partition, f1 in (("scratch", {"scratch": scratch}), ("hash", parts))
    ]
    report = {"benchmark": "utility", "cells": cells}
    same = utility.against_scratch(report, "routed", best=False)
    assert same == {("cora", "gcn"): pytest.approx(0.75), ("cora", "gin"): utility.CAP}
    best = utility.against_scratch(report, "routed", best=True)
    assert best == {("cora", "gcn"): pytest.approx(0.75), ("cora", "gin"): pytest.approx(0.75)}
    table = utility.markdown(report).split("\n")
    assert table[0] == "| data | model | scratch | routed | closed-form | pooled |"
    assert table[2] == "| cora | gcn | 0.800 | 0.600 | 0.800 | 0.840 |"
    of_four = "the best of four from scratch"
    assert f"| closed-form | {of_four} | 1.000 ± 0.000 | 1.000 |" in table
    assert "| pooled | the same model from scratch | 1.050 ± 0.000 | 1.050 |" in table
    assert "| routed | the same model from scratch | 0.900 ± 0.000 | 0.750 |" in table


def _cell(partition: str, seed: int, f1: dict[str, float]) -> dict[str, object]:
    return {"dataset": "cora", "model": "gcn", "partition": partition, "seed": seed, "f1": f1}
