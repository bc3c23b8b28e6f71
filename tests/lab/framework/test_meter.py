"""How much of an experiment is left: an estimate that start-up and compilation have no part in."""

from __future__ import annotations

import pytest

from grapheraser_lab.framework import meter as metered
from grapheraser_lab.framework.cell import Cell


def test_the_time_of_the_first_cell_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Cell.of("count", dataset="cora", seed=seed) for seed in range(11)]
    now, said = 0.0, list[str]()
    monkeypatch.setattr("time.perf_counter", lambda: now)
    with metered.meter(cells, said.append) as finished:
        now = 1000.0  # compiling
        finished(cells[0])
        for cell in cells[1:5]:
            now += 70.0
            finished(cell)
    assert len(said) == 4
    assert said[-1] == "5 of 11 cells, about 7.00 min left", "six of 70 seconds"
