"""Imports point down (``.importlinter``), and the pages about the code name what is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "grapheraser"
LABORATORY = ROOT / "lab" / "grapheraser_lab"
# The changelog may name what was.
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")} - {ROOT / "CHANGELOG.md"})
SVG = "{http://www.w3.org/2000/svg}"
# A path in capitals, as in models/NAME.py, stands for a file of the reader's.
FILE = re.compile(r"(?<![\w/.-])((?:[a-z_]\w*/)*[a-z_]\w*\.py)\b")
MODULE = re.compile(r"\b(grapheraser(?:_lab)?(?:\.[a-z]\w*)+)\b(?!\()")


def _walks(page: str) -> str:
    """The steps of all walks: lists under the headings that begin so."""
    parts = page.split("\n## ")
    return "\n".join(part for part in parts if part.startswith("The walk of"))


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
    homes = (ROOT, ROOT / "examples", PACKAGE, PACKAGE / "engines" / "cpu")
    files = [name for name in FILE.findall(text) if not any((h / name).exists() for h in homes)]
    modules = [name for name in MODULE.findall(text) if not _is_there(name)]
    assert (files, modules) == ([], [])


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
# A paragraph about a room, and a step of a walk: a place, and what is said of it.
ROOM = re.compile(r"^\*\*`(\w+/)`\*\* (.*)$", re.M)
STEP = re.compile(r"^ *- `((?:\w+/)*\w+(?:/|\.py))`: (.*)$", re.M)
CODE = re.compile(r"`([^`]+)`")
# Packages, options, and names of other places that a paragraph needs.
ELSEWHERE = {"cryptography", "verify --deep", "--deep", "lab/pyproject.toml"}
SAID = [
    (place, name)
    for place, text in (*ROOM.findall(ARCHITECTURE), *STEP.findall(_walks(ARCHITECTURE)))
    for name in CODE.findall(text)
    if name not in ELSEWHERE
]


@pytest.mark.parametrize(("place", "name"), SAID, ids=lambda value: value)
def test_what_the_architecture_page_says_is_in_a_place_is_defined_there(
    place: str, name: str
) -> None:
    home = PACKAGE / place
    if name.endswith("/"):
        assert (home / name).is_dir() or (PACKAGE / name).is_dir()
    else:
        assert name in _defined_in(home), f"{name} is not defined in {place}"


def test_the_architecture_page_walks_through_the_code() -> None:
    assert {place for place, _ in SAID} >= {"eraser/", "eraser/unlearn.py", "service/queue/"}
    assert len(SAID) > 80


@cache
def _defined_in(home: Path) -> frozenset[str]:
    """Names of modules, classes, methods, functions and constants of a place."""
    modules = [home] if home.is_file() else [*home.rglob("*.py")]
    names = {module.stem for module in modules}
    for module in modules:
        for node in ast.parse(module.read_text()).body:
            names |= _names_of(node)
            if isinstance(node, ast.ClassDef):
                names |= {f"{node.name}.{name}" for part in node.body for name in _names_of(part)}
                names |= {name for part in node.body for name in _names_of(part)}
    return frozenset(names)


def _names_of(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something in a module."""
    first, *rest = name.split(".")
    package = LABORATORY if first == LABORATORY.name else PACKAGE
    path = package.joinpath(*rest)
    homes = (path,) if path.parent == package else (path, path.parent)
    return any(home.is_dir() or home.with_suffix(".py").exists() for home in homes)
