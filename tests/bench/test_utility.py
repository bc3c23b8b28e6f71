"""The utility benchmark goes on where it was, and prints the paper's own figures."""

from __future__ import annotations

from pathlib import Path

from grapheraser.bench import utility


def test_finished_cells_are_not_measured_again(tmp_path: Path) -> None:
    told: list[str] = []
    options = {"partitions": ["hash"], "seeds": 1, "folder": tmp_path, "epochs": 2}
    first = utility.run(["demo"], ["gcn"], progress=told.append, **options)  # type: ignore[arg-type]
    assert told[-1] == "2 cells measured, 2 in all"
    again = utility.run(["demo"], ["gcn"], progress=told.append, **options)  # type: ignore[arg-type]
    assert told[-1] == "0 cells measured, 2 in all"
    assert again["cells"] == first["cells"]
    assert [cell["partition"] for cell in first["cells"]] == ["scratch", "hash"]
    assert list(first["cells"][1]["f1"]) == list(utility.AGGREGATIONS)


def test_one_table_has_every_partition_and_aggregation_beside_scratch_and_the_paper() -> None:
    both = {"mean": 0.5, "routed + expert": 0.9}
    report = {
        "benchmark": "utility",
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
    assert "| routed + expert | 1.059 (1.059) | 0.500 (0.500) |" in table
    assert "above the paper's best in 1 of 1 cells" in table[-1]


def _cell(partition: str, seed: int, f1: dict[str, float]) -> dict[str, object]:
    return {"dataset": "cora", "model": "gcn", "partition": partition, "seed": seed, "f1": f1}
