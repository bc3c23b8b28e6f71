"""Changes as they are written in a file: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from grapheraser.cli.arguments import read_lines
from grapheraser.errors import InputError, ParameterError

if TYPE_CHECKING:
    from grapheraser.graph import GraphChange


class _Form(NamedTuple):
    """The keys of a change: those that it needs, and those that it may have."""

    needed: tuple[str, ...]
    other: tuple[str, ...] = ()


_FORMS = {
    "add_nodes": _Form(("ids", "x"), ("y", "edges", "edge_weight", "edge_attr")),
    "add_edges": _Form(("pairs",), ("weight", "edge_attr")),
    "set_features": _Form(("nodes", "x")),
    "set_labels": _Form(("nodes", "y")),
}
_REQUESTS = ("nodes", "edges", "features", "labels")


def read_changes(path: Path, num_features: int) -> list[GraphChange]:
    """Read a file of changes, ``-`` for stdin; see `docs/changes.md` for what a line looks like.

    Args:
        path: of the file.
        num_features: columns of the graph, for rows that name their columns.
    """
    changes: list[GraphChange] = []
    for place, line in read_lines(path, "changes"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ParameterError(f"{place}: not a JSON object ({error}).") from error
        if not isinstance(entry, dict) or not entry or not entry.keys() <= {*_FORMS, *_REQUESTS}:
            keys = ", ".join([*_FORMS, *_REQUESTS])
            raise ParameterError(
                f"{place}: a line of changes has some of the keys {keys} "
                f"(found {line.strip()[:200]!r})."
            )
        try:
            changes += [_change(kind, part, num_features) for kind, part in entry.items()]
        except InputError as error:
            raise type(error)(f"{place}: {error.message}", hint=error.hint) from error
    return changes


def _change(kind: str, part: Any, num_features: int) -> GraphChange:
    from grapheraser import graph as graphs

    requests = {name: getattr(graphs, name.capitalize()) for name in _REQUESTS}
    if kind in requests:
        made: GraphChange = requests[kind](part)
        return made
    form = _FORMS[kind]
    if not isinstance(part, dict) or not {*form.needed} <= part.keys() <= {
        *form.needed,
        *form.other,
    }:
        may = f", and may have {', '.join(form.other)}" if form.other else ""
        raise ParameterError(
            f"'{kind}' is an object with {' and '.join(form.needed)}{may} "
            f"(found {list(part) if isinstance(part, dict) else part!r})."
        )
    values = dict(part)
    if "x" in values:
        values["x"] = _rows(values["x"], num_features)
    labels = values.get("y")
    if isinstance(labels, list) and not any(isinstance(label, str) for label in labels):
        values["y"] = [-1 if label is None else label for label in labels]
    makers: dict[str, Any] = {
        "add_nodes": graphs.AddNodes,
        "add_edges": graphs.AddEdges,
        "set_features": graphs.SetFeatures,
        "set_labels": graphs.SetLabels,
    }
    change: GraphChange = makers[kind](**values)
    return change


def _rows(rows: Any, num_features: int) -> Any:
    """Feature rows: lists of numbers, or objects that name the columns that are not 0."""
    import numpy as np

    if not isinstance(rows, Sequence) or not any(isinstance(row, dict) for row in rows):
        return rows
    out = np.zeros((len(rows), num_features), dtype=np.float64)
    for at, row in enumerate(rows):
        if isinstance(row, dict):
            out[at, [_column(name, num_features) for name in row]] = [*map(_number, row.values())]
        elif isinstance(row, list) and len(row) == num_features:
            out[at] = [_number(value) for value in row]
        else:
            raise ParameterError(
                f"a row of 'x' is a list of {num_features} numbers, or an object of columns and "
                f"numbers (found {str(row)[:200]})."
            )
    return out


def _column(name: str, num_features: int) -> int:
    if not (name.isascii() and name.isdigit() and int(name) < num_features):
        raise ParameterError(f"a column of 'x' is in [0, {num_features - 1}] (found {name!r}).")
    return int(name)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterError(f"'x' is made of numbers (found {value!r}).")
    return float(value)
