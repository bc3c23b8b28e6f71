"""grapheraser reshard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import grapheraser as ge
from grapheraser.cli.app import main


def test_it_reshards_a_run_in_place(
    small: ge.Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ge.GraphEraser(num_shards=4, epochs=1).fit(small).save(tmp_path / "run")
    with pytest.raises(SystemExit) as done:
        main(["reshard", str(tmp_path / "run"), "--shards", "2", "--json"])
    assert done.value.code == 0
    assert json.loads(capsys.readouterr().out)["receipt"]["action"] == "reshard"
    back = ge.GraphEraser.load(tmp_path / "run")
    assert (back.num_shards, back.verify().identical) == (2, True)
