"""A graph from a table of nodes and a table of edges, and back."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph.encoding import Encoding, encoding_of, filled, means_of
from grapheraser.graph.formats.tables import Table, headless, is_missing, table_of
from grapheraser.graph.ids import as_ids, names_of
from grapheraser.graph.label_input import WHOLE_FLOATS
from grapheraser.graph.labels import CLASSES, NUMBERS, SEVERAL
from grapheraser.graph.roles import CONTEXT, PARTS, ROLE_OF, UNLABELLED

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

SPLIT_NAMES = {CONTEXT: "", **{role: name for name, role in PARTS.items()}}
_OF_PYG = ("y", "train_mask", "val_mask", "test_mask")


@dataclass(frozen=True)
class Columns:
    """The columns of tables by their meaning; None: the usual name, where there is one."""

    id: str | None = None  # of the nodes; usually ``id``
    # Their classes; usually ``label``. Empty cells are labels that are not known.
    label: str | None = None
    split: str | None = None  # train, validation, test, or nothing; usually ``split``
    features: Sequence[str] | None = None  # of the nodes; usually all others
    # source, target: the ends of the edges; usually ``source`` and ``target``.
    source: str | None = None
    target: str | None = None
    weight: str | None = None  # of the edges; usually ``weight``
    edge_features: Sequence[str] | None = None  # of the edges; usually none


def from_tables(
    _cls: type[Graph],
    /,
    nodes: Any,
    edges: Any,
    *,
    id: str | None = None,
    label: str | None = None,
    split: str | None = None,
    features: Sequence[str] | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    edge_features: Sequence[str] | None = None,
    names: bool | None = None,
    missing: str | Mapping[str, str] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    num_classes: int | None = None,
    class_names: Sequence[str | int] | None = None,
    directed: bool = False,
    inferred: Sequence[str] = (),
    name: str = "graph",
    labels: str | None = None,
    target_names: Sequence[str] | None = None,
    label_range: float | Sequence[float] | None = None,
    separator: str = ";",
) -> Graph:
    """Build a graph from a table of nodes and a table of edges.

    Each is the path of a CSV file (with a header; also ``.gz``) or of a Parquet file, a frame
    of pandas, polars or Arrow, or a mapping from columns to values. A CSV file of edges that
    lists two known nodes on its first line, with or without a weight, needs no header.

    Args:
        nodes: a row per node; None: the ends of the edges, without features and labels.
        edges: a row per edge; every undirected edge once, or both ways.
        id: the column of ids: whole numbers, or names; default ``id``.
        label: of classes, whole numbers or words, empty where not known; default ``label``, if
            there is one.
        split: of train, validation, test or nothing; default ``split``, if there is one.
        features: columns of numbers, booleans, categories, or rows of numbers; default all
            others. Categories are columns of that type, and of words: a feature column each.
        source: the column of the first ends; default ``source``.
        target: the column of the second ends; default ``target``.
        weight: of weights; default ``weight``, if there is one.
        edge_features: columns of the edges' own features; default none.
        names: whether ids are names; None: unless all are whole numbers.
        missing: what stands for gaps in features, in all columns or by column: ``"zero"``,
            ``"indicator"`` (0, and a feature column that marks gaps) or ``"mean"`` (of the known
            cells, and such a column; worked out anew with every change). None: gaps are refused.
            By column it declares where gaps may be.
        categories: by column, all that there may be, in their order; default those of the column's
            type, or all words, sorted.
        num_classes: default as many as there are labels.
        class_names: of the classes, in their order; default all words, sorted, or the ids that
            are there where these leave gaps.
        directed: keep the directions of the edges.
        inferred: what else was found in the data; see `from_arrays`.
        name: for people.
        labels: what ``label`` holds: ``"several"`` words in a cell, or ``"numbers"``; default
            classes.
        target_names: of the several labels, in their order; default all words, sorted.
        label_range: the largest magnitude of numbers; see `from_arrays`.
        separator: between the words in a cell.
    """
    parts = (id, label, split, features, source, target, weight, edge_features)
    if not isinstance(separator, str) or not separator:
        raise ParameterError.of("separator", "Graph", "a word of at least one character", separator)
    rules = missing, categories, labels, separator
    arrays, encoding = arrays_of(nodes, edges, Columns(*parts), names, *rules)
    arrays["inferred"] += inferred
    if labels is None and any(separator in word for word in arrays["y"] if isinstance(word, str)):
        warnings.warn(
            f"graph '{name}': labels hold '{separator}', and each was taken as one class; "
            "labels='several' takes several words in a cell, labels='classes' these classes.",
            stacklevel=2,
        )
    graph = _cls.from_arrays(
        **arrays,
        num_classes=num_classes,
        class_names=class_names,
        each_edge_once=not directed,
        directed=directed,
        name=name,
        labels=labels,
        target_names=target_names,
        label_range=label_range,
    )
    return graph.with_encoding(encoding)


def _targets(table: Table, column: str | None, labels: str, separator: str) -> Any:
    """Read cells of several words, or of numbers; empty ones are not known."""
    cells = [None] * len(table) if column is None else table.columns[column]
    if labels == SEVERAL:
        return [None if is_missing(cell) else _words(cell, separator) for cell in cells]
    known = np.array([not is_missing(c) and str(c).strip().lower() != "nan" for c in cells])
    found = table.numbers(column, known) if column is not None and known.any() else np.ones((0, 1))
    y = np.full((len(cells), found.shape[1]), np.nan)
    y[known] = found
    return y


def _words(cell: Any, separator: str) -> set[str]:
    """Return the words of a cell: of text, between separators; of a list or set, all in it."""
    is_many = isinstance(cell, list | tuple | set | frozenset | np.ndarray)
    parts = cell if is_many else str(cell).split(separator)
    return {word for part in parts if (word := str(part).strip())}


def arrays_of(
    nodes: Any,
    edges: Any,
    columns: Columns,
    names: bool | None = None,
    missing: str | Mapping[str, str] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    labels: str | None = None,
    separator: str = ";",
) -> tuple[dict[str, Any], Encoding]:
    """Read the arguments of `Graph.from_arrays`, and the rule of the features."""
    if nodes is None:
        edge_table = _edge_table(edges, columns, None)
        node_table = _nodes_of(edge_table, columns)
    else:
        node_table = table_of(nodes, "nodes")
        given = node_table.column(columns.id or "id", "id")
        edge_table = _edge_table(edges, columns, set(map(str, given)))
    keys = _keys(node_table, columns.id or "id", names)
    chosen = _features(node_table, columns)
    encoding, schema = encoding_of(node_table, chosen, categories, missing)
    found = _node_arrays(node_table, columns, keys, encoding, labels, separator)
    found["inferred"] = _inferred(node_table, columns, nodes is None, names is None and keys.named)
    found["inferred"] += schema
    return found | _edge_arrays(edge_table, columns, keys, as_ids(found["ids"])), encoding


def _inferred(table: Table, columns: Columns, from_edges: bool, names: bool) -> list[str]:
    """Name what the cells of a table of nodes decided and fewer of them might decide otherwise.

    Such as that the nodes are the ends of the edges, or that ids were found to be names.
    """
    label = _usual(table, columns.label, "label", "label")
    labels = [] if label is None else [v for v in table.columns[label] if not is_missing(v)]
    found = {
        "nodes": from_edges,
        "names": names and any(map(_is_whole, table.column(columns.id or "id", "id"))),
        "classes": len(set(map(_is_class, labels))) > 1,
    }
    return [item for item, there in found.items() if there]


# -- nodes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Keys:
    """The nodes by what a table calls them."""

    ids: list[Any]  # an id or name for each row
    rows: dict[Hashable, int]  # the row of each
    named: bool  # whether they are names
    table: Table  # where they are listed

    def row(self, value: Any, table: Table, row: int, column: str) -> int:
        """Return the row of a node that another table names."""
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
    """Read a cell as a name or an id; None where it is neither."""
    if named:
        return str(value)
    return int(value) if _is_whole(value) else None


def _is_whole(value: Any) -> bool:
    """Tell whether a cell is an id: a whole number, in text without leading zeros."""
    if isinstance(value, str):
        plain = value.isascii() and value.isdigit() and (value[0] != "0" or value == "0")
        return plain and int(value) < 2**63
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _features(table: Table, columns: Columns) -> Sequence[str]:
    """Return the columns of features; warns of those that have no part in the graph."""
    taken = {columns.id or "id"}
    for name in ("label", "split"):
        taken |= {_usual(table, getattr(columns, name), name, name) or name}
    features = columns.features
    if features is None:
        features = [name for name in table.columns if name not in taken]
        if found := ", ".join(repr(name) for name in features if name in _OF_PYG):
            text = f"{table.name}: {found} are taken as features: label= and split= choose columns."
            warnings.warn(text, stacklevel=4)
    for name in features:
        table.column(name, "features")
    unused = [name for name in table.columns if name not in {*taken, *features}]
    _warn_of(table, unused, "features")
    return features


def _node_arrays(
    table: Table,
    columns: Columns,
    keys: _Keys,
    encoding: Encoding,
    labels: str | None,
    separator: str,
) -> dict[str, Any]:
    label = _usual(table, columns.label, "label", "label")
    split = _usual(table, columns.split, "split", "split")
    x = encoding.rows(table)
    x, _ = filled(encoding, x, means_of(encoding, x))
    ids = names_of(keys.ids) if keys.named else np.array(keys.ids, dtype=np.int64)
    are_classes = labels not in (SEVERAL, NUMBERS)
    if are_classes and label is not None and labels is None:
        _warn_of_floats(table, label)
    y = _labels(table, label) if are_classes else _targets(table, label, str(labels), separator)
    found = {"x": x, "ids": ids, "y": y}
    return found | (_split(table, split) if split is not None else {})


def _labels(table: Table, column: str | None) -> NDArray[Any]:
    """Read classes, as integers where all are, else as strings for `Graph.from_arrays` to sort."""
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
                f"(found {value!r}): numbers are not classes.",
                hint="labels='numbers' takes them as numbers.",
            )
    return names_of([None if value is None else str(value) for value in values])  # type: ignore[misc]


def _warn_of_floats(table: Table, column: str) -> None:
    """Warn of classes that could be numbers: floats, or text such as ``3.0``, without gaps.

    Where there are gaps, other libraries write whole numbers as floats.
    """
    values = table.columns[column]
    floats = (v for v in values if isinstance(v, float) or str(v).endswith(".0"))
    if any(True for _ in floats) and not any(map(is_missing, values)):
        warnings.warn(
            f"{table.name}: {WHOLE_FLOATS.format(CLASSES, NUMBERS, NUMBERS)}.", stacklevel=5
        )


def _is_class(value: Any) -> bool:
    """Tell whether a cell is a class; others write whole numbers with gaps as floats."""
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
    roles = []
    for row, value in enumerate(table.columns[column]):
        roles.append(ROLE_OF.get("" if is_missing(value) else str(value).strip().lower(), -1))
        if roles[-1] < 0:
            raise GraphError(
                f"{table.place(row)}: column '{column}' must be train, validation, test or empty "
                f"(found {value!r})."
            )
    return {name: np.array(roles, dtype=np.int8) == code for name, code in PARTS.items()}


# -- edges ----------------------------------------------------------------------------------------


def _edge_table(edges: Any, columns: Columns, known: set[str] | None) -> Table:
    """Read the edges; a file that only lists pairs of known nodes needs no names of columns."""
    table = table_of(edges, "edges")
    usual = columns.source is None and columns.target is None
    first = [str(name) for name in table.columns]
    if not usual or "source" in first or table.lines is None or len(first) not in (2, 3):
        return table
    if known is None or set(first[:2]) <= known:
        return headless(table, ("source", "target", "weight"))
    return table


def _nodes_of(edges: Table, columns: Columns) -> Table:
    """Collect the nodes that edges name, each once, in the order in which they first occur."""
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
        weights = table.numbers(weight)
        found["edge_weight"] = weights[:, 0] if weights.shape[1] == 1 else weights
    if extra:
        found["edge_attr"] = np.concatenate([table.numbers(n) for n in extra], axis=1)
    return found


def _usual(table: Table, name: str | None, usual: str, option: str) -> str | None:
    """Return the column that was named, which has to be there; or the usual one, if it is."""
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


def _joined(graph: Graph) -> list[Any]:
    """Return labels as cells: numbers, or words with a separator; refuse what has no cell."""
    kind, rows = graph.label_kind, graph.y
    if kind.is_numbers and kind.count == 1:
        return [value.item() for value in rows]
    if (
        kind.is_numbers
        or (graph.labelled & (rows != 1).all(axis=1)).any()
        or (graph.labelled & kind.is_unknown(rows).any(axis=1)).any()
    ):
        raise GraphError(
            "a cell of a table holds all words of a node, or one number, and an empty one is not "
            "known; these are several numbers, or labels of which a node has none, or of which "
            "some are not known.",
            hint="to_npz keeps all of them.",
        )
    names = np.array(kind.target_names, dtype=object)
    return [";".join(names[row == 1]) for row in rows]


def to_tables(graph: Graph) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the nodes and the edges as columns, for `from_tables` or a frame of any library.

    Nodes have ``id``, ``label``, ``split``, ``x0``, ``x1``, ...; edges ``source``, ``target``,
    and where they have them ``weight``, ``e0``, ``e1``, ...
    """
    known = graph.labelled
    words: Any = graph.y
    if not graph.label_kind.is_classes:
        words = _joined(graph)
    elif graph.class_names:
        words = np.array(graph.class_names, dtype=object)[np.maximum(graph.y, 0)]
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
