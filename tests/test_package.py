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
HOME = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["home"]
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)]+)\)")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `hatch_build.py` adds to the metadata; hatchling itself need not be installed."""
    interface = ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))["Readme"]
    found: dict[str, Any] = {}
    hook.update(SimpleNamespace(root=str(ROOT), config={"home": HOME}), found)
    return found


def test_links_of_the_readme_lead_to_files_of_the_project(shown: dict[str, Any]) -> None:
    text = shown["readme"]["text"]
    links = LINK.findall(text)
    assert len(links) > 20
    for picture, target in links:
        assert target.startswith(("https:", "#")), target
        if target.startswith(HOME):
            kind, _, file = target.removeprefix(f"{HOME}/").split("/", 2)
            assert kind == ("raw" if picture else "blob")
            assert (ROOT / file.partition("#")[0]).exists(), file
    assert [words for words, _ in links].count("!") == 1


def test_urls_lead_to_files_of_the_project(shown: dict[str, Any]) -> None:
    urls = shown["urls"]
    assert {"Source", "Documentation", "Changelog", "Issues"} <= urls.keys()
    for name in ("Documentation", "Changelog", "Security"):
        assert (ROOT / urls[name].removeprefix(f"{HOME}/blob/main/")).exists()


def test_a_relative_link_and_a_missing_url_are_found() -> None:
    about = Message()
    about["Description-Content-Type"] = "text/markdown"
    about["Project-URL"] = "Source, https://example.org"
    about.set_payload("# GraphEraser\n\n[here](docs/README.md), [there](https://example.org)\n")
    problems = in_metadata(about)
    assert "the README has a relative link, docs/README.md" in problems
    assert "no project URL 'Changelog'" in problems
    assert len(problems) == 4


def test_the_workflow_runs_the_two_commands_of_the_readme() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    section = (ROOT / "README.md").read_text().split("## Two commands")[1].split("## ")[0]
    commands = re.findall(r"^make \w+", section, re.M)
    assert commands == ["make demo", "make test"]
    steps = re.findall(r"- run: (.*)", workflow)
    assert steps == [*commands, "make package", "make site"]


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
