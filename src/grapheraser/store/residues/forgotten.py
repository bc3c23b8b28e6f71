"""The search for residues: ids, edges and feature rows that a request took out.

A run keeps none of this, so whoever asks for the search has to bring it, in a file of JSON lines:

    {"nodes": [10, 101]}                           or ["ada"], where nodes have names
    {"edges": [[3, 17]]}
    {"rows": {"10": {"5": 1.0, "17": 1.0}}}        node id -> column -> value
    {"labels": [12, [13, "art"]]}                  ids of nodes that stay without their label

`Forgotten.of(graph, requests)` makes it from the graph as it was before. Such a file is personal
data: keep it apart from the run, and no longer than the search needs it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import ParameterError
from grapheraser.graph import Edges, Graph, Labels, Nodes, Request, coalesce
from grapheraser.graph.csr import slices_of
from grapheraser.graph.ids import NamedId, name_id
from grapheraser.kinds import GRAPH_NAMES
from grapheraser.store import read_text
from grapheraser.untrusted import MAX_LINES, parse_json

_KEYS = (*GRAPH_NAMES, "rows")


@dataclass(frozen=True)
class Row:
    """One sparse feature row: sorted columns, and the value in each."""

    columns: tuple[int, ...]
    values: tuple[float, ...]

    def dense(self, width: int) -> NDArray[np.float32]:
        """The row as it would lie in a matrix of that many columns."""
        out = np.zeros(max(width, self.columns[-1] + 1), dtype=np.float32)
        out[list(self.columns)] = self.values
        return out


@dataclass(frozen=True)
class Forgotten:
    """Data that must not be found."""

    nodes: frozenset[int] = frozenset()  # ids of forgotten nodes
    # Forgotten ones, (u, v) with u < v, those of forgotten nodes included.
    edges: frozenset[tuple[int, int]] = frozenset()
    rows: Mapping[int, Row] = field(default_factory=dict)  # forgotten feature rows by node id
    # Ids of nodes whose labels are forgotten, and pairs of an id and one of its several targets.
    labels: frozenset[Any] = frozenset()
    names: frozenset[str] = frozenset()  # of forgotten nodes, where they had any

    @classmethod
    def of(cls, graph: Graph, request: Request | Sequence[Request]) -> Forgotten:
        """Return what a request takes out of a graph, as the graph is before it."""
        removal = coalesce(graph, request)
        at = graph.positions(removal.nodes)
        starts = np.repeat(removal.nodes, graph.degree[at])
        ends = graph.ids[graph.indices[slices_of(graph.indptr, at)]]
        pairs = np.concatenate([np.stack([starts, ends], axis=1), removal.edges])
        rows = {}
        for node in np.union1d(removal.nodes, removal.features).tolist():
            (row,) = graph.positions([node])
            part = slice(graph.x.indptr[row], graph.x.indptr[row + 1])
            if part.start < part.stop:
                columns, values = graph.x.indices[part].tolist(), graph.x.data[part].tolist()
                rows[node] = Row(tuple(columns), tuple(values))
        labels = frozenset([*removal.labels.tolist(), *map(tuple, removal.targets.tolist())])
        names = frozenset(graph.names_of(removal.nodes) if graph.named else ())
        return cls(frozenset(removal.nodes.tolist()), _ordered(pairs.tolist()), rows, labels, names)

    @classmethod
    def read(cls, path: Path) -> Forgotten:
        """Read a file of JSON lines."""
        nodes: set[int] = set()
        edges: list[Any] = []
        rows: dict[int, Row] = {}
        labels: set[Any] = set()
        for number, line in enumerate(read_text(path, MAX_LINES).splitlines(), start=1):
            if not line.strip():
                continue
            try:
                entry = parse_json(line, MAX_LINES)
                if not isinstance(entry, dict) or not entry.keys() <= set(_KEYS):
                    raise ValueError(f"the keys are {', '.join(_KEYS)}")
                nodes.update(_listed(entry, "nodes"))
                labels.update(Labels(_list(entry, "labels")).named)
                edges += Edges(entry.get("edges", ())).pairs
                for node, row in entry.get("rows", {}).items():
                    rows[Nodes(int(node)).ids[0]] = _row(row)
            except (ValueError, TypeError, AttributeError) as error:
                raise ParameterError(
                    f"{path}:{number}: not a line of forgotten data ({error})."
                ) from error
        names = frozenset(node.name for node in nodes if isinstance(node, NamedId))
        ids = frozenset(map(int, nodes))
        return cls(ids, _ordered(edges), rows, frozenset(labels), names)

    def to_lines(self) -> str:
        """The file's content."""
        rows = {
            str(node): {str(c): v for c, v in zip(row.columns, row.values, strict=True)}
            for node, row in sorted(self.rows.items())
        }
        named = {int(name_id(name)): name for name in self.names}
        nodes = [named.get(node, node) for node in sorted(self.nodes)]
        parts = {"nodes": nodes, "edges": sorted(self.edges), "rows": rows}
        parts |= {"labels": sorted(self.labels, key=str)}
        return "".join(json.dumps({key: part}) + "\n" for key, part in parts.items() if part)


def _listed(entry: Mapping[str, Any], key: str) -> tuple[int, ...]:
    """Ids and names of a list in a line."""
    return Nodes(_list(entry, key)).ids


def _list(entry: Mapping[str, Any], key: str) -> list[Any]:
    given = entry.get(key, [])
    if not isinstance(given, list):
        raise ValueError(f"'{key}' must be a list")
    return given


def _ordered(pairs: Sequence[Sequence[int]]) -> frozenset[tuple[int, int]]:
    return frozenset((min(u, v), max(u, v)) for u, v in pairs)


def _row(entry: Mapping[str, Any]) -> Row:
    items = sorted((int(column), float(value)) for column, value in entry.items())
    if not items or items[0][0] < 0 or items[-1][0] >= 2**31:
        raise ValueError("a row names at least one column, none below 0 or from 2**31 on")
    return Row(tuple(c for c, _ in items), tuple(v for _, v in items))
