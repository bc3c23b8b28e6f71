"""Write the pages of the reference."""

from __future__ import annotations

from tools.reference import DOCS, pages

if __name__ == "__main__":
    for path, text in pages().items():
        (DOCS / path).write_text(text, encoding="utf-8")
