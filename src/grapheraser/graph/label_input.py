"""Labels as they are given: read, checked, and the kind that they are of chosen or found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.checks import one_of
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph.arrays import as_array
from grapheraser.graph.labels import (
    BITS,
    CLASSES,
    KINDS,
    NUMBERS,
    SEVERAL,
    LabelKind,
)
from grapheraser.graph.roles import UNLABELLED

_MAX_TARGETS = 2**16
WHOLE_FLOATS = "labels are floats that are all whole: taken as {}; labels='{}' takes them as {}"
# Fewer steps than this tell hardly anything.
_FEW_STEPS = 64


class LabelInput(NamedTuple):
    """Arguments about labels beside the labels themselves; see `Graph.from_arrays`."""

    labels: str | None = None
    target_names: Sequence[str] | None = None
    label_range: float | Sequence[float] | None = None
    num_classes: int | None = None
    class_names: Sequence[str | int] | None = None


NOT_SAID = LabelInput()


def labels_for(kind: LabelKind, y: Any, n: int, what: str) -> NDArray[Any]:
    """Return new labels of n nodes as a graph of this kind has them; refuse what it can't hold."""
    found, rows = _parsed(y, n, kind.name, kind.names or None, what)
    if found.count != kind.count:
        raise GraphError(
            f"{what} must have the {kind.count} targets of the graph (found {found.count}): "
            "new targets need a new fit."
        )
    for column, (most, own) in enumerate(zip(kind.exponents, found.exponents, strict=True)):
        largest = _largest(rows, column)
        if own > most and largest > 0:
            raise GraphError(
                f"numbers of target '{kind.target_names[column]}' must be at most "
                f"{kind.label_range[column]:g} in magnitude (found {largest:g}).",
                hint="declare what may come with label_range=... when the graph is built.",
            )
    return rows


def kind_of(y: Any, labels: str | None) -> str:
    """Return the kind of labels that an array of this type and shape holds, unless it is said."""
    if labels is not None:
        return one_of("labels", "Graph", labels, KINDS)
    if _is_of_sets(y):
        return SEVERAL
    found = as_array(y, "labels") if not _has_words(y) else np.zeros(0, dtype=object)
    if found.dtype.kind == "f" and found.size:
        several = found.ndim == 2 and found.shape[1] > 1 and _is_binary(found)
        return SEVERAL if several else NUMBERS
    return SEVERAL if found.ndim == 2 and found.shape[1] > 1 else CLASSES


def targets_of(
    y: Any, n: int, labels: str, said: LabelInput
) -> tuple[LabelKind, NDArray[Any], list[str], list[str]]:
    """Check several labels, or numbers, of n nodes, which are of this kind whether it is said.

    Returns: the kind; the labels; what of it was found in the data; notes.
    """
    kind, rows = _parsed(y, n, labels, said.target_names, "labels")
    found, notes, label_range = [], [], said.label_range
    if _is_of_sets(y) and not said.target_names:
        found.append("classes")
    if kind.is_numbers:
        if label_range is None:
            found.append("range")
            notes += _coarse(kind, rows)
        else:
            kind = replace(kind, exponents=_declared(kind, rows, label_range))
    elif label_range is not None:
        raise ParameterError("'label_range' of Graph is for numbers; these are several labels.")
    if said.labels is None:
        notes += _doubts(kind, y, rows)
    return kind, rows, found, notes


def _parsed(
    y: Any, n: int, labels: str, names: Sequence[str] | None, what: str
) -> tuple[LabelKind, NDArray[Any]]:
    """Return labels as the graph holds them, with the kind that follows from them alone."""
    called = None if names is None else tuple(map(str, names))
    if _is_of_sets(y):
        if labels == NUMBERS:
            raise GraphError(f"{what} must be numbers (found sets of words).")
        called = called or tuple(sorted({str(word) for row in y for word in row or ()}))
        y = _of_sets(y, called)
    rows = as_array(y, what)
    if rows.dtype.kind not in "biuf":
        raise GraphError(f"{what} must be numbers (found dtype {rows.dtype}).")
    rows = rows.reshape(-1, 1) if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) != n or not 1 <= rows.shape[1] <= _MAX_TARGETS:
        raise GraphError(
            f"{what} must be a row of targets for each of {n} nodes (found shape "
            f"{list(rows.shape)})."
        )
    if called and len(called) != rows.shape[1]:
        raise GraphError(f"there are {rows.shape[1]} targets (found names of {len(called)}).")
    if len(set(called or ())) < len(called or ()):
        raise GraphError(f"names of targets must be unique (found {', '.join(called or ())}).")
    kind = LabelKind(labels, rows.shape[1], called or ())
    return (_numbers if labels == NUMBERS else _several)(kind, rows, what)


def _several(kind: LabelKind, rows: NDArray[Any], what: str) -> tuple[LabelKind, NDArray[Any]]:
    if not _is_binary(rows):
        with np.errstate(invalid="ignore"):
            odd = rows[~(np.isnan(rows.astype(np.float64)) | np.isin(rows, (-1, 0, 1)))]
        raise GraphError(
            f"{what} must be 0, 1, or -1 where they are not known (found {odd[0]}).",
            hint="choose one column, y[:, 0], where it holds classes; labels='numbers' takes "
            "numbers.",
        )
    unknown = np.isnan(rows.astype(np.float64)) | (rows == UNLABELLED)
    return kind, np.where(unknown, UNLABELLED, np.nan_to_num(rows)).astype(np.int8)


