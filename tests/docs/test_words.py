"""One word for one thing: what the glossary rules out is in no guide and in no room."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import NOTEBOOKS, prose
from tests.docs.words import in_module, in_page, in_text

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "grapheraser"
# The glossary names what it rules out; the reference repeats docstrings of all rooms.
SKIPPED = {"glossary.md", "reference.md"}
PAGES = [page for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")) if page.name not in SKIPPED]
# Rooms that still have to be reworded; take a name out when its room is done.
NOT_YET: set[str] = set()
ROOMS = sorted(p for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists())


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.name)
def test_guides_keep_to_the_glossary(page: Path) -> None:
    assert in_page(page) == []


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.name)
def test_guides_say_what_was_measured_and_not_what_was_hoped_for(page: Path) -> None:
    assert re.findall(r"\(bar\b.*|\| bars? \|.*|\bthe bar is\b.*", page.read_text(), re.I) == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_tutorials_keep_to_the_glossary(notebook: Path) -> None:
    assert in_text(prose(notebook)) == []


@pytest.mark.parametrize(
    "room", [room for room in ROOMS if room.name not in NOT_YET], ids=lambda room: room.stem
)
def test_rooms_keep_to_the_glossary(room: Path) -> None:
    modules = sorted(room.rglob("*.py")) if room.is_dir() else [room]
    found = {str(module.relative_to(PACKAGE)): in_module(module) for module in modules}
    assert {module: words for module, words in found.items() if words} == {}


@pytest.mark.parametrize(
    "text",
    [
        "Two people ask that their tie be forgotten.",
        "The cut is kept.",
        "A graph cut into shards.",
        "Everything is trained\nagain.",
        "Train every shard again.",
        "Split the graph into shards.",
        "The nodes of the train set.",
    ],
)
def test_a_word_that_is_ruled_out_is_found(text: str) -> None:
    assert in_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "Ties go to the lower class; on a tie, the lower id.",
        "The edge cut, and `recut`, a name.",
        "A save that is cut short.",
        "Shards are retrained. The test split.",
        "Training, again, takes seconds.",
    ],
)
def test_other_meanings_pass(text: str) -> None:
    assert in_text(text) == []


def test_words_are_found_in_docstrings_messages_and_comments_alone(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""Cut a graph."""\n\ncut = {"cut": "a name"}  # no cut\nraise ValueError(f"tie {cut} ")\n'
    )
    assert in_module(module) == [(1, "Cut"), (3, "cut"), (4, "tie")]
