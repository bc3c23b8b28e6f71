"""Sums for ridge regression to several labels, or numbers: `sums` with other right-hand sides.

They are over rows H, all of whole numbers: H'H, H'Y with targets Y in whole steps, and how many and
how much of each target is known. A node has a part in the sums of those targets alone that are
known of it. Where all of them are known of every training node, one H'H serves all targets; else
each has its own, which costs that many times as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.form import Form, Tensors
from grapheraser.aggregation.members.base import SCALE, Ids, Places, Rows
from grapheraser.aggregation.members.sums import Integers, Sums, solved
from grapheraser.errors import CorruptRunError
from grapheraser.graph import Graph
from grapheraser.graph.labels import BITS
from grapheraser.kernels.paged import nodes_at
from grapheraser.kernels.sets import ranks

Targets = NDArray[np.float64]
# Targets are split into halves of so many bits: a BLAS then adds whole numbers below 2**53.
_HALF = 12


def is_partial(graph: Graph) -> bool:
    """Return whether some target of a training node is not known; decided with every request."""
    return bool((graph.label_moments[0] != graph.num_train).any())


@dataclass(frozen=True, eq=False)
class TargetSums:
    """Sums over rows and targets.

    Attributes:
        parts: H'H and the sum of the rows; one for all targets, or one for each.
        cross: int64 ``[width, count]``, H'Y.
        counts: int64 ``[2, count]``, how many of each target are known, and their sum.
    """

    parts: tuple[Sums, ...]
    cross: Integers
    counts: Integers

    @classmethod
    def zeros(cls, width: int, count: int, *, partial: bool) -> TargetSums:
        """Return the sums over no rows."""
        parts = tuple(Sums.zeros(width, 1) for _ in range(count if partial else 1))
        cross = np.zeros((width, count), dtype=np.int64)
        return cls(parts, cross, np.zeros((2, count), dtype=np.int64))

    def plus(self, rows: Rows, targets: Targets) -> TargetSums:
        """Add these rows."""
        parts = tuple(
            part.plus(rows[own == 0], own[own == 0])
            for part, own in zip(self.parts, self._there(targets), strict=True)
        )
        return TargetSums(parts, self.cross + _cross(rows, targets), self.counts + _counts(targets))

    def replaced(
        self, old: Rows, old_targets: Targets, new: Rows, new_targets: Targets
    ) -> TargetSums:
        """Put new rows in the place of as many old ones; without any target, there is no row."""
        known = (~np.isnan(old_targets), ~np.isnan(new_targets))
        was, now = (_marked(part.any(axis=1)) for part in known)
        if len(self.parts) == 1:
            left = [self.parts[0].replaced(old, was, new, now)]
        else:
            # What changes for targets that are known of every row, and for each without the rows
            # of which it is not known: those are few.
            nothing = Sums.zeros(old.shape[1], 1)
            change = nothing.replaced(old, was, new, now)
            left = []
            for k, part in enumerate(self.parts):
                first, second = (_marked(p.any(axis=1) & ~p[:, k]) for p in known)
                some = (first == 0) | (second == 0)
                rows = old[some], first[some], new[some], second[some]
                left.append(part.plus_sums(change).without(nothing.replaced(*rows)))
        cross = self.cross - _cross(old, old_targets) + _cross(new, new_targets)
        counts = self.counts - _counts(old_targets) + _counts(new_targets)
        return TargetSums(tuple(left), cross, counts)

    def without(self, other: TargetSums) -> TargetSums:
        """Take out the rows of another sum."""
        parts = tuple(a.without(b) for a, b in zip(self.parts, other.parts, strict=True))
        return TargetSums(parts, self.cross - other.cross, self.counts - other.counts)

    def _there(self, targets: Targets) -> list[Integers]:
        """Mark, for each part, the rows that have a part in it: 0, and -1 for all others."""
        known = ~np.isnan(targets)
        columns = [known.any(axis=1)] if len(self.parts) == 1 else list(known.T)
        return [_marked(column) for column in columns]

    def solve(self, ridge: float, graph: Graph) -> NDArray[np.float64]:
        """Solve for the weights ``[width + 1, count]`` in the graph's frame, the mean last."""
        frame, known = graph.label_frame, np.maximum(self.counts[0], 1)
        means = np.where(self.counts[0] > 0, self.counts[1] / known, frame.centre)
        mass = np.concatenate([part.cross for part in self.parts], axis=1)
        right = (self.cross - means * mass) / (SCALE * frame.spread)
        one = len(self.parts) == 1
        columns = [slice(None)] if one else [slice(k, k + 1) for k in range(len(means))]
        found = [
            solved(part.gram, right[:, own].copy(), ridge)
            for part, own in zip(self.parts, columns, strict=True)
        ]
        weights = np.concatenate([*found], axis=1).astype(np.float32).astype(np.float64)
        if not np.isfinite(weights).all():
            raise CorruptRunError("a regression's sums are not those of any nodes.")
        return np.concatenate([weights, ((means - frame.centre) / frame.spread)[None]])

    @property
    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """The sums, by name."""
        gram = np.stack([part.gram for part in self.parts])
        mass = np.concatenate([part.cross for part in self.parts], axis=1)
        return {"gram": gram, "mass": mass, "cross": self.cross, "counts": self.counts}

    @classmethod
    def restore(cls, tensors: Tensors) -> TargetSums:
        """From what `tensors` gave."""
        gram, mass, cross, counts = (
            np.asarray(tensors[name], dtype=np.int64)
            for name in ("gram", "mass", "cross", "counts")
        )
        columns = np.ascontiguousarray(mass.T)
        return cls(
            tuple(Sums(g, m[:, None].copy()) for g, m in zip(gram, columns, strict=True)),
            cross,
            counts,
        )


