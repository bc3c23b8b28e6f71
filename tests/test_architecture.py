"""Imports point down (``.importlinter``), and the pages about the code name what is there."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "grapheraser"
# The changelog may name what was.
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")} - {ROOT / "CHANGELOG.md"})
SVG = "{http://www.w3.org/2000/svg}"
# A path in capitals, as in models/NAME.py, stands for a file of the reader's.
FILE = re.compile(r"(?<![\w/.-])((?:[a-z_]\w*/)*[a-z_]\w*\.py)\b")
MODULE = re.compile(r"\b(grapheraser(?:\.[a-z]\w*)+)\b(?!\()")


def test_the_import_contract_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename=".importlinter", no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_the_architecture_page_and_its_picture_name_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    picture = ElementTree.parse(ROOT / "docs" / "images" / "architecture.svg")
    drawn = {element.text for element in picture.iter(f"{SVG}text")}
    rooms = {folder.parent.name for folder in PACKAGE.glob("*/__init__.py")}
    loose = {module.stem for module in PACKAGE.glob("[a-z]*.py")}
    assert sorted(rooms - drawn) == []
    assert sorted(room for room in rooms if f"`{room}/`" not in page) == []
    assert sorted(module for module in loose if f"`{module}`" not in page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_modules_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    homes = (ROOT, PACKAGE, PACKAGE / "training" / "cpu")
    files = [name for name in FILE.findall(text) if not any((h / name).exists() for h in homes)]
    modules = [name for name in MODULE.findall(text) if not _is_there(name)]
    assert (files, modules) == ([], [])


def _is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something in a module."""
    path = PACKAGE.parent.joinpath(*name.split("."))
    homes = (path,) if path.parent == PACKAGE else (path, path.parent)
    return any(home.is_dir() or home.with_suffix(".py").exists() for home in homes)
