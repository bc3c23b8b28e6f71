"""The utility benchmark goes on where it was, and prints the paper's own figures."""

from __future__ import annotations

from pathlib import Path

from grapheraser.bench import utility
from grapheraser.experiments import paper


def test_finished_cells_are_not_measured_again(tmp_path: Path) -> None:
    told: list[str] = []
    options = {"partitions": ["hash"], "seeds": 1, "folder": tmp_path, "epochs": 2}
    first = utility.run(["demo"], ["gcn"], progress=told.append, **options)  # type: ignore[arg-type]
    assert told == ["demo gcn scratch seed 0", "demo gcn hash seed 0"]
    again = utility.run(["demo"], ["gcn"], progress=told.append, **options)  # type: ignore[arg-type]
    assert len(told) == 2
    assert again["cells"] == first["cells"]
    table = utility.markdown(first)
    assert "| demo | gcn |" in table
    assert all(f"| {label} |" in table for label in utility.AGGREGATIONS)
    assert set(utility.ratios(first, "hash", utility.BEST)) == {("demo", "gcn")}


def test_the_papers_best_are_the_papers() -> None:
    for dataset, values in utility.PAPER_BEST.items():
        for model, value in zip(utility.GNNS, values, strict=True):
            columns = [name for name in paper.UTILITY.columns if name != "scratch"]
            figures = [paper.UTILITY.get(dataset, model, name) for name in columns]
            assert value == max(figure.mean for figure in figures if figure is not None)
