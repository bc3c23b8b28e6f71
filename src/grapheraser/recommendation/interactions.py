"""From interactions, as people have them, to the bipartite graph of a recommender.

Matrices, tables, Parquet files and graphs all become a sparse matrix of users and items first, and
that becomes a graph whose nodes are users (class 0) and items (class 1); `graph.changes.sides` says
which node is whom. Users and items without interactions are nodes as well.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.datasets.load import data_root
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import TRAIN, Graph
from grapheraser.graph.arrays import read_only
from grapheraser.graph.changes.sides import LARGEST
from grapheraser.graph.edge_values import NO_VALUES, EdgeKind
from grapheraser.graph.formats.npz import checked
from grapheraser.graph.formats.streams import UnstreamableError, parquet_blocks
from grapheraser.graph.formats.tables import PARQUET, is_missing, table_of
from grapheraser.graph.ids import Names, ids_of_names, names_of
from grapheraser.kernels.compiled import compiled
from grapheraser.kinds import ITEMS, USERS, Kind

_OWNER = "Recommender.fit"
# What a table of interactions decides and fewer of them might decide otherwise; see `claim`.
UNIVERSE = "users and items"
# The column of a frame's row labels, in a Parquet file that pandas wrote.
_PANDAS_ROWS = "__index_level_0__"


@dataclass(frozen=True, eq=False)
class World:
    """Interactions as they were given.

    Attributes:
        interactions: a matrix, a table, a path or a graph.
        users, items: ids of the rows and columns; None: those of the matrix or the table.
        columns: names of the columns of a table: user, item, weight, time.
    """

    interactions: Any
    users: Any = None
    items: Any = None
    columns: tuple[str, str, str, str] = ("user", "item", "weight", "time")


@dataclass(frozen=True, eq=False)
class _Known:
    """Users or items.

    Attributes:
        kind: which of both.
        keys: numbers, int64, or names; each once.
        inferred: what about them was found in the data; see `Graph`.
    """

    kind: Kind
    keys: NDArray[Any]
    inferred: tuple[str, ...] = ()

    @property
    def named(self) -> bool:
        return self.keys.dtype.kind == "O"

    def nodes(self) -> tuple[NDArray[np.int64], Names | None]:
        """Return the ids of their nodes, and their names where they have some."""
        if not self.named:
            return 2 * self.keys + self.kind.side, None
        names = names_of(self.kind.called(name) for name in self.keys)
        return ids_of_names(names), names


def graph_of(world: World, scale: float | None, now: float | None = None) -> Graph:
    """Make the graph of interactions; refuse those that can't be learned from.

    Args:
        world: as they were given.
        scale: the weight of an interaction of strength 1; None: they have no weights.
        now: the moment that they are seen from, of which edges carry the distance; None: they have
            no times.
    """
    given, ages = world.interactions, None
    if now is not None and (isinstance(given, Graph) or sp.issparse(given)):
        raise GraphError("only a table of interactions has times, which 'now' is about.")
    if isinstance(given, Graph):
        if world.users is not None or world.items is not None:
            raise ParameterError(f"'users' and 'items' of {_OWNER} have no part in a graph.")
        matrix, users, items = _from_graph(given)
    elif sp.issparse(given) or (isinstance(given, np.ndarray) and given.ndim == 2):
        matrix, users, items = _from_matrix(given, world)
    else:
        matrix, users, items, ages = _from_table(world, scale, now)
    if users.named != items.named and len(users.keys) and len(items.keys):
        raise GraphError(
            "ids of users and items must both be numbers, or both be names.",
            hint="turn the numbers into text: column.astype(str).",
        )
    if matrix.nnz == 0:
        raise GraphError("there are no interactions to learn from.")
    matrix = _weighed(matrix, scale)
    kind = EdgeKind(weighted=scale is not None, columns=0 if ages is None else 1)
    parts = [] if scale is None else [matrix.data]
    parts += [] if ages is None else [ages.data]
    carried = np.zeros((0, 0), np.float32)
    if parts:
        carried = np.stack(parts, axis=1).astype(np.float32)
        matrix.data = np.arange(matrix.nnz)
    return _graph(matrix, users, items, kind, carried)


def _from_matrix(given: Any, world: World) -> tuple[Any, _Known, _Known]:
    """Return a matrix, with users and items for its rows and columns."""
    matrix = sp.csr_array(given, copy=True)
    if matrix.dtype.kind not in "fiub":
        raise GraphError(f"interactions must be numbers (found dtype {matrix.dtype}).")
    matrix.eliminate_zeros()
    sides = []
    for kind, asked, count in zip(
        (USERS, ITEMS), (world.users, world.items), matrix.shape, strict=True
    ):
        keys = np.arange(count) if asked is None else _keys(kind, asked)
        if len(keys) != count:
            raise GraphError(
                f"'{kind.name}' of {_OWNER} must name every one of {count} in the matrix "
                f"(found {len(keys)})."
            )
        sides.append(_Known(kind, keys))
    return matrix, sides[0], sides[1]


def _from_graph(graph: Graph) -> tuple[Any, _Known, _Known]:
    if graph.types is not None:
        raise GraphError("a graph of interactions has no types (found a typed graph).")
    if graph.directed or graph.edge_kind.columns:
        raise GraphError(
            "interactions have no directions, nor features of their own.",
            hint="graph.undirected(), graph.without_edge_attr().",
        )
    if graph.num_classes != 2 or (graph.y < 0).any():
        raise GraphError("a graph of interactions has users of class 0 and items of class 1.")
    called = graph.names_of(graph.ids) if graph.named else graph.ids
    adjacency, at = graph.to_scipy(), [np.flatnonzero(graph.y == side) for side in (0, 1)]
    if any(adjacency[side][:, side].nnz for side in at):
        raise GraphError("an edge of a graph of interactions joins a user and an item.")
    matrix = sp.csr_array(adjacency[at[0]][:, at[1]])
    return matrix, _Known(USERS, called[at[0]]), _Known(ITEMS, called[at[1]])


def _from_table(
    world: World, scale: float | None, now: float | None
) -> tuple[Any, _Known, _Known, Any]:
    """Return a matrix, users and items; and with times one of how long ago interactions were."""
    user, item, weight, time = world.columns
    columns, inferred = _columns(world.interactions, (user, item))
    for name in (user, item):
        if name not in columns:
            raise GraphError(
                f"the interactions have no column '{name}' (found {', '.join(columns)}).",
                hint=f"name it: fit(table, {name}=...).",
            )
    used = world.columns[: None if now is not None else -1]
    unused = [name for name in columns if name not in used and name != _PANDAS_ROWS]
    if unused:
        warnings.warn(f"columns {', '.join(map(repr, unused))} are not used.", stacklevel=5)
    ends, sides = [], []
    for kind, name, asked in ((USERS, user, world.users), (ITEMS, item, world.items)):
        cells = _cells(kind, columns[name])
        keys = np.unique(cells) if asked is None else np.sort(_keys(kind, asked))
        at = np.minimum(np.searchsorted(keys, cells), max(0, len(keys) - 1))
        if len(cells) and (not len(keys) or (keys[at] != cells).any()):
            wrong = cells[0] if not len(keys) else cells[keys[at] != cells][0]
            raise GraphError(f"{kind.words} {wrong!r} of the table is not among '{kind.name}'.")
        ends.append(at)
        sides.append(_Known(kind, keys, () if asked is not None else (UNIVERSE, *inferred)))
    values = [_values(columns, weight, len(ends[0]), scale)]
    if now is not None:
        if time not in columns:
            raise GraphError(f"the interactions have no column '{time}', which 'now' is about.")
        values.append(now - as_times(columns[time]))
    shape = (len(sides[0].keys), len(sides[1].keys))
    matrices = _matrices(ends, values, shape, weighted=scale is not None)
    return matrices[0], sides[0], sides[1], matrices[1] if now is not None else None


def _matrices(
    ends: list[NDArray[np.int64]],
    values: list[NDArray[np.float64]],
    shape: tuple[int, int],
    *,
    weighted: bool,
) -> list[Any]:
    """Make matrices of a table's weights, and of its ages if there are any; each pair once."""
    keys = ends[0].astype(np.int64) * shape[1] + ends[1]
    if (more := len(keys) - len(np.unique(keys))) > 0:
        if weighted:
            raise GraphError("a weighted interaction is there more than once: add the weights up.")
        newest = ", the newest" if len(values) > 1 else ""
        warnings.warn(
            f"{more} interactions are there more than once, and count once{newest}.", stacklevel=6
        )
        order = np.lexsort((values[-1], keys))
        kept = order[np.append(True, np.diff(keys[order]) != 0)]
        ends, values = [end[kept] for end in ends], [part[kept] for part in values]
    made = [sp.csr_array(sp.coo_array((part, tuple(ends)), shape=shape)) for part in values]
    for matrix in made:
        matrix.sort_indices()
    return made


