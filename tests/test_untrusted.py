"""Input of others: one way to read files and JSON, and one way to a terminal."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.canonical import canonical_json
from grapheraser.errors import CorruptRunError, ParameterError
from grapheraser.untrusted import MAX_DEPTH, escaped, parse_json, read_named, read_plain

PACKAGE = Path(ge.__file__).parent
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)


@given(JSON)
def test_what_can_be_written_can_be_read(value: object) -> None:
    assert parse_json(canonical_json(value)) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"nodes": [5], "nodes": [6]}', "'nodes' is there twice"),
        ('[{"a": {"b": 1, "c": 2, "b": 1}}]', "'b' is there twice"),
        ('{"a": 1, "\\u0061": 2}', "'a' is there twice"),
        ("[NaN]", "NaN"),
        ("[-Infinity]", "Infinity"),
        ("[1e999]", "1e999"),
        ('"\\ud800"', "surrogate"),
        ('"\ud800"', "surrogate"),
        (b'"\xff"', "UTF-8"),
        ("[1]".encode("utf-16"), "UTF-8"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "deeply"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "deeply"),
        ("[" * 10, "Expecting"),
        ("\ufeff{}", "Expecting"),
        ("[1] [2]", "Extra data"),
        ("1" * 5000, "digits"),
    ],
)
def test_json_that_readers_would_read_differently_is_refused(
    text: str | bytes, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_json(text)


def test_text_of_brackets_is_not_nested_and_pairs_of_surrogates_are_whole() -> None:
    assert parse_json('["' + "[" * 1000 + '\\"", "\\ud83d\\ude00"]') == ["[" * 1000 + '"', "😀"]
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)


def test_json_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than 3"):
        parse_json("1234", 3)


def test_only_plain_files_of_a_bounded_size_are_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"content")
    assert read_plain(file, 7) == b"content"
    assert read_plain(file, 7, size=6) is None
    assert read_plain(file, 7, sha256="0" * 64) is None
    with pytest.raises(CorruptRunError, match="7 bytes, more than"):
        read_plain(file, 6)
    os.truncate(file, 2**43)  # sparse: takes no room
    with pytest.raises(CorruptRunError, match="more than"):
        read_plain(file, 2**32)
    with pytest.raises(ParameterError, match="more than 100 bytes"):
        read_named(file, 100)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CorruptRunError, match="not a plain file"):
        read_plain(tmp_path / "pipe", 7)
    (tmp_path / "link").symlink_to(file)
    for name in ("link", "missing"):
        with pytest.raises(OSError, match=name):
            read_plain(tmp_path / name, 7)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ada", "ada"),
        ("Ünïcode 😀", "Ünïcode 😀"),
        ("x\nverified: bit-identical", r"x\nverified: bit-identical"),
        ("\x1b[2J\x07\x7f\x9b", r"\x1b[2J\x07\x7f\x9b"),
        ("no\u200bde \u202eedon", r"no\u200bde \u202eedon"),
        (os.fsdecode(b"\xff\xfe"), r"\udcff\udcfe"),
    ],
)
def test_what_is_shown_is_one_line_of_printable_characters(text: str, shown: str) -> None:
    assert escaped(text) == shown


@given(st.text())
def test_nothing_steers_a_terminal(text: str) -> None:
    assert escaped(text).isprintable()
    escaped(text).encode()


def _calls(names: set[str]) -> Iterator[str]:
    for module in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
                yield module.relative_to(PACKAGE).as_posix()


def test_json_is_parsed_in_one_place() -> None:
    made = {"loads", "load", "JSONDecoder"}
    found = set()
    for module in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(module.read_text())
        modules = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name in ("json", "orjson", "ujson", "simplejson")
        }
        for node in ast.walk(tree):
            taken = isinstance(node, ast.ImportFrom) and node.module == "json"
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in modules:
                taken = node.attr in made
            if taken:
                found.add(module.relative_to(PACKAGE).as_posix())
    assert found == {"untrusted.py"}


def test_terminals_are_written_to_in_one_place() -> None:
    writers = {"print", "typer.echo", "typer.secho", "sys.stdout.write", "sys.stderr.write"}
    writers |= {"Console", "click.echo"}
    # The version of the package, and bars whose words are the package's own.
    assert set(_calls(writers)) == {"cli/output.py", "cli/app.py", "progress.py"}
