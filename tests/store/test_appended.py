"""Files that only grow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grapheraser.errors import StorageFullError, StoreError
from grapheraser.store.files import append_line, read_lines


def test_lines_are_added_and_others_can_not_read_them(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for line in ("one", "two", "three"):
        append_line(path, line)
    assert path.read_text() == "one\ntwo\nthree\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_lines(path) == ["one", "two", "three"]


def test_a_line_that_was_cut_off_stays_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one\ntw")
    append_line(path, "three")
    assert read_lines(path) == ["one", "tw", "three"]


def test_a_full_disk_and_a_missing_folder_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreError, match="can't write"):
        append_line(tmp_path / "nowhere" / "file", "one")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageFullError, match="tried again"):
        append_line(tmp_path / "file", "one")


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xff\xfe\n")
    with pytest.raises(StoreError, match="can't read"):
        read_lines(tmp_path / "file")