def _numbers(kind: LabelKind, rows: NDArray[Any], what: str) -> tuple[LabelKind, NDArray[Any]]:
    values = rows.astype(np.float64)
    if np.isinf(values).any():
        raise GraphError(f"{what} must be finite, or NaN where they are not known (found inf).")
    largest = np.nan_to_num(np.abs(values)).max(axis=0, initial=0.0)
    exponents = tuple(map(int, np.where(largest > 0, np.frexp(largest)[1], 0)))
    return replace(kind, exponents=exponents), values


def _declared(
    kind: LabelKind, rows: NDArray[Any], label_range: float | Sequence[float]
) -> tuple[int, ...]:
    """Return the exponents that a declared range stands for; refuse numbers beyond it."""
    given = as_array(label_range, "label_range", ParameterError)
    if given.dtype.kind not in "iuf" or given.shape not in ((), (1,), (kind.count,)):
        allowed = f"a number, or {kind.count} of them, one per target"
        raise ParameterError.of("label_range", "Graph", allowed, label_range)
    bounds = np.broadcast_to(given.astype(np.float64), (kind.count,))
    if not (np.isfinite(bounds) & (bounds > 0)).all():
        raise ParameterError.of("label_range", "Graph", "finite and above 0", label_range)
    for column, bound in enumerate(bounds.tolist()):
        if _largest(rows, column) > bound:
            raise GraphError(
                f"numbers of target '{kind.target_names[column]}' must be at most {bound:g} in "
                f"magnitude, as label_range says (found {_largest(rows, column):g})."
            )
    return tuple(int(exponent) for exponent in np.frexp(bounds)[1])


def _largest(rows: NDArray[Any], column: int) -> float:
    values = np.abs(np.reshape(rows, (len(rows), -1))[:, column].astype(np.float64))
    return float(np.nan_to_num(values).max(initial=0.0))


def _coarse(kind: LabelKind, rows: NDArray[np.float64]) -> list[str]:
    """Note targets of which one number is so large that most others are lost in a step."""
    notes = []
    for column, exponent in enumerate(kind.exponents):
        known = np.abs(np.nan_to_num(rows[:, column]))
        known = known[known > 0]  # zeros are never lost
        if len(known) and np.median(np.ldexp(known, BITS - exponent)) < _FEW_STEPS:
            step = np.ldexp(1.0, exponent - BITS)
            notes.append(
                f"target '{kind.target_names[column]}' is counted in steps of {step:g}, for its "
                f"largest number is {known.max():g}: most others are lost in it"
            )
    return notes


def _doubts(kind: LabelKind, y: Any, rows: NDArray[Any]) -> list[str]:
    """Say which kind was chosen by type and shape, where it could have been another."""
    if kind.is_numbers:
        known = rows[~np.isnan(rows)]
        if len(known) and (known == np.rint(known)).all():
            return [WHOLE_FLOATS.format(NUMBERS, CLASSES, CLASSES)]
        return []
    notes = []
    if not _is_of_sets(y) and as_array(y, "labels").dtype.kind == "f":
        notes.append(
            "labels are floats of 0 and 1: taken as several labels; labels='numbers' "
            "takes them as numbers"
        )
    if len(rows) and (rows == 1).sum(axis=1).tolist() == [1] * len(rows):
        notes.append("every node has exactly one label: y.argmax(axis=1) makes classes of them")
    return notes


def _is_binary(rows: NDArray[Any]) -> bool:
    values = rows.astype(np.float64)
    return bool((np.isnan(values) | (values == 0) | (values == 1) | (values == UNLABELLED)).all())


def _has_words(y: Any) -> bool:
    if isinstance(y, np.ndarray):
        return y.dtype.kind in "UO"
    return isinstance(y, list | tuple) and any(
        isinstance(label, str) or label is None for label in y
    )


def _is_of_sets(y: Any) -> bool:
    """Tell whether labels are a list of sets of names, None where they are not known."""
    if not isinstance(y, list | tuple) and getattr(getattr(y, "dtype", None), "kind", "") != "O":
        return False
    rows = [row for row in y if row is not None]
    return bool(rows) and all(
        isinstance(row, set | frozenset)
        or (isinstance(row, list | tuple) and all(isinstance(word, str) for word in row))
        for row in rows
    )


def _of_sets(y: Iterable[Any], names: Sequence[str]) -> NDArray[np.int8]:
    """Return 0 and 1 for each name; a row of -1 where nothing is known of a node."""
    number = {name: at for at, name in enumerate(names)}
    given = list(y)
    rows = np.zeros((len(given), len(names)), dtype=np.int8)
    for at, row in enumerate(given):
        if row is None:
            rows[at] = UNLABELLED
            continue
        for word in row:
            if str(word) not in number:
                raise GraphError(
                    f"labels must be among {', '.join(names)} (found {str(word)!r}): new targets "
                    "need a new fit."
                )
            rows[at, number[str(word)]] = 1
    return rows
