"""grapheraser demo."""

from __future__ import annotations

from pathlib import Path

import pytest

import grapheraser as ge
from tests.cli.commands import run


@pytest.mark.slow
def test_the_demo_ends_in_its_verdict(tmp_path: Path, small: ge.Graph) -> None:
    earlier = ge.GraphEraser(num_shards=2, epochs=1).fit(small)
    earlier.unlearn(ge.Nodes(small.train_nodes[:1]))
    earlier.save(tmp_path / "report" / "run")
    done = run("demo", "--out", tmp_path / "report", "--requests", 3)
    assert done.returncode == 0, done.stderr
    assert "verified: bit-identical" in done.stdout.splitlines()[-1]
    page = (tmp_path / "report" / "index.html").read_text()
    assert "verified: bit-identical" in page
    assert page.count("<img") == 3
    assert "http" not in page.replace("http-equiv", "")
