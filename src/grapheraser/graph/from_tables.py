"""A graph from a table of nodes and a table of edges, and back."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import GraphError
from grapheraser.graph.ids import as_ids
from grapheraser.graph.names import names_of
from grapheraser.graph.roles import CONTEXT, TEST, TRAIN, UNLABELLED, VALIDATION
from grapheraser.graph.tables import Table, headless, is_missing, table_of

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

SPLIT_NAMES = {TRAIN: "train", VALIDATION: "validation", TEST: "test", CONTEXT: ""}
_PARTS = {"train": "train", "validation": "validation", "valid": "validation", "val": "validation"}
_PARTS |= {"test": "test", "context": ""}


@dataclass(frozen=True)
class Columns:
    """Which column is what; None: the one of the usual name, where there is one.

    Attributes:
        id: of the nodes; usually ``id``.
        label: their classes; usually ``label``. Empty cells are labels that are not known.
        split: train, validation, test, or nothing; usually ``split``.
        features: of the nodes; usually all others.
        source, target: the ends of the edges; usually ``source`` and ``target``.
        weight: of the edges; usually ``weight``.
        edge_features: of the edges; usually none.
    """

    id: str | None = None
    label: str | None = None
    split: str | None = None
    features: Sequence[str] | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    edge_features: Sequence[str] | None = None


def arrays_of(
    nodes: Any, edges: Any, columns: Columns, names: bool | None = None
) -> dict[str, Any]:
    """The arguments of `Graph.from_arrays`; see `Graph.from_tables`."""
    if nodes is None:
        edge_table = _edge_table(edges, columns, None)
        node_table = _nodes_of(edge_table, columns)
    else:
        node_table = table_of(nodes, "nodes")
        given = node_table.column(columns.id or "id", "id")
        edge_table = _edge_table(edges, columns, set(map(str, given)))
    keys = _keys(node_table, columns.id or "id", names)
    found = _node_arrays(node_table, columns, keys)
    return found | _edge_arrays(edge_table, columns, keys, as_ids(found["ids"]))


# -- nodes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Keys:
    """The nodes by what a table calls them.

    Attributes:
        ids: an id or name for each row.
        rows: the row of each.
        named: whether they are names.
        table: where they are listed.
    """

    ids: list[Any]
    rows: dict[Hashable, int]
    named: bool
    table: Table

    def row(self, value: Any, table: Table, row: int, column: str) -> int:
        """The row of a node that another table names."""
        key = _key(value, self.named)
        found = self.rows.get(key) if isinstance(key, Hashable) else None
        if found is None:
            raise GraphError(
                f"{table.place(row)}: node {value!r} of column '{column}' is not in "
                f"{self.table.name}."
            )
        return found


def _keys(table: Table, column: str, names: bool | None) -> _Keys:
    values = table.column(column, "id")
    named = not all(map(_is_whole, values)) if names is None else names
    rows: dict[Hashable, int] = {}
    for row, value in enumerate(values):
        key = _key(value, named)
        if is_missing(value) or key is None:
            wanted = "a name" if named else "a whole number that is not negative"
            raise GraphError(
                f"{table.place(row)}: column '{column}' must be {wanted} (found {value!r})."
            )
        if key in rows:
            raise GraphError(
                f"{table.place(row)}: node {value!r} is there already ({table.place(rows[key])})."
            )
        rows[key] = row
    return _Keys(list(rows), rows, named, table)


def _key(value: Any, named: bool) -> Any:
    """A cell as a name or an id; None where it is neither."""
    if named:
        return str(value)
    return int(value) if _is_whole(value) else None


def _is_whole(value: Any) -> bool:
    """Whether a cell is an id: a whole number, in text without leading zeros."""
    if isinstance(value, str):
        plain = value.isascii() and value.isdigit() and (value[0] != "0" or value == "0")
        return plain and int(value) < 2**63
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _node_arrays(table: Table, columns: Columns, keys: _Keys) -> dict[str, Any]:
    own = columns.id or "id"
    label = _usual(table, columns.label, "label", "label")
    split = _usual(table, columns.split, "split", "split")
    taken = {own, label, split}
    features = columns.features
    if features is None:
        features = [name for name in table.columns if name not in taken]
    for name in features:
        table.column(name, "features")
    parts = [_matrix(table.numbers(name)) for name in features]
    unused = [name for name in table.columns if name not in {*taken, *features}]
    _warn_of(table, unused, "features")
    x = np.concatenate([np.zeros((len(table), 0)), *parts], axis=1)
    ids = names_of(keys.ids) if keys.named else np.array(keys.ids, dtype=np.int64)
    found = {"x": x, "ids": ids, "y": _labels(table, label)}
    return found | (_split(table, split) if split is not None else {})


def _matrix(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[:, None] if values.ndim == 1 else values


def _labels(table: Table, column: str | None) -> NDArray[Any]:
    """Classes as integers where all are, else as strings for `Graph.from_arrays` to sort."""
    if column is None:
        return np.full(len(table), UNLABELLED)
    values = [None if is_missing(value) else value for value in table.columns[column]]
    known = [value for value in values if value is not None]
    if all(_is_class(value) for value in known):
        return np.array(
            [UNLABELLED if v is None else int(float(v)) for v in values], dtype=np.int64
        )
    for row, value in enumerate(values):
        if _is_fraction(value):
            raise GraphError(
                f"{table.place(row)}: column '{column}' must be classes, whole numbers or words "
                f"(found {value!r}): numbers are not predicted.",
                hint="make classes of them, such as 'low' and 'high'.",
            )
    return names_of([None if value is None else str(value) for value in values])  # type: ignore[misc]


def _is_class(value: Any) -> bool:
    """A column of whole numbers with gaps is read, and written, as floats by others."""
    whole = isinstance(value, float) and value.is_integer() and value >= UNLABELLED
    text = value.removesuffix(".0") if isinstance(value, str) else value
    return whole or _is_whole(text) or text in ("-1", -1)


def _is_fraction(value: Any) -> bool:
    if isinstance(value, float):
        return True
    try:
        return isinstance(value, str) and not value.strip().isdigit() and np.isfinite(float(value))
    except ValueError:
        return False


def _split(table: Table, column: str) -> dict[str, Any]:
    chosen: dict[str, list[bool]] = {part: [] for part in ("train", "validation", "test")}
    for row, value in enumerate(table.columns[column]):
        word = "" if is_missing(value) else str(value).strip().lower()
        part = "" if word == "" else _PARTS.get(word)
        if part is None:
            raise GraphError(
                f"{table.place(row)}: column '{column}' must be train, validation, test or empty "
                f"(found {value!r})."
            )
        for name, mask in chosen.items():
            mask.append(name == part)
    return {name: np.array(mask, dtype=bool) for name, mask in chosen.items()}


# -- edges ----------------------------------------------------------------------------------------


def _edge_table(edges: Any, columns: Columns, known: set[str] | None) -> Table:
    """The edges; a file that only lists pairs of known nodes needs no names of columns."""
    table = table_of(edges, "edges")
    usual = columns.source is None and columns.target is None
    first = [str(name) for name in table.columns]
    if not usual or "source" in first or table.lines is None or len(first) not in (2, 3):
        return table
    if known is None or set(first[:2]) <= known:
        return headless(table, ("source", "target", "weight"))
    return table


def _nodes_of(edges: Table, columns: Columns) -> Table:
    """The nodes that edges name, each once, in the order in which they first occur."""
    ends = [edges.column(getattr(columns, end) or end, end) for end in ("source", "target")]
    return Table(edges.name, {columns.id or "id": list(dict.fromkeys([*ends[0], *ends[1]]))})


def _edge_arrays(
    table: Table, columns: Columns, keys: _Keys, ids: NDArray[np.int64]
) -> dict[str, Any]:
    ends, taken = [], set[str | None]()
    for end in ("source", "target"):
        name = getattr(columns, end) or end
        values = table.column(name, end)
        ends.append([keys.row(value, table, row, name) for row, value in enumerate(values)])
        taken.add(name)
    weight = _usual(table, columns.weight, "weight", "weight")
    extra = list(columns.edge_features or ())
    for name in extra:
        table.column(name, "edge_features")
    unused = [name for name in table.columns if name not in {*taken, weight, *extra}]
    _warn_of(table, unused if columns.edge_features is None else (), "edge_features")
    found: dict[str, Any] = {"edge_index": ids[np.array(ends, dtype=np.int64)]}
    if weight is not None:
        found["edge_weight"] = table.numbers(weight)
    if extra:
        found["edge_attr"] = np.concatenate([_matrix(table.numbers(n)) for n in extra], axis=1)
    return found


def _usual(table: Table, name: str | None, usual: str, option: str) -> str | None:
    """The column that was named, which has to be there; or the usual one, if it is."""
    if name is None:
        return usual if usual in table.columns else None
    table.column(name, option)
    return name


def _warn_of(table: Table, unused: Sequence[str], option: str) -> None:
    if unused:
        warnings.warn(
            f"{table.name}: columns {', '.join(map(repr, unused))} are not used "
            f"({option}=[...] names those that are).",
            stacklevel=5,
        )


# -- and back -------------------------------------------------------------------------------------


def tables_of(graph: Graph) -> tuple[dict[str, Any], dict[str, Any]]:
    """The nodes and the edges as columns; see `Graph.to_tables`."""
    known = graph.y != UNLABELLED
    words: Any = graph.y
    if graph.class_names:
        words = names_of(graph.class_names)[np.maximum(graph.y, 0)]
    called = graph.names_of(graph.ids)
    nodes: dict[str, Any] = {
        "id": called.tolist(),
        "label": [word if there else None for word, there in zip(words, known, strict=True)],
        "split": [SPLIT_NAMES[int(role)] for role in graph.role],
    }
    dense = graph.x.toarray()
    nodes |= {f"x{column}": dense[:, column] for column in range(graph.num_features)}
    at = graph.edge_index
    chosen = np.ones(at.shape[1], dtype=bool) if graph.directed else at[0] < at[1]
    edges: dict[str, Any] = {
        "source": called[at[0][chosen]].tolist(),
        "target": called[at[1][chosen]].tolist(),
    }
    if graph.edge_weight is not None:
        edges["weight"] = graph.edge_weight[chosen]
    if graph.edge_attr is not None:
        columns = graph.edge_attr[chosen].T
        edges |= {f"e{number}": column for number, column in enumerate(columns)}
    return nodes, edges
