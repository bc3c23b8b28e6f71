"""The reference, written from the code: names, verbs and options, variables, errors.

python -m tools.reference
"""

from __future__ import annotations

from pathlib import Path

from tools.reference import cli, errors, index, names, variables

DOCS = Path(__file__).resolve().parents[2] / "docs"


def pages() -> dict[str, str]:
    """Every page that is generated, by its path below docs/."""
    return {
        "reference.md": index.page(),
        **names.pages(),
        "reference/command-line.md": cli.page(),
        "reference/variables.md": variables.page(),
        "reference/errors.md": errors.page(),
    }
