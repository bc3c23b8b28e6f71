"""Node ids, edges and requests, as typed on the command line or written in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapheraser.errors import ParameterError

if TYPE_CHECKING:
    from grapheraser.graph import Request

_OWNER = "the command"


def parse_ids(text: str, option: str) -> list[int]:
    """Parse ``1,2,3``."""
    try:
        ids = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ParameterError.of(option, _OWNER, "ids like 1,2,3", text) from None
    for node in ids:
        if abs(node) >= 2**63:
            raise ParameterError.of(option, _OWNER, "ids below 2**63", node)
    return ids


def parse_edges(text: str, option: str) -> list[tuple[int, int]]:
    """Parse ``3-17,4-8``."""
    try:
        pairs = [part.split("-") for part in text.split(",") if part.strip()]
        return [(int(u), int(v)) for u, v in pairs]
    except ValueError:
        raise ParameterError.of(option, _OWNER, "pairs like 3-17,4-8", text) from None


def requests_from(
    nodes: str, edges: str, features: str, labels: str, file: Path | None
) -> list[Request]:
    """The requests of ``--nodes``, ``--edges``, ``--features``, ``--labels`` and ``--file``."""
    from grapheraser.graph import Edges, Features, Labels, Nodes

    requests: list[Request] = []
    if nodes:
        requests.append(Nodes(parse_ids(nodes, "--nodes")))
    if edges:
        requests.append(Edges(parse_edges(edges, "--edges")))
    if features:
        requests.append(Features(parse_ids(features, "--features")))
    if labels:
        requests.append(Labels(parse_ids(labels, "--labels")))
    return requests if file is None else requests + read_requests(file)


def read_file(path: Path) -> bytes:
    """The content of a file that the caller names; needs nothing but the standard library."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ParameterError(f"can't read {path}: {error.strerror}.") from error


def read_requests(path: Path) -> list[Request]:
    """Read a file of requests, one JSON object per line: {"nodes": [10]}, {"edges": [[3, 17]]}."""
    requests: list[Request] = []
    for place, line in read_lines(path, "requests"):
        requests += _requests_of(line, place)
    return requests


def read_lines(path: Path, what: str) -> list[tuple[str, str]]:
    """The lines of a file that are not empty, ``-`` for stdin, each with where it is."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"can't read the {what} in {path}: {error}.") from error
    name = "stdin" if str(path) == "-" else str(path)
    lines = enumerate(text.splitlines(), start=1)
    return [(f"{name}:{number}", line) for number, line in lines if line.strip()]


def _requests_of(line: str, place: str) -> list[Request]:
    from grapheraser.graph import Edges, Features, Labels, Nodes

    kinds: dict[str, Any] = {
        "nodes": Nodes,
        "edges": Edges,
        "features": Features,
        "labels": Labels,
    }
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"{place}: not a JSON object ({error}).") from error
    if not isinstance(entry, dict) or not entry or not entry.keys() <= kinds.keys():
        raise ParameterError(
            f"{place}: a request has the keys nodes, edges, features or labels "
            f"(found {line.strip()!r})."
        )
    try:
        return [kinds[kind](ids) for kind, ids in entry.items()]
    except ParameterError as error:
        raise ParameterError(f"{place}: {error.message}", hint=error.hint) from error


def read_pairs(path: Path) -> tuple[list[tuple[int, int]], list[int]]:
    """Read a file of pairs with labels, one per line: 3,17,1."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"can't read the pairs in {path}: {error}.") from error
    pairs, labels = [], []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                u, v, label = (int(part) for part in line.split(","))
            except ValueError:
                raise ParameterError(
                    f"{path}:{number}: a pair is a line like 3,17,1 (found {line.strip()!r})."
                ) from None
            pairs.append((u, v))
            labels.append(label)
    return pairs, labels