def _marked(there: Any) -> Integers:
    """Return 0 for rows that are there, else -1."""
    return np.where(there, 0, -1).astype(np.int64)


def _cross(rows: Rows, targets: Targets) -> Integers:
    """Sum rows times targets: in two halves, each of them exact in float64."""
    whole = np.nan_to_num(targets).astype(np.int64)
    high = whole >> _HALF
    low = whole - (high << _HALF)
    turned = np.ascontiguousarray(rows.T)
    first, second = (turned @ half.astype(np.float64) for half in (high, low))
    return (first.astype(np.int64) << _HALF) + second.astype(np.int64)


def _counts(targets: Targets) -> Integers:
    known = ~np.isnan(targets)
    total = np.nan_to_num(targets).astype(np.int64).sum(axis=0)
    return np.stack([known.sum(axis=0), total])


def target_forms(graph: Graph, width: int) -> dict[str, Form]:
    """Return the forms of the sums' tensors, and of the weights, on a graph."""
    count, most = graph.num_classes, graph.num_train * SCALE
    grams, steps = count if is_partial(graph) else 1, most * 2.0**BITS
    return {
        "gram": Form(np.int64, (grams, width * (width + 1) // 2), -most * SCALE, most * SCALE),
        "mass": Form(np.int64, (width, grams), -most, most),
        "cross": Form(np.int64, (width, count), -steps, steps),
        "counts": Form(np.int64, (2, count), -steps, steps),
        "weights": Form(np.float64, (width + 1, count)),
    }


def targets_at(graph: Graph, places: Places) -> Targets:
    """Return the targets of the nodes at these places in whole steps, NaN if unknown."""
    return graph.label_kind.fixed(graph.labels_at(places))


def spread_targets(graph: Graph, places: Places, some: Rows, nodes: Ids) -> tuple[Rows, Targets]:
    """Rows and targets of all nodes, from those at the places of some of them."""
    at = ranks(nodes_at(graph.table, places), nodes)
    rows = np.zeros((len(nodes), some.shape[1]))
    targets = np.full((len(nodes), graph.num_classes), np.nan)
    rows[at], targets[at] = some, targets_at(graph, places)
    return rows, targets
