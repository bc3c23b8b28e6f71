"""Collapsed cells are found, marked and left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grapheraser_lab.experiments import collapse, utility
from grapheraser_lab.experiments.catalogue import Options, Results
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell, Result
from grapheraser_lab.framework.means import mean_of
from grapheraser_lab.framework.shared_cells import has_collapsed


def value(cell: Cell, f1: float, one_label: float, entropy: float) -> dict[str, Any]:
    texts = cell["aggregations"]
    return {
        "f1": dict.fromkeys(texts, f1 + 0.001 * cell["seed"]),
        "one_label": dict.fromkeys(texts, one_label),
        "majority_f1": 0.3,
        "label_entropy": entropy,
        "label_entropy_whole": 2.5,
        "importance": {},
        "test_nodes": 500,
        "sizes": [1],
    }


@pytest.fixture
def options() -> Options:
    return Options(datasets=("cora",), models=("gcn", "gat"), runs=3, protocol="literal")


@pytest.fixture
def results(options: Options) -> Results:
    found = Results()
    for (_, _, partition), group in utility.groups(options).items():
        for cell in group:
            gone = partition == "bekm"
            some = value(cell, 0.31 if gone else 0.7, 0.99 if gone else 0.4, 0.2 if gone else 2.0)
            found.add(Result(cell, some, 1.0, 1.0, {}, {}))
    return found


@pytest.mark.parametrize(
    ("f1", "one_label", "gone"),
    [(0.7, 0.4, False), (0.7, 0.95, True), (0.31, 0.5, True), (0.33, 0.5, False)],
)
def test_a_cell_collapses_by_its_answers_or_by_its_f1(
    f1: float, one_label: float, gone: bool
) -> None:
    some = {"f1": {"mean": f1}, "one_label": {"mean": one_label}, "majority_f1": 0.3}
    assert has_collapsed([some], "mean") is gone


def test_collapsed_cells_are_marked_and_count_as_failures(
    options: Options, results: Results
) -> None:
    means = utility.means(options, results)
    assert all(mean.collapsed == (key[2] == "bekm") for key, mean in means.items())
    summary = utility.summarise(options, results)
    assert "†" in str(summary.tables[0])
    by_rule = {claim.rule: claim for claim in summary.claims}
    choice = by_rule["utility/choice"]
    assert choice.readings[0].name == "as written"
    assert "false in 1 (cora gat)" in choice.readings[0].figures
    assert {row["run"] for row in summary.rows} == {0, 1, 2}


def test_the_report_opens_with_what_dominates(options: Options, results: Results) -> None:
    summary = collapse.summarise(options, results)
    opening = " ".join(summary.opening)
    assert "2 / 2 / 2 of 2 cells" in opening
    assert "0 / 0 / 0 of 2 cells" in opening
    assert "count as failures" in opening
    (claim,) = summary.claims
    assert claim.verdict == "holds"
    rows = {(row["model"], row["partition"]): row for row in summary.rows}
    assert rows["gat", "bekm"]["collapsed"]
    assert rows["gat", "bekm"]["majority_f1"] == 0.3
    assert summary.draw is not None
    summary.draw()


def test_the_released_codes_figures_stand_beside_ours(options: Options, results: Results) -> None:
    table = collapse.summarise(options, results).tables[1]
    (row,) = [row for row in table.rows if row[:2] == ("cora", "gat")]
    assert "0.310 / 0.310 / 0.310" in row
    assert "0.701 / 0.664 / 0.712" in row
    assert len(collapse.RELEASED) == 4 * 9
    assert {key[1] for key in collapse.RELEASED} == set(paper.MODELS)


def test_the_second_reading_of_bekm_takes_its_place(options: Options, results: Results) -> None:
    means = utility.means(options, results)
    written, free = (utility.as_read(options, means, name) for name in options.how.bekm)
    assert {key[2] for key in written} == {key[2] for key in free}
    key = ("cora", "gat", "bekm", "learned")
    assert written[key].collapsed
    assert not free[key].collapsed


def standings(*cells: tuple[float, bool]) -> dict[collapse.Key, collapse.Standing]:
    """Cells of a label entropy each, of 2.5 bits, collapsed or not."""
    means = [
        mean_of({0: 0.3 if gone else 0.8, 1: 0.31 if gone else 0.81}, 500) for _, gone in cells
    ]
    return {
        ("cora", f"model {i}", "blpa"): collapse.Standing(
            replace(mean, collapsed=gone), 0.3, 0.5, entropy, 2.5
        )
        for i, (mean, (entropy, gone)) in enumerate(zip(means, cells, strict=True))
        if mean is not None
    }


@pytest.mark.parametrize(
    ("cells", "verdict"),
    [
        ([(0.2, True), *[(2.0, False)] * 3], "holds"),
        ([(0.2, False), *[(2.0, False)] * 30], "does not hold"),
        ([(2.0, True), *[(2.0, False)] * 30], "does not hold"),
    ],
)
def test_cells_without_pure_shards_that_stand_say_nothing(
    cells: list[tuple[float, bool]], verdict: str
) -> None:
    (claim,) = collapse.pure_shards(standings(*cells))
    assert claim.verdict == verdict


def test_nothing_is_said_of_collapse_where_all_stand() -> None:
    assert collapse.pure_shards(standings((2.0, False), (1.9, False))) == []
