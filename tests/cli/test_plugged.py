"""Verbs of other packages, above all those of the laboratory."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from grapheraser.cli.app import GROUP, LABORATORY
from tests.cli.commands import data, run


def plug(monkeypatch: pytest.MonkeyPatch, *entries: tuple[str, str]) -> None:
    """Pretend that these verbs and modules are the entry points of all installed packages."""
    found = EntryPoints(EntryPoint(name, module, GROUP) for name, module in entries)
    monkeypatch.setattr("importlib.metadata.entry_points", found.select)


@pytest.mark.parametrize("verb", LABORATORY)
@pytest.mark.parametrize("words", [(), ("--help",), ("cost", "--datasets", "cora")])
def test_without_the_laboratory_its_verbs_say_how_to_get_it(
    verb: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    plug(monkeypatch)
    done = run(verb, *words)
    assert done.returncode == 1
    assert f"'grapheraser {verb}' needs the package 'grapheraser_lab'" in done.stderr
    assert "hint: it is part of the repository" in done.stderr
    assert verb in run("--help").stdout


def test_a_laboratory_that_was_deleted_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    plug(monkeypatch, ("bench", "gone_laboratory.cli.bench"))
    assert "pip install -e lab" in run("bench", "cost").stderr


def test_what_else_is_missing_is_told_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "broken_verb.py").write_text("import a_package_that_is_missing\n")
    monkeypatch.syspath_prepend(tmp_path)
    plug(monkeypatch, ("bench", "broken_verb"))
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_missing"):
        run("bench", "cost")


def test_a_package_plugs_in_a_verb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = '''
from grapheraser.cli.output import JsonOption, print_json

def run(name: str, json: JsonOption = False) -> None:
    """Greet somebody."""
    print_json({"hello": name})
'''
    (tmp_path / "greeting_verb.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    plug(monkeypatch, ("greet", "greeting_verb"))
    assert data("greet", "world", "--quiet") == {"hello": "world"}
    assert "greet" in run("--help").stdout
    assert "Greet somebody." in run("greet", "--help").stdout
    monkeypatch.delitem(sys.modules, "greeting_verb")


def test_verbs_of_the_package_look_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: str) -> EntryPoints:
        raise AssertionError("looked up")

    monkeypatch.setattr("importlib.metadata.entry_points", refuse)
    assert run("datasets").returncode == 0
