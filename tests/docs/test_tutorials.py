"""The tutorials run, and print what is stored in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.notebooks import VARIES, as_markdown, printed, read, stored, text_of, tidied, tutorials

from grapheraser.datasets import PUBLIC

TUTORIALS = tutorials()
_MAX_BYTES = 40_000


def test_there_is_one_for_each_question_of_a_newcomer() -> None:
    names = {path.stem for path in TUTORIALS}
    assert {"first-deletion", "own-model", "paper", "erasure-request"} <= names
    tasks = {"forget-an-edge", "forget-a-molecule", "forget-a-user", "forget-in-an-index", "fraud"}
    assert tasks <= names


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # the packages that execute notebooks have their own
def test_tutorials_that_save_run_twice_and_side_by_side_in_one_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("nbclient", reason="needs the extra 'docs'")
    pytest.importorskip("ipykernel", reason="needs the extra 'docs'")
    from tools.notebooks import executed

    saving = [path for path in TUTORIALS if ".save(" in path.read_text()]
    assert len(saving) > 1
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"), prepend=":")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    for path in [*saving, *saving]:
        executed(path, tmp_path)  # raises what a cell raises


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # the packages that execute notebooks have their own
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_prints_what_is_stored_in_it(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("nbclient", reason="needs the extra 'docs'")
    pytest.importorskip("ipykernel", reason="needs the extra 'docs'")
    from tools.notebooks import executed

    if any(f'"{name}"' in path.read_text().replace("\\", "") for name in PUBLIC):
        monkeypatch.setenv("GRAPHERASER_DATA", str(request.getfixturevalue("data_root")))
    source = Path(__file__).parents[2] / "src"
    monkeypatch.setenv("PYTHONPATH", str(source), prepend=":")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    for before, now in zip(read(path)["cells"], executed(path, tmp_path)["cells"], strict=True):
        if VARIES in before["metadata"].get("tags", []):
            assert bool(printed(before)) == bool(printed(now))
        else:
            assert printed(now) == printed(before), text_of(before["source"])


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_stored_tutorials_are_small_and_tidy(path: Path) -> None:
    notebook = read(path)
    assert path.read_text() == stored(tidied(notebook)), "run python -m tools.notebooks"
    assert path.stat().st_size < _MAX_BYTES
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert any(printed(cell) for cell in code)
    for cell in code:
        assert not re.search(r"/(?:home|root|tmp|work)/", printed(cell))


def test_a_notebook_becomes_a_page() -> None:
    notebook = {
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "\n", "Text.\n"]},
            {
                "cell_type": "code",
                "metadata": {},
                "source": "print(1)",
                "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                    {"output_type": "stream", "name": "stderr", "text": ["a warning\n"]},
                ],
            },
        ]
    }
    page = as_markdown(tidied(notebook), "name")
    assert page.startswith("# Title\n\n*Every cell")
    assert "```python\nprint(1)\n```" in page
    assert "1\n```" in page
    assert "a warning" not in page
