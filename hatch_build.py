"""The README as a package index shows it: links to files of the checkout become their words.

In a checkout links are relative, so that they hold in every copy and branch. A package has no
files to link to, and the project has no address yet; pictures are left out for the same reason.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = r"\((?!https?:|mailto:|#)[^)]+\)"
_PICTURE = re.compile(rf"^!\[[^\]]*\]{_RELATIVE}\n+", re.M)
_LINK = re.compile(rf"\[([^\]]*)\]{_RELATIVE}")


def without_relative_links(text: str) -> str:
    """Replace relative links by their words, and drop the pictures among them."""
    return _LINK.sub(r"\1", _PICTURE.sub("", text))


class Readme(MetadataHookInterface):  # type: ignore[misc]
    """Fills in ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """See hatchling."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        shown = without_relative_links(text)
        metadata["readme"] = {"content-type": "text/markdown", "text": shown}
