"""Pages as they are read: headings, links, and what of both is code."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tools.notebooks import read, text_of

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
_INDENTED = re.compile(r"(?:(?<=\n\n)|^)(?: {4}.*\n)+", re.M)
_SPAN = re.compile(r"``.+?``|`[^`\n]+`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.M)


def prose(page: Path) -> str:
    """The text of a page or notebook, without blocks of code."""
    if page.suffix == ".ipynb":
        cells = [cell for cell in read(page)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join(text_of(cell["source"]) for cell in cells) + "\n"
    else:
        text = page.read_text()
    return _FENCE.sub("", text)


def links(page: Path) -> list[str]:
    """The targets of all links."""
    return _LINK.findall(_SPAN.sub("", _INDENTED.sub("", prose(page))))


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links, as GitHub does it."""
    found: Counter[str] = Counter()
    names = set()
    for title in _HEADING.findall(prose(page)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names
