"""From the columns of a table to feature columns, by a rule that a graph and its runs keep.

Numbers and booleans are one column, categories one for each. A gap is 0, and under ``mean`` and
``indicator`` a further column marks it. So pages keep the gap itself: under ``mean`` the value in
its place follows from all other rows, and is worked out anew whenever one of them changes
(`relearned`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.checks import one_of
from grapheraser.errors import CorruptRunError, GraphError, ParameterError
from grapheraser.graph.arrays import as_array
from grapheraser.graph.formats.tables import Table, is_missing, is_number, is_table, table_of

ZERO, MEAN, INDICATOR = "zero", "mean", "indicator"
MISSING, _MARKED = (MEAN, ZERO, INDICATOR), (MEAN, INDICATOR)
MAX_CATEGORIES = 1000  # that are found in a column; more have to be declared

Matrix = sp.csr_array | NDArray[Any]


@dataclass(frozen=True)
class Column:
    """A column of a table, and the feature columns that it becomes."""

    name: str  # in the table
    width: int = 1  # numbers in a cell
    categories: tuple[str, ...] = ()  # a feature column each; none where cells are numbers
    missing: str = ""  # what stands for a gap; "" where there may be none

    @property
    def size(self) -> int:
        """The number of feature columns; the last marks gaps where the rule says so."""
        return (len(self.categories) or self.width) + (self.missing in _MARKED)

    def cells(self, table: Table) -> NDArray[np.float64]:
        """Return the feature columns of a table ``[n, size]``, gaps as 0."""
        values = table.columns.get(self.name, [None] * len(table))
        gaps = np.array([is_missing(value) for value in values], dtype=bool)
        if gaps.any() and not self.missing:
            table.refuse(self.name, int(np.flatnonzero(gaps)[0]))
        out = np.zeros((len(values), self.size))
        if self.categories:
            out[~gaps, self._categories_in(table, values, gaps)] = 1
        elif not gaps.all():
            found = table.numbers(self.name, ~gaps)
            if found.shape[1] != self.width:
                raise GraphError(
                    f"{table.name}: column '{self.name}' must have {self.width} numbers in a cell "
                    f"(found {found.shape[1]})."
                )
            out[~gaps, : self.width] = found
        if self.missing in _MARKED:
            out[:, -1] = gaps
        return out

    def _categories_in(self, table: Table, values: Sequence[Any], gaps: Any) -> list[int]:
        number = {category: at for at, category in enumerate(self.categories)}
        found = []
        for row in np.flatnonzero(~gaps).tolist():
            at = number.get(word_of(values[row]))
            if at is None:
                raise GraphError(
                    f"{table.place(row)}: column '{self.name}' must be one of the categories "
                    f"{', '.join(self.categories[:20])} (found {values[row]!r}).",
                    hint=f"declare all of them: categories={{{self.name!r}: [...]}}.",
                )
            found.append(at)
        return found


@dataclass(frozen=True)
class Encoding:
    """The columns of a table in the order of their feature columns."""

    columns: tuple[Column, ...]

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first feature column of each, and the number of all."""
        return (0, *np.cumsum([column.size for column in self.columns]).tolist())

    @cached_property
    def means(self) -> tuple[tuple[int, int], ...]:
        """Feature columns whose mean fills their gaps, each with the column that marks them."""
        return tuple(
            (start + at, start + column.width)
            for column, start in zip(self.columns, self.starts, strict=False)
            if column.missing == MEAN and not column.categories
            for at in range(column.width)
        )

    def rows(self, table: Table) -> NDArray[np.float64]:
        """Return the features of all rows of a table, gaps as 0."""
        for column in self.columns:
            if not column.missing:
                table.column(column.name, "features")
        parts = [column.cells(table) for column in self.columns]
        return np.concatenate([np.zeros((len(table), 0)), *parts], axis=1)

    def of_array(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the features of rows with a number, or a gap, for each column of the table."""
        plain = all(column.width == 1 and not column.categories for column in self.columns)
        if x.shape[1] != len(self.columns) or not plain:
            return x
        cells = zip((column.name for column in self.columns), x.T, strict=True)
        return self.rows(table_of(dict(cells), "features"))

    def to_list(self) -> list[Any]:
        """Return the rule as plain JSON: names of columns, and objects where there is more."""
        return [
            column.name
            if column == Column(column.name)
            else {**vars(column), "categories": list(column.categories)}
            for column in self.columns
        ]

    @classmethod
    def of_list(cls, items: Any) -> Encoding | None:
        """Read what `to_list` returns; None: no rule."""
        if items is None:
            return None
        try:
            objects = [{"name": item} if isinstance(item, str) else item for item in items]
            words = [tuple(map(str, item.get("categories", ()))) for item in objects]
            parts = zip(objects, words, strict=True)
            return cls(tuple(Column(**{**item, "categories": all_}) for item, all_ in parts))
        except (TypeError, AttributeError) as error:
            raise CorruptRunError(f"the rule of the features is malformed ({error}).") from None


def encoding_of(
    table: Table,
    features: Sequence[str],
    categories: Mapping[str, Sequence[Any]] | None,
    missing: str | Mapping[str, str] | None,
) -> tuple[Encoding, list[str]]:
    """Return the rule for some columns of a table, and which parts of it were found in the data.

    For the arguments, see `Graph.from_tables`.
    """
    declared = {name: tuple(map(word_of, all_)) for name, all_ in (categories or {}).items()}
    rules = missing if isinstance(missing, Mapping) else {}
    for name in [name for name in (*declared, *rules) if name not in features]:
        raise ParameterError(
            f"'missing' and 'categories' of Graph name features: there is no '{name}'."
        )
    for rule in (*rules.values(), *([missing] if isinstance(missing, str) else [])):
        one_of("missing", "Graph", rule, MISSING)
    columns, found = [], []
    for name in features:
        known = [value for value in table.columns[name] if not is_missing(value)]
        words = declared[name] if name in declared else _categories(table, name, known)
        found += ["categories"] if words and name not in declared else []
        rule = rules.get(name, "")
        if isinstance(missing, str) and (missing == ZERO or len(known) < len(table)):
            rule = missing
            found += ["gaps"] if missing != ZERO else []
        width = 1 if words or not known else int(np.size(known[0]))
        found += ["gaps"] if rule and width > 1 else []  # the known cells tell how wide gaps are
        columns.append(Column(name, width, words, rule))
    return Encoding(tuple(columns)), found


def _categories(table: Table, name: str, known: Sequence[Any]) -> tuple[str, ...]:
    """Return the categories of a column: those of its type; all words, if none is a number."""
    if name in table.categories:
        return tuple(map(word_of, table.categories[name]))
    if not known or not isinstance(known[0], str) or any(map(is_number, known)):
        return ()
    words = sorted(set(map(word_of, known)))
    if len(words) > MAX_CATEGORIES:
        raise GraphError(
            f"{table.name}: column '{name}' has {len(words)} different words.",
            hint=f"leave it out with features=[...], or declare categories={{{name!r}: [...]}}.",
        )
    return tuple(words)


def word_of(value: Any) -> str:
    """Return a category as text; whole numbers are the same however they are written."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# -- rows of other sources ------------------------------------------------------------------------


def given_rows(x: Any) -> Any:
    """Return rows of features as a matrix or a `Table`; gaps in a matrix are NaN."""
    if sp.issparse(x) or is_table(x):
        return x if sp.issparse(x) else table_of(x, "features")
    rows = as_array(x, "features")
    try:
        return rows.astype(np.float64) if rows.dtype.kind == "O" else rows  # None becomes NaN
    except (TypeError, ValueError):
        return rows  # for `check_features` to refuse


def encoded(encoding: Encoding | None, rows: Any) -> Any:
    """Return features by the rule of a graph; without one, tables have numbers alone."""
    if isinstance(rows, Table):
        if encoding is None:
            plain = [rows.numbers(name) for name in rows.columns]
            return np.concatenate([np.zeros((len(rows), 0)), *plain], axis=1)
        known = [column.name for column in encoding.columns]
        others = [name for name in rows.columns if name not in known]
        if others:
            raise GraphError(
                f"{rows.name}: column '{others[0]}' is none of {', '.join(known[:20])}."
            )
        return encoding.rows(rows)
    if encoding is None or rows.ndim != 2 or rows.dtype.kind not in "fiub":
        return rows
    dense = getattr(rows, "toarray", lambda: rows)()
    is_whole = rows.shape[1] == encoding.starts[-1] and not np.isnan(dense).any()
    return rows if is_whole else encoding.of_array(dense)


# -- means ----------------------------------------------------------------------------------------


def means_of(encoding: Encoding, x: Matrix) -> NDArray[np.float32]:
    """Return the mean of each of ``encoding.means``, which fills gaps; 0 where nothing is known.

    Sums are rounded once, so that they don't depend on the order of rows.
    """
    found = [_values(x, column)[_values(x, mark) == 0] for column, mark in encoding.means]
    sums = [math.fsum(values.tolist()) / max(1, len(values)) for values in found]
    return np.array(sums, np.float32) + np.float32(0)  # -0 is 0


def filled(encoding: Encoding, x: Matrix, means: NDArray[np.float32]) -> tuple[Any, NDArray[Any]]:
    """Return features ``[n, m]`` with means in place of gaps, and the rows that changed."""
    where, stale = [], np.zeros(x.shape[0], dtype=bool)
    for (column, mark), mean in zip(encoding.means, means, strict=True):
        rows = np.flatnonzero((_values(x, mark) != 0) & (_values(x, column) != mean))
        where.append((rows, np.full(len(rows), column), np.full(len(rows), mean)))
        stale[rows] = True
    if not stale.any():
        return x, np.zeros(0, dtype=np.int64)
    rows, columns, values = (np.concatenate(parts) for parts in zip(*where, strict=True))
    if not sp.issparse(x):
        out = np.array(x)
        out[rows, columns] = values
        return out, np.flatnonzero(stale)
    old: Any = sp.coo_array(x)
    width = np.int64(x.shape[1])
    kept = ~np.isin(old.row * width + old.col, rows * width + columns)
    places = (np.concatenate([old.row[kept], rows]), np.concatenate([old.col[kept], columns]))
    made = sp.csr_array((np.concatenate([old.data[kept], values]), places), shape=x.shape)
    made.sum_duplicates()
    made.eliminate_zeros()
    return made, np.flatnonzero(stale)


def _values(x: Matrix, column: int) -> NDArray[np.float32]:
    """Return one column as the graph holds it."""
    values = x[:, [column]]
    dense = values.toarray() if sp.issparse(values) else values
    with np.errstate(over="ignore"):  # what is too large is refused with the features
        return np.asarray(dense, dtype=np.float32)[:, 0]
