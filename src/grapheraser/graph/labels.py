"""The kind of labels that a graph has: classes, several labels per node, or numbers.

A node's label is one class, a row of targets that are each 0, 1 or unknown, or a row of numbers
with unknown ones among them. `LabelKind` declares which, what the classes or targets are called,
and in which steps numbers are counted. All that keeps or learns from labels reads this declaration.

In pages, labels other than classes are bytes of their own beside the label of `kernels.paged`,
which then only says whether any target is known: 0 where one is, else -1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import GraphError
from grapheraser.graph.roles import UNLABELLED

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

CLASSES, SEVERAL, NUMBERS = KINDS = ("classes", "several", "numbers")
_WORDS = {CLASSES: "classes", SEVERAL: "several labels per node", NUMBERS: "numbers"}
# Numbers enter sums as whole multiples of a power of two, of at most this many bits.
BITS = 24
# What the value 1 of a label is in such steps.
ONE = 2**16
_HALF = BITS // 2
_LEAST, _MOST = -1073, 1024  # exponents of the smallest and the largest float64
Raw = NDArray[np.uint8]


@dataclass(frozen=True)
class LabelKind:
    """The kind of labels that a graph has.

    Attributes:
        name: ``classes``, ``several`` or ``numbers``.
        count: how many classes or targets there are.
        names: of the classes or targets, in their order, where they have any; integers where
            classes have ids of their own.
        exponents: of each target that is a number: its magnitude is below ``2**exponent``, and
            sums count it in steps of ``2**(exponent - BITS)``.
    """

    name: str = CLASSES
    count: int = 1
    names: tuple[Any, ...] = ()
    exponents: tuple[int, ...] = ()

    @property
    def is_classes(self) -> bool:
        """True where a node has one class."""
        return self.name == CLASSES

    @property
    def is_numbers(self) -> bool:
        """True where targets are numbers."""
        return self.name == NUMBERS

    @property
    def words(self) -> str:
        """The kind in a sentence."""
        return _WORDS[self.name]

    @property
    def unknown(self) -> float:
        """The value that stands for a label that is not known."""
        return np.nan if self.is_numbers else UNLABELLED

    @property
    def row_bytes(self) -> int:
        """Bytes that the targets of a node take in a page; 0 for classes."""
        return 0 if self.is_classes else self.count * self._dtype.itemsize

    @property
    def _dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64 if self.is_numbers else np.int8)

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of all classes or targets: their numbers, where they have none."""
        return tuple(map(str, self.names or range(self.count)))

    def to_dict(self) -> dict[str, Any]:
        """Return what a manifest says beside the number and the names; empty for classes."""
        if self.is_classes:
            return {}
        return {"labels": {"kind": self.name, "exponents": list(self.exponents)}}

    @classmethod
    def from_dict(cls, entry: Any) -> LabelKind:
        """Read what a manifest says; those from before there were other kinds have classes."""
        given = entry.get("class_names", ())
        names = tuple(name if isinstance(name, int) else str(name) for name in given)
        said = entry.get("labels") or {"kind": CLASSES, "exponents": []}
        exponents = tuple(int(one) for one in said["exponents"])
        kind = cls(str(said["kind"]), int(entry["num_classes"]), names, exponents)
        sound = kind.name in KINDS and len(exponents) == (kind.count if kind.is_numbers else 0)
        if not sound or not all(_LEAST <= one <= _MOST for one in exponents):
            raise ValueError("the kind of labels is malformed")
        return kind

    def encoded(self, y: NDArray[Any]) -> tuple[NDArray[np.int64], Raw]:
        """Return labels as pages hold them: the label of each node, and its targets as bytes."""
        if self.is_classes:
            return np.asarray(y, dtype=np.int64), np.zeros((len(y), 0), dtype=np.uint8)
        rows = np.ascontiguousarray(np.reshape(y, (len(y), self.count)), dtype=self._dtype)
        if self.is_numbers:  # one spelling of what is unknown, and of zero
            rows = np.where(np.isnan(rows), np.nan, rows) + 0.0
        known = ~self.is_unknown(rows)
        labels = np.where(known.any(axis=1), 0, UNLABELLED).astype(np.int64)
        return labels, rows.view(np.uint8).reshape(len(y), self.row_bytes)

    def decoded(self, labels: NDArray[np.int64], raw: Raw) -> NDArray[Any]:
        """Return labels as users have them; a single number per node is flat."""
        if self.is_classes:
            return labels
        rows = np.ascontiguousarray(raw).view(self._dtype).reshape(len(labels), self.count)
        return rows[:, 0] if self.is_numbers and self.count == 1 else rows

    def rows(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Return targets ``[n, count]`` as numbers, NaN where they are not known."""
        rows = np.reshape(y, (len(y), self.count)).astype(np.float64)
        return rows if self.is_numbers else np.where(rows == UNLABELLED, np.nan, rows)

    def fixed(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Return targets ``[n, count]`` in whole steps, NaN where they are not known."""
        rows = self.rows(y)
        if not self.is_numbers:
            return rows * ONE
        return np.rint(np.ldexp(rows, BITS - np.array(self.exponents, dtype=np.int32)))

    def values(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what so many steps of each target are worth: the inverse of `fixed`."""
        if not self.is_numbers:
            return steps / ONE
        return np.ldexp(steps, np.array(self.exponents, dtype=np.int32) - BITS)

    @property
    def label_range(self) -> NDArray[np.float64]:
        """The largest magnitude that each number may have, as `Graph.from_arrays` takes it."""
        with np.errstate(over="ignore"):  # the largest float64 is below infinity
            above = np.ldexp(1.0, np.array(self.exponents, dtype=np.int32))
        return np.asarray(np.nextafter(above, 0.0), dtype=np.float64)

    def is_unknown(self, y: NDArray[Any]) -> NDArray[np.bool_]:
        """Mark the labels or targets that are not known."""
        unknown: NDArray[np.bool_] = np.isnan(y) if self.is_numbers else y == UNLABELLED
        return unknown

    def labelled(self, y: NDArray[Any]) -> NDArray[np.bool_]:
        """Mark the nodes with a label, or with any target that is known."""
        known = ~self.is_unknown(y)
        return known if known.ndim == 1 else np.asarray(known.any(axis=1))

    def number_of(self, target: int | str) -> int:
        """Return the number of a target, from its name or its number."""
        if self.is_classes:
            raise GraphError("a node of this graph has one class, and no targets to choose from.")
        if isinstance(target, str) and target in self.target_names:
            return self.target_names.index(target)
        whole = isinstance(target, int | np.integer) and not isinstance(target, bool)
        if whole and 0 <= int(target) < self.count:
            return int(target)
        known = ", ".join(self.target_names[:20])
        raise GraphError(f"the targets of this graph are {known} (found {target!r}).")


def moments_of(targets: NDArray[np.float64]) -> NDArray[np.int64]:
    """Sum targets in whole steps, NaN where they are not known; the sums are exact.

    Returns: int64 ``[5, count]``: how many are known, their sum, and that of their squares in three
    parts, since a square of `BITS` bits for each of millions of nodes would not fit into one.
    """
    whole = np.nan_to_num(targets).astype(np.int64)
    high = whole >> _HALF
    low = whole - (high << _HALF)
    parts = (~np.isnan(targets), whole, high * high, high * low, low * low)
    return np.stack([part.sum(axis=0, dtype=np.int64) for part in parts])


@dataclass(frozen=True, eq=False)
class Frame:
    """Where the targets of the training nodes lie, in steps.

    It follows from them, so it is worked out anew with every request. The spread is rounded to a
    power of two and the centre to a half of that: hardly any request moves them. One that does
    makes all rows anew that are made in this frame.
    """

    # centre, spread: of each target, rounded.
    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    mean: NDArray[np.float64]  # of each target

    @classmethod
    def of(cls, moments: NDArray[np.int64]) -> Frame:
        """Work it out from exact sums; a target of which nothing is known lies at 0."""
        found = [_placed(*column) for column in moments.T.tolist()]
        return cls(*(np.array(column, dtype=np.float64) for column in zip(*found, strict=True)))

    def same(self, other: Frame) -> bool:
        """Return whether rows made in both frames are the same."""
        return np.array_equal(self.centre, other.centre) and np.array_equal(
            self.spread, other.spread
        )


def _placed(known: int, total: int, high: int, cross: int, low: int) -> tuple[float, float, float]:
    """Return centre, spread and mean of a target; whole numbers of any size until the last step."""
    if not known:
        return 0.0, 1.0, 0.0
    squares = (high << 2 * _HALF) + (cross << _HALF + 1) + low
    variance = known * squares - total * total  # times known**2
    # The power of two nearest the deviation, by the exponent alone: no logarithm that could differ.
    spread = 2.0 ** max(math.frexp(variance / known**2)[1] // 2, 0)
    mean = total / known
    return round(2 * mean / spread) * spread / 2, spread, mean


def require_classes(graph: Graph, what: str) -> None:
    """Refuse a graph whose nodes have something else than one class."""
    if not graph.label_kind.is_classes:
        raise GraphError(
            f"{what} takes graphs whose nodes have classes (graph '{graph.name}' has "
            f"{graph.label_kind.words}).",
            hint="docs/targets.md says what takes several labels and numbers.",
        )
