"""Requests and changes by the names of their kinds, as JSON has them: in lines or in messages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from grapheraser.errors import ParameterError
from grapheraser.graph.changes.parts import AddGraphs, SetGraphs
from grapheraser.graph.changes.requests import REQUESTS, Edges
from grapheraser.graph.changes.sides import AddInteractions, AddItems, AddUsers, SideRequest
from grapheraser.graph.changes.typed import followers
from grapheraser.graph.changes.updates import (
    AddEdges,
    AddNodes,
    GraphChange,
    SetFeatures,
    SetLabels,
)
from grapheraser.graph.roles import UNLABELLED
from grapheraser.kinds import CHANGES, NODES, Item, Kind, named_by

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

CASCADE = "cascade"  # see `Nodes`

# The class of each change, by name; tasks add theirs.
_CLASSES: dict[str, Any] = {
    made.kind.name: made
    for made in (
        *(AddNodes, AddEdges, SetFeatures, SetLabels),
        *(AddUsers, AddItems, AddInteractions, AddGraphs, SetGraphs),
    )
}


def requests_of(named: Mapping[str, Any]) -> list[Any]:
    """Make a request of each kind from ids by name, such as ``{"nodes": [12]}``.

    ``cascade`` goes with nodes, as in `Nodes`.
    """
    if CASCADE in named and NODES.name not in named:
        raise ParameterError("'cascade' goes with nodes (found none).")
    more = {NODES.name: {CASCADE: named.get(CASCADE, ())}}
    found = ((name, ids) for name, ids in named.items() if name != CASCADE)
    return [REQUESTS[name](ids, **more.get(name, {})) for name, ids in found]


def items_along(graph: Graph, items: Iterable[Item], cascade: Sequence[str]) -> list[Item]:
    """List the nodes that go along with others; see ``cascade`` of `Nodes`."""
    if graph.types is None or not cascade:
        return []
    nodes = [item.ids[0] for item in items if item.kind is NODES]
    return [Item(NODES, (node,)) for node in followers(graph, graph.types, nodes, cascade)]


def requests_for(items: Iterable[Item]) -> list[Any]:
    """Make a request of each kind for single things, named by the ids of their nodes."""
    made: list[Any] = []
    for name, nodes in named_by(items).items():
        kind = REQUESTS[name]
        if kind is Edges:  # those of typed graphs come with the number of a relation
            relations = [ends for ends in nodes if len(ends) > 2]
            made.append(Edges.of_relations(relations, [e for e in nodes if len(e) == 2]))
            continue
        made.append(kind.of_nodes(nodes) if issubclass(kind, SideRequest) else kind(nodes))
    return made


def changes_of(entry: object, num_features: int) -> list[GraphChange]:
    """Make the changes that one object names; `docs/changes.md` says what it looks like.

    Rows that name their columns have ``num_features`` of them.
    """
    if not isinstance(entry, Mapping) or not entry or not entry.keys() <= {*CHANGES, *REQUESTS}:
        keys = ", ".join([*CHANGES, *REQUESTS])
        found = ", ".join(map(str, entry)) if isinstance(entry, Mapping) else str(entry)
        raise ParameterError(
            f"a line of changes has some of the keys {keys} (found {found[:200]!r})."
        )
    return [
        REQUESTS[name](part) if name in REQUESTS else _change(CHANGES[name], part, num_features)
        for name, part in entry.items()
    ]


def _change(kind: Kind, part: Any, num_features: int) -> GraphChange:
    needed, optional = kind.needed, kind.optional
    if not isinstance(part, dict) or not {*needed} <= part.keys() <= {*needed, *optional}:
        may = f", and may have {', '.join(optional)}" if optional else ""
        raise ParameterError(
            f"'{kind.name}' is an object with {' and '.join(needed)}{may} "
            f"(found {list(part) if isinstance(part, dict) else part!r})."
        )
    values = dict(part)
    if "x" in values:
        values["x"] = _rows(values["x"], num_features)
    labels = values.get("y")
    if isinstance(labels, list) and not any(isinstance(label, str) for label in labels):
        values["y"] = [_label(label) for label in labels]
    change: GraphChange = _CLASSES[kind.name](**values)
    return change


def _label(label: Any) -> Any:
    """Read a label; null stands for one that is not known."""
    if isinstance(label, list):
        words = any(isinstance(one, str) for one in label)
        return label if words else [math.nan if one is None else one for one in label]
    return UNLABELLED if label is None else label


def _rows(rows: Any, num_features: int) -> Any:
    """Read rows: lists of numbers, objects of the columns that are not 0, or objects of cells."""
    if not isinstance(rows, Sequence) or not any(isinstance(row, dict) for row in rows):
        return rows
    if all(isinstance(row, dict) for row in rows) and not all(map(_is_whole, chain(*rows))):
        names = dict.fromkeys(chain(*rows))  # those of the table that the graph was made of
        return {name: [row.get(name) for row in rows] for name in names}
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
    if not (_is_column(name) and int(name) < num_features):
        raise ParameterError(f"a column of 'x' is in [0, {num_features - 1}] (found {name!r}).")
    return int(name)


def _is_whole(name: str) -> bool:
    """Tell numbers of columns, right or wrong, from names of columns of a table."""
    return _is_column(name.removeprefix("-"))


def _is_column(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterError(f"'x' is made of numbers (found {value!r}).")
    return float(value)
