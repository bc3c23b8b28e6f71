"""Give the stored pages of the evaluation the stylesheet that pages have now.

python -m tools.pages
"""

from __future__ import annotations

import re
from pathlib import Path

from grapheraser.reports.pages.render import stylesheet

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results"
PAGES = sorted(FOLDER.glob("*/report.html"))

_STYLE = re.compile(r"<style>\n.*?</style>", re.S)


def restyled(page: str) -> str:
    """The page with the stylesheet of today."""
    return _STYLE.sub(lambda _: f"<style>\n{stylesheet()}</style>", page)


def main() -> None:
    """Write the pages again."""
    for path in PAGES:
        path.write_text(restyled(path.read_text()))


if __name__ == "__main__":
    main()
