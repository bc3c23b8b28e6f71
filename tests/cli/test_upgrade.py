"""grapheraser upgrade: a run of an earlier version goes on in this one."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import RunVersionError
from tests.cli.commands import run

# Written by version 8 of the format: 24 nodes in a ring of chords, node 5 forgotten.
_OLD = Path(__file__).parent / "run8.tgz"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with tarfile.open(_OLD) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "run8"


def test_a_run_of_the_version_before_is_fitted_anew_from_what_it_has(
    old: Path, tmp_path: Path
) -> None:
    with pytest.raises(RunVersionError, match="grapheraser upgrade"):
        ge.GraphEraser.load(old)
    before = {file: file.read_bytes() for file in old.rglob("*") if file.is_file()}
    done = run("upgrade", old, "--out", tmp_path / "new")
    assert done.returncode == 0, done.stderr
    assert {file: file.read_bytes() for file in old.rglob("*") if file.is_file()} == before
    new = ge.GraphEraser.load(tmp_path / "new")
    ids = np.delete(np.arange(24), 5)
    assert np.array_equal(new.graph_.ids, ids)
    assert (new.num_shards, new.epochs) == (2, 2)
    assert not new.receipts_
    fresh = ge.GraphEraser(model="gcn", num_shards=2, epochs=2).fit(new.graph_)
    nodes = new.graph_.ids
    assert np.array_equal(new.predict_proba(nodes), fresh.predict_proba(nodes))
    new.unlearn(ge.Nodes([7]))
    assert new.verify().identical


def test_a_run_of_this_version_has_nothing_to_upgrade(old: Path, tmp_path: Path) -> None:
    run("upgrade", old, "--out", tmp_path / "new")
    done = run("upgrade", tmp_path / "new", "--out", tmp_path / "newer")
    assert done.returncode == 1
    assert "nothing to upgrade" in done.stderr
    assert not (tmp_path / "newer").exists()
