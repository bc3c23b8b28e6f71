"""Node ids, edges and requests, as typed on the command line or written in a file."""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapheraser.errors import ParameterError
from grapheraser.kinds import KINDS, NODES
from grapheraser.reports.wording import listed
from grapheraser.untrusted import MAX_LINES, parse_json, read_named

if TYPE_CHECKING:
    from grapheraser.graph import Request
    from grapheraser.receipts.keys import PublicKey

_OWNER = "the command"
# Longer text is not repeated in a message.
_MAX_SHOWN = 200
_MAX_PATH = 4096


def typed(text: str) -> str:
    """Return what was typed, or read what it names: ``-`` is stdin, ``@FILE`` a file."""
    return _text(text, "") if text == "-" or text.startswith("@") else text


def _text(source: str, what: str) -> str:
    """The text in a file, or of stdin where it is ``-``."""
    name = source.removeprefix("@")
    try:
        if name != "-":
            return read_named(name, MAX_LINES).decode()
        found = sys.stdin.read(MAX_LINES + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"can't read {what}{name}: {error}.") from error
    if len(found) > MAX_LINES:
        raise ParameterError(f"stdin: more than {MAX_LINES:,} characters, too much to read.")
    return found


def read_file(path: Path) -> bytes:
    """The content of a file that the caller names; needs nothing but the standard library."""
    try:
        return read_named(path)
    except OSError as error:
        raise ParameterError(f"can't read {path}: {error.strerror}.") from error


def read_line(given: str) -> str:
    """Return the content of a file that the caller names, or what was typed in its place."""
    is_file = len(given) < _MAX_PATH and Path(given).is_file()
    return read_file(Path(given)).decode(errors="replace") if is_file else given


def read_key(path: Path) -> PublicKey:
    """The public key in a file that the caller names."""
    from grapheraser.receipts.keys import PublicKey

    return PublicKey.read(read_file(path).decode(errors="replace"))


def parse_ids(text: str, option: str, *, named: bool = False) -> list[int] | list[str]:
    """Parse ``1,2,3``, on one line or several; names where nodes have them."""
    words = [word for row in _rows(text, option) for word in row]
    if named:
        return words
    return [_as_id(word, option, "ids like 1,2,3", text) for word in words]


def parse_edges(
    text: str, option: str, *, named: bool = False
) -> list[tuple[int, int]] | list[tuple[str, str]]:
    """Parse ``3-17,4-8``, or lines of ``3,17``; names where nodes have them.

    One relation of a typed graph is ``ada-knows-bob``.
    """
    wanted = "pairs like ada-bob, or lines like ada,bob" if named else "pairs like 3-17,4-8"
    pairs: list[Any] = []
    for row in _rows(text, option):
        split = [word.split("-") for word in row]
        if named and all(len(ends) == 3 and all(ends) for ends in split):
            pairs += [tuple(map(str.strip, ends)) for ends in split]  # a relation of a typed graph
        elif len(row) == 2 and (named or not any("-" in word for word in row)):
            pairs.append((row[0], row[1]))
        elif all(len(ends) == 2 and all(ends) for ends in split):
            pairs += [(ends[0].strip(), ends[1].strip()) for ends in split]
        else:
            raise ParameterError.of(option, _OWNER, wanted, ",".join(row))
    if named:
        return pairs
    return [(_as_id(u, option, wanted, text), _as_id(v, option, wanted, text)) for u, v in pairs]


def parse_facts(text: str, option: str) -> list[tuple[str, str, str]]:
    """Parse lines of ``head,relation,tail``, as a CSV file has them."""
    rows = _rows(text, option)
    for row in rows:
        if len(row) != 3:
            raise ParameterError.of(option, _OWNER, "lines of head,relation,tail", ",".join(row))
    return [(head, relation, tail) for head, relation, tail in rows]


def parse(text: str, name: str, *, named: bool = False) -> list[Any]:
    """Parse the option of a kind: ids, or pairs where two ids name one of it."""
    option = f"--{name.replace('_', '-')}"
    if KINDS[name].inside:
        return _parse_parts(text, option, KINDS[name].ends)
    if KINDS[name].targets and not named:
        return _parse_targets(text, option)
    parser: Any = parse_ids if KINDS[name].ends == 1 else parse_edges
    found: list[Any] = parser(text, option, named=named)
    return found


def _parse_targets(text: str, option: str) -> list[Any]:
    """Parse ids, and ``12-art``: one of several labels of node 12, by its name or number."""
    wanted, found = "ids like 1,2,3, or with one of several labels, 12-art", []
    for word in (word for row in _rows(text, option) for word in row):
        node, _, target = word.partition("-")
        split = node and target
        one = _as_id(node if split else word, option, wanted, text)
        found.append((one, int(target) if target.isdigit() else target) if split else one)
    return found


def _parse_parts(text: str, option: str, ends: int) -> list[tuple[int, ...]]:
    """Parse parts of graphs: ``12-4`` is node 4 of graph 12, ``12-1-4`` one of its edges."""
    wanted = f"parts like {'12-4' if ends == 2 else '12-1-4'}"
    words = [word.split("-") for row in _rows(text, option) for word in row]
    if any(len(word) != ends for word in words):
        raise ParameterError.of(option, _OWNER, wanted, text[:_MAX_SHOWN])
    return [tuple(_as_id(end, option, wanted, text) for end in word) for word in words]


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
        shown = text if len(text) < _MAX_SHOWN else word
        raise ParameterError.of(option, _OWNER, wanted, shown) from None
    if abs(node) >= 2**63:
        raise ParameterError.of(option, _OWNER, "ids below 2**63", node)
    return node


@dataclass(frozen=True)
class TypedRequests:
    """Requests as they were typed, before it is known whether nodes have names."""

    texts: dict[str, str]  # of the options, by the name of their kind, where they were given
    lines: list[tuple[str, str]]  # of ``--file``, each with where it is

    @classmethod
    def of(cls, file: str, **texts: str) -> TypedRequests:
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
        from grapheraser.graph.changes.kinds import CASCADE, requests_of

        made = requests_of(
            {
                name: text.split(",") if name == CASCADE else parse(text, name, named=named)
                for name, text in self.texts.items()
            }
        )
        for place, line in self.lines:
            try:
                made += _requests_of(line, named=named)
            except ParameterError as error:
                raise ParameterError(f"{place}: {error.message}", hint=error.hint) from error
        return made


def _requests_of(line: str, *, named: bool) -> list[Request]:
    """Read a line of requests: a JSON object, or ids of nodes."""
    from grapheraser.graph.changes.kinds import CASCADE, requests_of

    if not line.lstrip().startswith(("{", "[")):
        return requests_of({NODES.name: parse_ids(line, "--file", named=named)})
    try:
        entry = parse_json(line, MAX_LINES)
    except ValueError as error:
        raise ParameterError(f"not a JSON object ({error}).") from error
    if not isinstance(entry, dict) or not entry or not entry.keys() <= {*KINDS, CASCADE}:
        keys = listed([*KINDS, CASCADE], "or")
        raise ParameterError(f"a request has the keys {keys} (found {line.strip()!r}).")
    return requests_of(entry)


def read_lines(source: str | Path, what: str) -> list[tuple[str, str]]:
    """The lines of a file that are not empty, ``-`` for stdin, each with where it is."""
    name = str(source).removeprefix("@")
    place = "stdin" if name == "-" else name
    lines = enumerate(_text(str(source), f"the {what} in ").splitlines(), start=1)
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
