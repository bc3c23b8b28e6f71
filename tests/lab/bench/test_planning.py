"""Plans follow from what was measured, and fit it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grapheraser_lab.bench.scale import GIGABYTES, SECONDS, Law, deviations, laws, planning, worst

STORED = Path(__file__).parents[3] / "lab" / "results" / "scale.json"


def row(model: str, edges: int, **given: float) -> dict[str, Any]:
    figures = dict.fromkeys((*SECONDS, *GIGABYTES), 1.0) | given
    named = {name: [9.0, value] if name in SECONDS else value for name, value in figures.items()}
    return {"dataset": f"{edges:.0e}".replace("+0", ""), "model": model, "edges": edges, **named}


def test_a_law_is_found_again_in_what_it_says() -> None:
    edges = [10**5, 10**6, 10**7]
    for law in (Law(3.0, 2e-6), Law(0.0, 4e-6), Law(5.0, 0.0)):
        found = Law.of(edges, [law(x) for x in edges])
        assert found.fixed == pytest.approx(law.fixed, abs=1e-6)
        assert found.per_edge == pytest.approx(law.per_edge, abs=1e-12)


def test_what_grows_faster_than_the_graph_is_a_power_as_far_as_it_was_measured() -> None:
    law = Law.of([1e5, 1e6, 1e7], [0.01, 1.0, 100.0])
    assert law.power == pytest.approx(2.0)
    assert law(1e6) == pytest.approx(1.0)
    assert law(1e8) == pytest.approx(1000.0)  # in proportion from 10^7 on


def test_a_law_has_no_negative_part() -> None:
    assert Law.of([1e5, 1e6, 1e7], [0.5, 6.0, 70.0]).fixed == 0
    assert Law.of([1e5, 1e6, 1e7], [1.2, 1.1, 1.0]).per_edge == 0
    assert Law.of([1e6], [2.0])(2e6) == 4.0


def test_plans_are_made_by_the_laws() -> None:
    rows = [
        row(model, edges, fit=fit * edges / 1e6, store_gb=edges / 2e6, run_gb=edges / 2e6)
        for model, fit in (("gcn", 64.5), ("closed-form", 0.5))
        for edges in (10**5, 10**6)
    ]
    lines = planning({"rows": rows}).splitlines()[2:]
    first = [cell.strip() for cell in lines[0].split("|")[1:-1]]
    assert first[:6] == ["1,000,000", "gcn", "1.0 GB", "1.0 GB", "1.00 s", "64.5 s"]
    assert first[6:] == ["1.50 s", "$0.00", "1.00 s", "1.00 s"]
    last = [cell.strip() for cell in lines[-2].split("|")[1:-1]]
    assert last[:4] == ["10,000,000,000", "gcn", "10,000.0 GB", ""]
    assert last[-1] == "1.00 s"
    assert max(worst({"rows": rows}).values()) == pytest.approx(1.0)


def test_a_measurement_that_no_law_fits_is_told() -> None:
    rows = [row("gcn", 10**5, fit=1.0), row("gcn", 10**6, fit=90.0), row("gcn", 10**7, fit=100.0)]
    assert worst({"rows": rows})["fit"] > 1.5
    assert worst({"rows": rows})["load"] == pytest.approx(1.0)


def test_the_laws_fit_what_was_measured() -> None:
    """The tables in docs/scale.md are no better than this."""
    report = json.loads(STORED.read_text())
    assert {"gcn", "closed-form"} == laws(report).keys()
    factors = worst(report)
    assert max(factors.values()) < 2, factors
    assert deviations(report).count("x") >= 7
