"""Whatever is public is in the reference: names, parameters, options, variables, errors."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from tools.reference import DOCS, pages
from tools.reference.cli import commands, spelled
from tools.reference.common import MEANINGS
from tools.reference.docstrings import read
from tools.reference.errors import classes, remedy
from tools.reference.names import GROUPS

import grapheraser as ge
from grapheraser import environment, receipts
from grapheraser.service.settings import variables
from grapheraser.store import manifest

ROOT = Path(__file__).parents[1]
PAGES = pages()


def sections(text: str) -> dict[str, str]:
    """What a page says under each heading, up to the next."""
    parts = re.split(r"^##+ (.*)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


NAMED = {title: text for page in PAGES.values() for title, text in sections(page).items()}


@pytest.mark.parametrize("path", PAGES)
def test_the_reference_is_what_the_code_says(path: str) -> None:
    assert (DOCS / path).read_text() == PAGES[path], "run `make docs`"


def test_no_page_of_the_reference_is_left_over() -> None:
    there = {f"reference/{path.name}" for path in (DOCS / "reference").iterdir()}
    assert there == {path for path in PAGES if path.startswith("reference/")}


def test_every_public_name_is_on_one_page() -> None:
    listed = [name for _, names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(ge.__all__)
    for name in (*ge.__all__, *receipts.__all__):
        assert name in NAMED, name
        assert f".{name}`](reference/" in PAGES["reference.md"]


def parameters(value: Any) -> list[str]:
    names = inspect.signature(value).parameters
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


@pytest.mark.parametrize("name", [n for n in ge.__all__ if not isinstance(getattr(ge, n), str)])
def test_every_parameter_is_described(name: str) -> None:
    value = getattr(ge, name)
    if not getattr(value, "_is_protocol", False):
        for parameter in parameters(value):
            assert re.search(rf"^- `{parameter}`.*: \S", NAMED[name], re.M), (name, parameter)
    if not inspect.isclass(value):
        return
    for member, method in inspect.getmembers(value):
        if member.startswith("_"):
            continue
        if isinstance(inspect.getattr_static(value, member), property | cached_property):
            assert re.search(rf"^- `{member}`.*: \S", NAMED[name], re.M), (name, member)
        elif inspect.isfunction(method) or inspect.ismethod(method):
            section = NAMED[f"{name}.{member}"]
            for parameter in parameters(method):
                assert re.search(rf"^- `{parameter}`.*: \S", section, re.M), (member, parameter)


def test_meanings_that_no_docstring_needs_are_gone() -> None:
    text = "\n".join(PAGES.values())
    assert [name for name, meaning in MEANINGS.items() if f"- `{name}`" not in text] == []


@pytest.mark.parametrize("verb", commands())
def test_every_option_of_a_verb_is_described(verb: str) -> None:
    page = PAGES["reference/command-line.md"]
    common = page.split("Every verb takes")[1].split("\n## ")[0]
    section = sections(page)[f"grapheraser {verb}"]
    command = commands()[verb]
    assert command.help
    for parameter in command.params:
        line = rf"^- `{re.escape(spelled(parameter))}`: \S"
        assert re.search(line, section, re.M) or re.search(line, common, re.M), spelled(parameter)


@pytest.mark.parametrize("error", classes(), ids=lambda error: error.__name__)
def test_every_error_has_a_cause_and_a_remedy(error: type[Exception]) -> None:
    section = sections(PAGES["reference/errors.md"])[error.__name__]
    assert read(error).summary.split("`")[0] in section.replace("\n", " ")
    assert len(remedy(error)) > 10  # type: ignore[arg-type]
    assert f"**What to do**: {remedy(error)[:10]}" in section  # type: ignore[arg-type]


def test_every_environment_variable_is_described() -> None:
    page = PAGES["reference/variables.md"]
    for name in (*environment.VARIABLES, *variables()):
        assert re.search(rf"^\| `{name}` \| \S", page, re.M), name


def test_every_environment_variable_that_the_package_reads_is_declared() -> None:
    pattern = re.compile(r"environ(?:\.get\(|\[)\s*\"(\w+)\"|getenv\(\s*\"(\w+)\"")
    read_there = {
        name
        for file in (ROOT / "src").rglob("*.py")
        for match in pattern.finditer(file.read_text())
        for name in match.groups()
        if name
    }
    assert read_there <= environment.VARIABLES.keys()


def test_every_file_of_a_run_is_in_the_page_of_formats() -> None:
    page = (DOCS / "formats.md").read_text()
    files = re.findall(r"^    (\S+)", manifest.__doc__ or "", re.M)
    assert len(files) >= 8
    assert [file for file in files if file not in page] == []
    assert f"format {manifest.VERSION}" in page
