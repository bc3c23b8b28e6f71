"""Changes as they are written in JSON: one object a line, or in the body of a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from grapheraser.errors import ParameterError
from grapheraser.graph.changes import AddEdges, AddNodes, GraphChange, SetFeatures, SetLabels
from grapheraser.graph.requests import Edges, Features, Labels, Nodes


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
_REQUESTS: dict[str, Any] = {
    "nodes": Nodes,
    "edges": Edges,
    "features": Features,
    "labels": Labels,
}
_MAKERS: dict[str, Any] = {
    "add_nodes": AddNodes,
    "add_edges": AddEdges,
    "set_features": SetFeatures,
    "set_labels": SetLabels,
}


def changes_of(entry: object, num_features: int) -> list[GraphChange]:
    """The changes of one object; see `docs/changes.md` for what it looks like.

    Args:
        entry: what was read.
        num_features: columns of the graph, for rows that name their columns.
    """
    if not isinstance(entry, Mapping) or not entry or not entry.keys() <= {*_FORMS, *_REQUESTS}:
        keys = ", ".join([*_FORMS, *_REQUESTS])
        found = ", ".join(map(str, entry)) if isinstance(entry, Mapping) else str(entry)
        raise ParameterError(
            f"a line of changes has some of the keys {keys} (found {found[:200]!r})."
        )
    return [_change(kind, part, num_features) for kind, part in entry.items()]


def _change(kind: str, part: Any, num_features: int) -> GraphChange:
    if kind in _REQUESTS:
        made: GraphChange = _REQUESTS[kind](part)
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
    if isinstance(values.get("y"), list):
        values["y"] = [-1 if label is None else label for label in values["y"]]
    change: GraphChange = _MAKERS[kind](**values)
    return change


def _rows(rows: Any, num_features: int) -> Any:
    """Feature rows: lists of numbers, or objects that name the columns that are not 0."""
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
