"""Node ids, edges and requests, as typed on the command line or written in a file."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapheraser.errors import ParameterError

if TYPE_CHECKING:
    from grapheraser.graph import Request

_OWNER = "the command"
# What is longer is not repeated in a message.
_LONG = 200


def typed(text: str) -> str:
    """What was typed, or what it names: ``-`` is stdin, ``@FILE`` a file."""
    if text == "-":
        return sys.stdin.read()
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"can't read {text[1:]}: {error}.") from error


def read_file(path: Path) -> bytes:
    """The content of a file that the caller names; needs nothing but the standard library."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ParameterError(f"can't read {path}: {error.strerror}.") from error


def parse_ids(text: str, option: str, *, named: bool = False) -> list[int] | list[str]:
    """Parse ``1,2,3``, on one line or several; names where nodes have them."""
    words = [word for row in _rows(text, option) for word in row]
    if named:
        return words
    return [_as_id(word, option, "ids like 1,2,3", text) for word in words]


def parse_edges(
    text: str, option: str, *, named: bool = False
) -> list[tuple[int, int]] | list[tuple[str, str]]:
    """Parse ``3-17,4-8``, or lines of ``3,17``; names where nodes have them."""
    wanted = "pairs like ada-bob, or lines like ada,bob" if named else "pairs like 3-17,4-8"
    pairs: list[tuple[str, str]] = []
    for row in _rows(text, option):
        split = [word.split("-") for word in row]
        if len(row) == 2 and (named or not any("-" in word for word in row)):
            pairs.append((row[0], row[1]))
        elif all(len(ends) == 2 and all(ends) for ends in split):
            pairs += [(ends[0].strip(), ends[1].strip()) for ends in split]
        else:
            raise ParameterError.of(option, _OWNER, wanted, ",".join(row))
    if named:
        return pairs
    return [(_as_id(u, option, wanted, text), _as_id(v, option, wanted, text)) for u, v in pairs]


def _rows(text: str, option: str) -> list[list[str]]:
    """The lines of what was typed as lists of words; commas, and quotes, as in a CSV file."""
    try:
        found = list(csv.reader(text.splitlines(), skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise ParameterError(f"'{option}' of {_OWNER} is not readable ({error}).") from error
    rows = [[word.strip() for word in row if word.strip()] for row in found]
    return [row for row in rows if row]


def _as_id(word: str, option: str, wanted: str, text: str) -> int:
    try:
        node = int(word)
    except ValueError:
        shown = text if len(text) < _LONG else word
        raise ParameterError.of(option, _OWNER, wanted, shown) from None
    if abs(node) >= 2**63:
        raise ParameterError.of(option, _OWNER, "ids below 2**63", node)
    return node


@dataclass(frozen=True)
class Asked:
    """Requests as they were typed, before it is known whether nodes have names.

    Attributes:
        texts: of ``--nodes``, ``--edges``, ``--features`` and ``--labels``, where they were given.
        lines: of ``--file``, each with where it is.
    """

    texts: dict[str, str]
    lines: list[tuple[str, str]]

    @classmethod
    def of(cls, file: str, **texts: str) -> Asked:
        """Read what was typed, and what that names."""
        stdin = [text for text in (*texts.values(), file) if text == "-"]
        if len(stdin) > 1:
            raise ParameterError("only one option can be read from stdin (-).")
        found = {kind: typed(text) for kind, text in texts.items() if text}
        return cls(found, read_lines(file, "requests") if file else [])

    def __bool__(self) -> bool:
        return bool(self.texts or self.lines)

    def requests(self, *, named: bool) -> list[Request]:
        """The requests to a graph whose nodes have names or not."""
        kinds = _kinds()
        made: list[Request] = []
        for kind, text in self.texts.items():
            parse: Any = parse_edges if kind == "edges" else parse_ids
            made.append(kinds[kind](parse(text, f"--{kind}", named=named)))
        for place, line in self.lines:
            try:
                made += _requests_of(line, named=named)
            except ParameterError as error:
                raise ParameterError(f"{place}: {error.message}", hint=error.hint) from error
        return made


def _kinds() -> dict[str, Any]:
    from grapheraser.graph import Edges, Features, Labels, Nodes

    return {"nodes": Nodes, "edges": Edges, "features": Features, "labels": Labels}


def _requests_of(line: str, *, named: bool) -> list[Request]:
    """A line of requests: a JSON object, or ids of nodes."""
    kinds = _kinds()
    if not line.lstrip().startswith(("{", "[")):
        return [kinds["nodes"](parse_ids(line, "--file", named=named))]
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"not a JSON object ({error}).") from error
    if not isinstance(entry, dict) or not entry or not entry.keys() <= kinds.keys():
        raise ParameterError(
            f"a request has the keys nodes, edges, features or labels (found {line.strip()!r})."
        )
    return [kinds[kind](ids) for kind, ids in entry.items()]


def read_lines(source: str | Path, what: str) -> list[tuple[str, str]]:
    """The lines of a file that are not empty, ``-`` for stdin, each with where it is."""
    name = str(source).removeprefix("@")
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"can't read the {what} in {name}: {error}.") from error
    place = "stdin" if name == "-" else name
    lines = enumerate(text.splitlines(), start=1)
    return [(f"{place}:{number}", line) for number, line in lines if line.strip()]


def read_pairs(
    source: str, *, named: bool = False
) -> tuple[list[tuple[int, int]] | list[tuple[str, str]], list[int]]:
    """Read pairs with labels from a file, or from stdin where it is ``-``; one per line: 3,17,1."""
    rows, labels = [], []
    for place, line in read_lines(source, "pairs"):
        try:
            ((u, v, label),) = _rows(line, "--pairs")
            rows.append((u, v) if named else (int(u), int(v)))
            labels.append(int(label))
        except ValueError:
            raise ParameterError(
                f"{place}: a pair is a line like 3,17,1 (found {line.strip()!r})."
            ) from None
    return rows, labels  # type: ignore[return-value]
