"""Scores in files: parts that can be trusted, and one file of them in each format."""

from __future__ import annotations

import csv
import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grapheraser.errors import MissingExtraError, ParameterError, StorageFullError
from grapheraser.store.scores import Parts, score_format

CONTENTS = {"state": "a", "nodes": "b"}
BLOCKS = [
    {
        "node": np.array([3, 9]),
        "name": np.array(["ada, b", 'c"d'], dtype=object),
        "posterior": np.array([[0.1, 0.9], [1 / 3, 2 / 3]], dtype=np.float32),
    },
    {
        "node": np.array([12]),
        "name": np.array(["ö"], dtype=object),
        "posterior": np.array([[0.5, 0.5]], dtype=np.float32),
    },
]


def files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def test_parts_are_found_again_and_go_in_the_end(tmp_path: Path) -> None:
    target = tmp_path / "scores.csv"
    first = Parts(target, CONTENTS)
    first.write(3, np.arange(5.0))
    again = Parts(target, CONTENTS)
    assert 3 in again
    assert 0 not in again
    assert again.read(3).tolist() == [0, 1, 2, 3, 4]
    again.close()
    assert list(tmp_path.iterdir()) == []


def test_parts_of_something_else_are_removed(tmp_path: Path) -> None:
    target = tmp_path / "scores.csv"
    Parts(target, CONTENTS).write(0, np.arange(3))
    stranger = tmp_path / "scores.csv.parts" / "notes.txt"
    stranger.write_text("mine")
    assert len(Parts(target, CONTENTS | {"state": "later"})) == 0
    assert [file.name for file in files(tmp_path)] == ["contents.json", "notes.txt"]
    Parts(target, CONTENTS).close()
    assert files(tmp_path) == [stranger]


@pytest.mark.parametrize("damage", ["altered", "truncated", "no array"])
def test_a_damaged_part_is_dropped(tmp_path: Path, damage: str) -> None:
    parts = Parts(tmp_path / "scores.csv", CONTENTS)
    parts.write(0, np.arange(3))
    parts.write(1, np.arange(4))
    (file,) = (tmp_path / "scores.csv.parts").glob("000001-*.npy")
    content = file.read_bytes()
    changed = {
        "altered": content[:-1] + bytes([content[-1] ^ 1]),
        "truncated": content[:-1],
        "no array": b"hello",
    }
    file.write_bytes(changed[damage])
    again = Parts(tmp_path / "scores.csv", CONTENTS)
    assert (0 in again, 1 in again, len(again)) == (True, False, 1)
    assert not file.exists()


def test_a_file_holds_all_blocks_in_each_format(tmp_path: Path) -> None:
    for name in ("s.csv", "s.npz", "s.parquet"):
        if name.endswith("parquet"):
            pytest.importorskip("pyarrow", reason="needs the extra 'tables'")
        score_format(tmp_path / name)(tmp_path / name, iter(BLOCKS))
    with open(tmp_path / "s.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["node", "name", "posterior_0", "posterior_1"]
    assert [row[:2] for row in rows[1:]] == [["3", "ada, b"], ["9", 'c"d'], ["12", "ö"]]
    exact = np.concatenate([block["posterior"] for block in BLOCKS])
    assert (np.array([row[2:] for row in rows[1:]], dtype=np.float32) == exact).all()
    with np.load(tmp_path / "s.npz", allow_pickle=False) as found:
        assert found["node"].tolist() == [3, 9, 12]
        assert found["name"].tolist() == ["ada, b", 'c"d', "ö"]
        assert (found["posterior"] == exact).all()
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(tmp_path / "s.parquet")
    assert table.column("node").to_pylist() == [3, 9, 12]
    assert table.column("name").to_pylist() == ["ada, b", 'c"d', "ö"]
    assert (np.array(table.column("posterior").to_pylist(), dtype=np.float32) == exact).all()
    assert len(files(tmp_path)) == 3


def test_other_suffixes_and_a_missing_extra_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match=r"ends in \.parquet, \.csv or \.npz. Got 's\.txt'"):
        score_format(Path("s.txt"))
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError) as caught:
        score_format(Path("s.parquet"))
    assert "'.[tables]'" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["s.csv", "s.npz", "s.parquet"])
def test_a_full_disk_leaves_the_old_file(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / name
    target.write_bytes(b"old")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("grapheraser.store.scores.flush", full)
    with pytest.raises(StorageFullError):
        score_format(target)(target, iter(BLOCKS))
    assert target.read_bytes() == b"old"
    assert files(tmp_path) == [target]
