"""Give the stored pages of the evaluation the stylesheet and the frames that pages have now.

python -m tools.pages
"""

from __future__ import annotations

import re
from pathlib import Path

from grapheraser.reports.pages.render import stylesheet

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results"
PAGES = sorted(FOLDER.glob("*/report.html"))

_STYLE = re.compile(r"<style>\n.*?</style>", re.S)
_BARE = re.compile(r'(?<!<figure class="scroll" tabindex="0">\n)(<img alt="[^"]*" src="[^"]*">)')


def restyled(page: str) -> str:
    """The page with the stylesheet of today, its pictures in boxes that scroll."""
    page = _STYLE.sub(lambda _: f"<style>\n{stylesheet()}</style>", page)
    return _BARE.sub(r'<figure class="scroll" tabindex="0">\n\1\n</figure>', page)


def main() -> None:
    for path in PAGES:
        path.write_text(restyled(path.read_text()))


if __name__ == "__main__":
    main()
