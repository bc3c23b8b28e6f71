"""Timed requests of a cell."""

from __future__ import annotations

from grapheraser.experiments.catalogue import KINDS, Options
from grapheraser.experiments.framework.shared_cells import requests_cell


def test_requests_are_independent_of_each_other(options: Options) -> None:
    cell = requests_cell(options, options.datasets[0], "gcn", "blpa")
    value = KINDS.get("requests").measure(cell.config)
    assert cell.timed
    for what in ("nodes", "edges"):
        assert value[what]["requests"] == 3
        assert value[what]["mean"] > 0
    assert value["nodes"]["retrained"] == 1
    assert 0 <= value["edges"]["retrained"] <= 1
