"""Node ids and edges as people type them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grapheraser.errors import ParameterError
from grapheraser.graph import Edges, Features, Nodes, Request


def parse_ids(text: str, option: str) -> list[int]:
    """``1,2,3`` as a list."""
    try:
        ids = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ParameterError.of(option, "the command", "ids like 1,2,3", text) from None
    for node in ids:
        if abs(node) >= 2**63:
            raise ParameterError.of(option, "the command", "ids below 2**63", node)
    return ids


def parse_edges(text: str, option: str) -> list[tuple[int, int]]:
    """``3-17,4-8`` as a list of pairs."""
    try:
        pairs = [part.split("-") for part in text.split(",") if part.strip()]
        return [(int(u), int(v)) for u, v in pairs]
    except ValueError:
        raise ParameterError.of(option, "the command", "pairs like 3-17,4-8", text) from None


def read_requests(path: Path) -> list[Request]:
    """A file of requests, one JSON object a line: {"nodes": [10]}, {"edges": [[3, 17]]}, ..."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"can't read the requests in {path}: {error}.") from error
    requests: list[Request] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            requests += _requests_of(line, f"{path}:{number}")
    return requests


def _requests_of(line: str, place: str) -> list[Request]:
    kinds: dict[str, Any] = {"nodes": Nodes, "edges": Edges, "features": Features}
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"{place}: not a JSON object ({error}).") from error
    if not isinstance(entry, dict) or not entry or not entry.keys() <= kinds.keys():
        raise ParameterError(
            f"{place}: a request has the keys nodes, edges or features (found {line.strip()!r})."
        )
    try:
        return [kinds[kind](ids) for kind, ids in entry.items()]
    except ParameterError as error:
        raise ParameterError(f"{place}: {error.message}", hint=error.hint) from error
