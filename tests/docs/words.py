"""Find words that the glossary rules out in guides, docstrings, messages and comments.

List those of a room with ``python -m tests.docs.words src/grapheraser/ROOM``.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

# What is ruled out, and what to write instead. A blank stands for any white space.
RULED_OUT = {
    r"ties?|tied": "edge (a tie is a tie-break)",
    r"cuts?|cutting": "partition (but 'edge cut')",
    r"train(?:s|ed|ing)?(?: \w+){0,2} (?:again|anew|once more)": "retrain",
    r"re-train\w*": "retrain",
    r"split\w*(?: \w+){0,3} into (?:\w+ ){0,2}shards": "partition",
    r"sub-?models?": "shard",
    r"train(?:ing)? sets?": "training nodes",
    r"back-?ends?": "engine",
}
# Where the same words mean something else.
_ALLOWED = (
    r"on a tie",
    r"tie-break(?:s|ing|er|ers)?",
    r"ties (?:go|are broken|count|to the|as in|in a random|between (?:equal|profiles|nodes go))",
    r"break(?:s|ing)? (?:a |the )?ties?",
    r"(?:edge|min|minimum|normalised)[- ]cuts?",
    r"cut (?:short|off|down|up)|power cut",
)
_CODE = re.compile(r"``.+?``|`[^`\n]+`")
_GENERATED = re.compile(r"<!-- table: .*?<!-- end -->", re.DOTALL)


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    joined = "|".join(patterns).replace(" ", r"\s+")
    return re.compile(rf"\b(?:{joined})\b", re.IGNORECASE)


_FOUND, _MEANT = _any_of(RULED_OUT), _any_of(_ALLOWED)


def in_text(text: str) -> list[tuple[int, str]]:
    """Line and words of everything in a text that is ruled out; skips code spans."""
    for skipped in (_CODE, _MEANT):
        text = skipped.sub(_blank, text)
    return [
        (text.count("\n", 0, found.start()) + 1, " ".join(found[0].split()))
        for found in _FOUND.finditer(text)
    ]


def in_page(page: Path) -> list[tuple[int, str]]:
    """What is ruled out in a Markdown page; skips its generated tables."""
    return in_text(_GENERATED.sub(_blank, page.read_text()))


def in_module(module: Path) -> list[tuple[int, str]]:
    """What is ruled out in the docstrings, messages and comments of a module."""
    source = module.read_text()
    return sorted(
        (start + line - 1, words)
        for start, text in (*_strings(source), *_comments(source))
        for line, words in in_text(text)
    )


def _strings(source: str) -> Iterator[tuple[int, str]]:
    """Docstrings and messages; a string without a blank is a name or a key."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _blank(found: re.Match[str]) -> str:
    """As many characters and lines as were found, without the words."""
    return re.sub(r"[^\n]", "_", found[0])


if __name__ == "__main__":
    for file in sorted(Path(sys.argv[1]).rglob("*.py")):
        for at, what in in_module(file):
            print(f"{file}:{at}: {what}")
