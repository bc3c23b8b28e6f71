"""Every Python block of the documentation runs, in the order in which it is read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.aggregation import AGGREGATORS
from grapheraser.datasets import PUBLIC
from grapheraser.engines import ENGINES
from grapheraser.execution import EXECUTORS
from grapheraser.models import KINDS
from grapheraser.partition import PARTITIONERS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text())


def run(block: str, where: str, names: dict[str, Any]) -> None:
    # Without this file's own __future__ imports, as in a script of the reader's.
    exec(compile(block, where, "exec", dont_inherit=True), names)


@pytest.mark.long
@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name
)
def test_the_examples_run(
    page: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if any(f'"{name}"' in block for name in PUBLIC for block in blocks(page)):
        request.getfixturevalue("data_root")
    monkeypatch.chdir(tmp_path)
    module = ModuleType(page.stem)
    monkeypatch.setitem(sys.modules, page.stem, module)  # where a page's own classes live
    for number, block in enumerate(blocks(page), start=1):
        run(block, f"{page.name}, block {number}", vars(module))


def test_the_readme_has_six_lines_that_end_in_a_proof(capsys: pytest.CaptureFixture[str]) -> None:
    first = blocks(ROOT / "README.md")[0]
    assert len([line for line in first.splitlines() if line]) == 6
    run(first, "README.md", {})
    score, proof = capsys.readouterr().out.splitlines()
    assert 0 < float(score) <= 1
    assert proof == "exact True"


def test_what_the_readme_forgets_was_trained_on() -> None:
    names: dict[str, Any] = {}
    for block in blocks(ROOT / "README.md"):
        run(block, "README.md", names)
    assert len(names["receipt"].retrained) == 2
    assert names["receipt"].details.untrained == 1, "the edge that crosses shards"


@pytest.mark.data
def test_what_the_commands_of_the_reference_forget_was_trained_on(data_root: Path) -> None:
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text()
    asked = re.findall(r"unlearn runs/cora --nodes (\S+)", page)
    graph = ge.load_dataset("cora", data_root)
    assert asked
    for text in asked:
        assert np.isin([int(node) for node in text.split(",")], graph.train_nodes).all()


@pytest.mark.parametrize(
    "names",
    [KINDS, PARTITIONERS, AGGREGATORS, ENGINES, EXECUTORS, PUBLIC],
    ids=["models", "partitions", "aggregations", "engines", "executors", "data sets"],
)
def test_the_reference_has_every_name_and_the_readme_leads_there(names: Iterable[str]) -> None:
    section = (ROOT / "docs" / "reference.md").read_text().split("## Names of parts")[1]
    assert [name for name in names if f"`{name}`" not in section] == []
    assert "(docs/reference.md#names-of-parts)" in (ROOT / "README.md").read_text()


def test_the_readme_can_be_read_in_one_go() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 180
    figures = text.split("## In numbers")[1].split("## ")[0]
    rows = [line for line in figures.splitlines() if line.startswith("|")][2:]
    assert len(rows) <= 8
