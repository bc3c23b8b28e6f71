"""Whatever is public is in a guide: names, options, environment variables, errors."""

from __future__ import annotations

import re
from pathlib import Path

from tools.reference import PAGE, page

from grapheraser import environment

ROOT = Path(__file__).parents[1]


def test_the_reference_is_what_the_code_says() -> None:
    assert PAGE.read_text() == page(), "run `make docs`"


def test_every_row_of_the_reference_says_something() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    assert len(rows) > 100
    assert [row for row in rows if re.search(r"\|\s*\|$", row)] == []


def test_every_environment_variable_that_the_package_reads_is_declared() -> None:
    pattern = re.compile(r"environ(?:\.get\(|\[)\s*\"(\w+)\"|getenv\(\s*\"(\w+)\"")
    read = {
        name
        for file in (ROOT / "src").rglob("*.py")
        for match in pattern.finditer(file.read_text())
        for name in match.groups()
        if name
    }
    assert read <= environment.VARIABLES.keys()
