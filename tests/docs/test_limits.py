"""Every limit is shown by an example that ends in exactly the error of the page."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from grapheraser.errors import GraphEraserError

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
EXAMPLE = re.compile(
    r"^## ([^\n]*)\n(?:(?!^## ).)*?^```py\n(.*?)^```\n+```text\n(.*?)^```", re.M | re.S
)
EXAMPLES = {title: (code, said) for title, code, said in EXAMPLE.findall(PAGE.read_text())}


@pytest.mark.parametrize("title", EXAMPLES)
def test_the_error_is_the_one_on_the_page(title: str) -> None:
    code, said = EXAMPLES[title]
    program = compile(code, f"{PAGE.name}: {title}", "exec", dont_inherit=True)
    with pytest.raises(GraphEraserError) as caught, warnings.catch_warnings():
        exec(program, {"__name__": "limits"})
    assert str(caught.value) == said.strip()


def test_every_example_of_the_page_is_run() -> None:
    assert len(EXAMPLES) == PAGE.read_text().count("```py\n") == PAGE.read_text().count("```text\n")
    assert {"Several types of nodes or edges", "Graphs without features"} <= EXAMPLES.keys()
