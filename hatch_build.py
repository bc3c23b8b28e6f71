"""What a package index shows: the README with absolute links, and where the project lives.

In a checkout links are relative, so that they hold in every copy and branch. The address that they
get in a package stands once, in ``pyproject.toml``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|mailto:|#)([^)]+)\)")
# Pages of the project by what an index calls them.
_PAGES = {
    "Documentation": "docs/README.md",
    "Changelog": "CHANGELOG.md",
    "Security": "SECURITY.md",
}


def absolute(text: str, home: str) -> str:
    """Markdown whose links lead to the project's home; pictures to their files."""

    def link(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        return f"{picture}{words}({home}/{'raw' if picture else 'blob'}/main/{target})"

    return _LINK.sub(link, text)


class Readme(MetadataHookInterface):  # type: ignore[misc]
    """Fills in ``readme`` and ``urls``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """See hatchling."""
        home = self.config["home"]
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, home)}
        pages = {name: f"{home}/blob/main/{page}" for name, page in _PAGES.items()}
        paper = "https://doi.org/10.1145/3548606.3559352"
        metadata["urls"] = {"Source": home, "Issues": f"{home}/issues", **pages, "Paper": paper}
