"""Kept results are read back, and what can't be read is not there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from grapheraser.errors import StoreError
from grapheraser.store.files import file_digest, make_folder, read_result, write_result


def test_a_result_comes_back_and_an_equal_one_has_the_same_bytes(tmp_path: Path) -> None:
    write_result(tmp_path / "deep" / "a.json", {"b": 1.5, "a": [None, True]})
    write_result(tmp_path / "b.json", {"a": [None, True], "b": 1.5})
    assert read_result(tmp_path / "deep" / "a.json") == {"a": [None, True], "b": 1.5}
    assert (tmp_path / "deep" / "a.json").read_bytes() == b'{"a":[null,true],"b":1.5}\n'
    assert (tmp_path / "b.json").read_bytes() == (tmp_path / "deep" / "a.json").read_bytes()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe"])
def test_a_damaged_result_is_no_result(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    assert read_result(tmp_path / "a.json") is None
    assert read_result(tmp_path / "none.json") is None


def test_a_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    assert file_digest(tmp_path / "a") == hashlib.sha256(b"x").hexdigest()
    assert file_digest(tmp_path / "b") is None
    assert file_digest(tmp_path) is None


def test_a_folder_that_can_not_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="can't make the folder"):
        make_folder(tmp_path / "file" / "folder")
