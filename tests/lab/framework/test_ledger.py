"""A ledger holds all cells of a run, and gives the same files back."""

from __future__ import annotations

from pathlib import Path

from grapheraser.store.files import write_result
from grapheraser_lab.framework.cell import Cell, Result
from grapheraser_lab.framework.ledger import pack, unpack
from grapheraser_lab.framework.runner import run_cells


def test_what_is_packed_comes_back_and_is_not_measured_again(tmp_path: Path) -> None:
    cells = [Cell.of("facts", dataset="cora", split_seed=seed, seed=seed) for seed in range(3)]
    for cell in cells:
        found = Result(cell, {"nodes": cell["seed"]}, 1.0, 0.5, {"numpy": "2"}, {"cores": 2})
        (tmp_path / "runs" / "cells").mkdir(parents=True, exist_ok=True)
        write_result(tmp_path / "runs" / "cells" / f"{cell.digest}.json", found.to_dict())
    ledger = tmp_path / "kept" / "runs.jsonl.xz"
    assert pack(tmp_path / "runs", ledger) == 3
    assert unpack(ledger, tmp_path / "again") == 3
    assert pack(tmp_path / "runs", tmp_path / "rest.jsonl.xz", beside=ledger) == 0
    before, after = (
        {path.name: path.read_bytes() for path in (tmp_path / name / "cells").iterdir()}
        for name in ("runs", "again")
    )
    assert before == after
    outcome = run_cells(cells, tmp_path / "again", compute=False)
    assert outcome.left == 0
    assert [outcome.results.value(cell) for cell in cells] == [{"nodes": n} for n in range(3)]
