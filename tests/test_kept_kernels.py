"""Compiled code goes from one checkout to the next, and no checkout removes another's."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests import kept_kernels


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all checkouts, with two of them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _unset(monkeypatch)
    chosen = kept_kernels.choose_folder()
    assert chosen is not None
    for name in ("one", "other"):
        (chosen / "checkouts" / name).mkdir()
    return chosen


def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no folder chosen, and what a test chooses forgotten after it."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.delenv("NUMBA_CACHE_DIR")


def test_a_checkout_begins_with_what_another_has_compiled(folder: Path) -> None:
    one, other = (folder / "checkouts" / name for name in ("one", "other"))
    (one / "kernel.state.types.nbc").write_bytes(b"code")
    (one / "kernel.state.types.nbc.part").write_bytes(b"half of")
    kept_kernels.add(folder, one)
    kept_kernels.draw(folder, other)
    assert [file.name for file in other.iterdir()] == ["kernel.state.types.nbc"]
    (one / "kernel.state.types.nbc").unlink()  # as when its sources have changed there
    kept_kernels.draw(folder, one)
    assert (other / "kernel.state.types.nbc").read_bytes() == b"code"


def test_what_a_killed_run_has_compiled_is_kept(folder: Path) -> None:
    one = folder / "checkouts" / "one"
    (one / "kernel.nbc").write_bytes(b"code")
    kept_kernels.draw(folder, one)
    assert (folder / "pool" / "kernel.nbc").exists()


def test_what_is_old_is_removed(folder: Path) -> None:
    one = folder / "checkouts" / "one"
    (one / "old.nbc").write_bytes(b"code")
    (one / "new.nbc").write_bytes(b"code")
    kept_kernels.add(folder, one)
    year = time.time() - 365 * 24 * 3600
    os.utime(one / "old.nbc", (year, year))
    kept_kernels.draw(folder, folder / "checkouts" / "other")
    assert [file.name for file in folder.rglob("*.nbc")] == ["new.nbc"] * 3


def test_a_folder_that_was_chosen_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert os.environ["NUMBA_CACHE_DIR"] == str(folder / "checkouts")
    assert kept_kernels.choose_folder() == folder  # a worker inherits it
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "mine"))
    assert kept_kernels.choose_folder() is None
    assert os.environ["NUMBA_CACHE_DIR"] == str(folder / "mine")


def test_nothing_happens_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    _unset(monkeypatch)
    assert kept_kernels.choose_folder() is None
    assert "NUMBA_CACHE_DIR" not in os.environ