def as_times(given: Any) -> NDArray[np.float64]:
    """Read times: numbers as they are, dates and their text as seconds since 1970."""
    array = np.asarray(given)
    try:
        if array.dtype.kind in "OU":
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError):
                array = array.astype("datetime64[us]")
        if array.dtype.kind == "M":
            missing = np.isnat(array)
            array = array.astype("datetime64[us]").astype(np.int64) / 1e6
            array[missing] = np.nan
        times: NDArray[np.float64] = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise GraphError(f"times must be numbers or dates ({error}).") from error
    if not np.isfinite(times).all():
        raise GraphError(f"{int((~np.isfinite(times)).sum())} interactions have no time.")
    return times


def _values(
    columns: Mapping[str, Any], weight: str, count: int, scale: float | None
) -> NDArray[np.float64]:
    """Return the weights of a table's rows, 1 where there are none."""
    if weight not in columns:
        if scale is not None:
            raise GraphError(f"the interactions have no column '{weight}', which 'scale' is of.")
        return np.ones(count)
    try:
        return np.asarray(columns[weight]).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise GraphError(f"weights must be numbers ({error}).") from error


def read_interactions(source: str) -> Any:
    """Read what the command line names: a CSV or Parquet file, or a matrix saved by SciPy.

    An ``.npz`` file may also hold ``train``, pairs of a user and an item, and ``shape``, as
    `datasets` has it; a name alone is such a file of ``tasks/recommendation``.
    """
    path = Path(source)
    if not path.suffix and not path.exists():
        path = data_root() / "tasks" / "recommendation" / f"{source}.npz"
    if not path.exists():
        raise GraphError(
            f"{source}: no such file, nor a known set of interactions.",
            hint="give the path of a table with columns user and item, .csv or .parquet.",
        )
    if path.suffix != ".npz":
        return path
    try:
        with open(path, "rb") as file:
            found = np.load(checked(file), allow_pickle=False)
            if "train" in found:
                pairs, shape = found["train"], tuple(found["shape"].tolist())
                return sp.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=shape)
            return sp.csr_array(sp.load_npz(checked(file)))
    except (OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
        raise GraphError(f"{path}: no interactions can be read from it ({error}).") from error


def columns_of(table: Any) -> dict[str, Any]:
    """Return the columns of a table of interactions, or of a CSV or Parquet file."""
    return _columns(table, ("user", "item"))[0]


def _columns(source: Any, ids: tuple[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the columns of a table, and what was found in its cells."""
    if isinstance(source, str | Path) and Path(source).suffix in PARQUET:
        return _parquet(Path(source)), []
    if isinstance(source, str | Path):
        return _from_text(dict(table_of(source, "interactions").columns), ids)
    source = source.collect() if hasattr(source, "collect") else source  # polars, lazy
    if hasattr(source, "column_names") and hasattr(source, "column"):  # Arrow
        return {str(name): source.column(name).to_numpy() for name in source.column_names}, []
    if isinstance(source, Mapping) or hasattr(source, "columns"):
        keys = source if isinstance(source, Mapping) else source.columns
        return {str(key): source[key] for key in keys}, []
    raise GraphError(
        "interactions must be a matrix, a table, the path of one, or a graph "
        f"(found {type(source).__name__}).",
        hint="pairs are a table of two columns: {'user': users, 'item': items}.",
    )


def _from_text(columns: dict[str, Any], ids: tuple[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Read ids as numbers where all of them are some."""
    given = [cell for name in ids for cell in columns.get(name, ())]
    numbers = [isinstance(cell, str) and _is_number(cell) for cell in given]
    if all(numbers):
        read = {name: np.array(columns[name], dtype=np.int64) for name in ids if name in columns}
        return columns | read, []
    return columns, ["names"] if any(numbers) else []


def _parquet(path: Path) -> dict[str, Any]:
    """Read a Parquet file block by block; numbers are held as they are, 16 bytes a row."""
    parts: dict[str, list[Any]] = {}
    try:
        for block in parquet_blocks(path):
            for name, column in block.items():
                parts.setdefault(name, []).append(column)
    except UnstreamableError:
        return dict(table_of(path, "interactions").columns)  # says what is wrong
    return {name: np.concatenate(columns) for name, columns in parts.items()}


def _keys(kind: Kind, given: Any) -> NDArray[Any]:
    keys = _cells(kind, given)
    if len(np.unique(keys)) < len(keys):
        raise GraphError(f"'{kind.name}' of {_OWNER} must name each once.")
    return keys


def _cells(kind: Kind, given: Any) -> NDArray[Any]:
    """Read ids: numbers as int64, names as strings."""
    array = np.asarray(given)
    if array.ndim != 1:
        raise GraphError(f"ids of {kind.name} must be a flat list (found {array.ndim} dimensions).")
    if array.dtype.kind in "OUT":
        cells = array.tolist()
        wrong = [cell for cell in cells if is_missing(cell) or not isinstance(cell, str | int)]
        if wrong:
            raise GraphError(f"ids of {kind.name} must be numbers or names (found {wrong[0]!r}).")
        texts = [cell for cell in cells if isinstance(cell, str)]
        if texts and len(texts) < len(cells):
            raise GraphError(f"ids of {kind.name} must be numbers, or names, and not both.")
        if texts:
            return names_of(cells)
        array = np.array(cells, dtype=np.int64)
    if array.dtype.kind not in "iu" and array.size:
        raise GraphError(
            f"ids of {kind.name} must be numbers or names (found dtype {array.dtype}).",
            hint="a column with gaps is read as floats: fill them, then column.astype(int).",
        )
    if array.size and (int(array.min()) < 0 or int(array.max()) > LARGEST):
        raise GraphError(f"ids of {kind.name} must be in [0, 2**62 - 1].")
    return array.astype(np.int64)


def _is_number(cell: str) -> bool:
    return cell.isascii() and cell.isdigit() and (cell[0] != "0" or cell == "0") and len(cell) < 19


def _weighed(matrix: Any, scale: float | None) -> Any:
    """Return the matrix with weights that can be used; refuse others."""
    matrix.sort_indices()
    values = matrix.data
    if scale is None:
        if len(values) and (values != 1).any():
            raise GraphError(
                f"interactions have weights (found {values[values != 1][0]:g}), and no 'scale' "
                "declares which one counts as 1.",
                hint="Recommender(scale=5.0), fit --scale 5, or drop the weights: matrix != 0.",
            )
        return matrix.astype(np.int8)
    with np.errstate(invalid="ignore"):
        fits = (values > 0) & (values <= scale)
    if not fits.all():
        raise GraphError(
            f"weights must be above 0 and at most the scale, {scale:g} (found {values[~fits][0]})."
        )
    return matrix


def _graph(matrix: Any, users: _Known, items: _Known, kind: EdgeKind, carried: Any) -> Graph:
    """Put users and items in the order of their nodes, and their rows into one adjacency.

    Entries of the matrix are rows of ``carried`` where edges carry something.
    """
    nodes, names, orders = [], list[Any](), []
    for side in (users, items):
        ids, called = side.nodes()
        order = np.argsort(ids, kind="stable")
        orders.append(order)
        nodes.append(ids[order])
        names.append(None if called is None else called[order])
    if any((np.diff(order) < 0).any() for order in orders):
        matrix = sp.csr_array(matrix[orders[0]][:, orders[1]])
        matrix.sort_indices()
    ids = np.concatenate(nodes)
    order = np.argsort(ids, kind="stable")
    at = np.empty(len(ids), dtype=np.int64)
    at[order] = np.arange(len(ids))
    split = len(nodes[0])
    back = matrix.T.tocsr()
    back.sort_indices()
    counts = np.empty(len(ids), dtype=np.int64)
    counts[at[:split]], counts[at[split:]] = np.diff(matrix.indptr), np.diff(back.indptr)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(2 * matrix.nnz, dtype=np.int32)
    values = np.empty((2 * len(carried), kind.width), dtype=np.float32)
    ends = (at[:split], at[split:])
    for rows, own, others in ((matrix, *ends), (back, *ends[::-1])):
        data = carried[rows.data] if len(carried) else carried
        _place(indptr, rows.indptr, rows.indices, data, own, others, indices, values)
    y = np.repeat(np.array([0, 1], dtype=np.int64), [split, len(ids) - split])
    together = None if names[0] is None else np.concatenate(names)[order]
    return Graph(
        ids[order],
        read_only(indptr),
        read_only(indices),
        no_features(len(ids)),
        y[order],
        np.full(len(ids), TRAIN, dtype=np.int8),
        num_classes=2,
        name="interactions",
        edge_kind=kind,
        edge_values=values if kind.width else NO_VALUES,
        names=together,
        inferred=tuple(sorted({*users.inferred, *items.inferred})),
    )


def no_features(count: int) -> Any:
    """Return the features of so many nodes: one column, without an entry."""
    return sp.csr_array((count, 1), dtype=np.float32)


@compiled
def _place(indptr, rows, columns, data, own, others, indices, values):  # type: ignore[no-untyped-def]
    """Write the rows of one side as positions of the other, and what they carry if anything."""
    for r in range(len(own)):
        start = indptr[own[r]]
        for e in range(rows[r + 1] - rows[r]):
            indices[start + e] = others[columns[rows[r] + e]]
            if len(data):
                values[start + e] = data[rows[r] + e]
