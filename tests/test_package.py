"""What a package index shows, and what is run before something is published."""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from email.message import Message
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tools.package import in_metadata

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)]+)\)")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `hatch_build.py` adds to the metadata; hatchling itself need not be installed."""
    interface = ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))["Readme"]
    found: dict[str, Any] = {}
    hook.update(SimpleNamespace(root=str(ROOT), config={}), found)
    return found


def test_an_index_shows_the_words_of_links_that_lead_into_the_checkout(
    shown: dict[str, Any],
) -> None:
    text, readme = shown["readme"]["text"], (ROOT / "README.md").read_text()
    inside = [link for link in LINK.findall(readme) if not link[2].startswith(("https:", "#"))]
    assert len(inside) > 20
    for picture, words, target in inside:
        assert (ROOT / target.partition("#")[0]).exists(), target
        assert f"]({target})" not in text
        assert (words in text) == (not picture), words
    rest = LINK.findall(text)
    assert rest
    assert all(target.startswith(("https:", "#")) for _, _, target in rest)


def test_no_address_is_named_that_the_project_does_not_have() -> None:
    assert PROJECT["project"]["urls"].keys() == {"Paper"}
    assert "url" not in (ROOT / "CITATION.cff").read_text()
    for file in ("pyproject.toml", "mkdocs.yml", "README.md", "docs/README.md", "CONTRIBUTING.md"):
        assert "github.com/grapheraser" not in (ROOT / file).read_text()


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.ipynb")]
    files += [
        file
        for part in ("examples", "src")
        for file in (ROOT / part).rglob("*.*")
        if "__pycache__" not in file.parts
    ]
    said = re.compile(r"pip install[^\n`]*[ '\"]grapheraser(\[|[ '\"`\n])")
    texts = {file: file.read_bytes().decode(errors="replace") for file in files}
    assert [file for file, text in texts.items() if said.search(text)] == []
    assert said.search("pip install 'grapheraser[service]'")


def test_a_relative_link_is_found() -> None:
    about = Message()
    about["Description-Content-Type"] = "text/markdown"
    about.set_payload("# GraphEraser\n\n[here](docs/README.md), [there](https://example.org)\n")
    assert in_metadata(about) == ["the README has a relative link, docs/README.md"]
    about.set_payload("# Another\n")
    assert in_metadata(about) == ["the description is not the README"]


def test_the_workflow_runs_the_two_commands_of_the_readme() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    section = (ROOT / "README.md").read_text().split("## Two commands")[1].split("## ")[0]
    commands = re.findall(r"^make \w+", section, re.M)
    assert commands == ["make demo", "make test"]
    steps = re.findall(r"- run: (.*)", workflow)
    assert steps == ["make demo", "make test-all", "make core", "make package", "make site"]
    assert re.search(r"^test-all: test$", (ROOT / "Makefile").read_text(), re.M)


def test_the_workflow_tries_every_python_that_the_package_names() -> None:
    named = {
        entry.rpartition(" ")[2]
        for entry in PROJECT["project"]["classifiers"]
        if entry.startswith("Programming Language :: Python :: 3.")
    }
    (matrix,) = re.findall(r"python: \[(.*)\]", (ROOT / ".github/workflows/ci.yml").read_text())
    assert set(re.findall(r"[\d.]+", matrix)) == named
    oldest = min(named, key=lambda version: int(version.split(".")[1]))
    assert PROJECT["project"]["requires-python"] == f">={oldest}"
