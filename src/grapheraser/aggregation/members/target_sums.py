"""Sums for ridge regression to several labels, or numbers: `sums` with other right-hand sides.

They are over rows H, all of whole numbers: H'H, H'Y with targets Y in whole steps, and how many and
how much of each target is known. A node has a part in the sums of those targets alone that are
known of it. Where all of them are known of every training node, one H'H serves all targets; else
each has its own, which costs that many times as much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.form import Form, Tensors
from grapheraser.aggregation.members.base import SCALE, Ids, Places, Rows
from grapheraser.aggregation.members.sums import Integers, Sums, replaced, solved, solved_apart
from grapheraser.errors import CorruptRunError
from grapheraser.graph import Graph
from grapheraser.graph.labels import BITS
from grapheraser.kernels.compiled import compiled
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
        gram: int64 ``[parts, width * (width + 1) / 2]``, the lower half of H'H; one part for all
            targets, or one for each.
        mass: int64 ``[width, parts]``, the sum of the rows.
        cross: int64 ``[width, count]``, H'Y.
        counts: int64 ``[2, count]``, how many of each target are known, and their sum.
    """

    gram: Integers
    mass: Integers
    cross: Integers
    counts: Integers

    @classmethod
    def zeros(cls, width: int, count: int, *, partial: bool) -> TargetSums:
        """Return the sums over no rows."""
        parts = count if partial else 1
        shapes = (parts, width * (width + 1) // 2), (width, parts), (width, count), (2, count)
        return cls(*(np.zeros(shape, dtype=np.int64) for shape in shapes))

    def plus(self, rows: Rows, targets: Targets) -> TargetSums:
        """Add these rows."""
        known = ~np.isnan(targets)
        there = known if len(self.gram) > 1 else np.asarray(known.any(axis=1))[:, None]
        parts = [
            Sums(gram, mass[:, None]).plus(rows[own], np.zeros(int(own.sum()), dtype=np.int64))
            for gram, mass, own in zip(self.gram, self.mass.T, there.T, strict=True)
        ]
        gram = np.stack([part.gram for part in parts])
        mass = np.concatenate([part.cross for part in parts], axis=1)
        total = np.nan_to_num(targets).astype(np.int64).sum(axis=0)
        counts = self.counts + np.stack([known.sum(axis=0), total])
        return TargetSums(gram, mass, self.cross + _cross(rows, targets), counts)

    def replaced(
        self, old: Rows, old_targets: Targets, new: Rows, new_targets: Targets
    ) -> TargetSums:
        """Put new rows in the place of as many old ones; without any target, there is no row."""
        sums = self.gram, self.mass, self.cross, self.counts
        return TargetSums(*_replaced_parts(*sums, old, old_targets, new, new_targets))

    def without(self, other: TargetSums) -> TargetSums:
        """Take out the rows of another sum."""
        return TargetSums(
            self.gram - other.gram,
            self.mass - other.mass,
            self.cross - other.cross,
            self.counts - other.counts,
        )

    def solve(self, ridge: float, graph: Graph) -> NDArray[np.float64]:
        """Solve for the weights ``[width + 1, count]`` in the graph's frame, the mean last."""
        frame, known = graph.label_frame, np.maximum(self.counts[0], 1)
        means = np.where(self.counts[0] > 0, self.counts[1] / known, frame.centre)
        right = (self.cross - means * self.mass) / (SCALE * frame.spread)
        if len(self.gram) == 1:
            found = solved(self.gram[0], right, ridge)
        else:
            found = solved_apart(self.gram, right, SCALE**2, ridge)
        weights = found.astype(np.float32).astype(np.float64)
        if not np.isfinite(weights).all():
            raise CorruptRunError("a regression's sums are not those of any nodes.")
        return np.concatenate([weights, ((means - frame.centre) / frame.spread)[None]])

    @property
    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """The sums, by name."""
        return dict(vars(self))

    @classmethod
    def restore(cls, tensors: Tensors) -> TargetSums:
        """From what `tensors` gave."""
        names = ("gram", "mass", "cross", "counts")
        return cls(*(np.asarray(tensors[name], dtype=np.int64) for name in names))


@compiled
def _replaced_parts(gram, mass, cross, counts, old, old_targets, new, new_targets):  # type: ignore[no-untyped-def]
    """All four sums with new rows in the place of old ones; whole numbers, so in any order.

    What changes for targets that are known of every row is worked out once. For each target the
    rows of which it is not known are taken away again: those are few.
    """
    (m, count), width = old_targets.shape, new.shape[1]
    cross, counts = cross.copy(), counts.copy()
    there = np.full((2, m), -1)
    for r in range(m):
        same = True
        for u in range(width):
            same &= old[r, u] == new[r, u]
        for k in range(count):
            for now in range(2):
                target, row = (new_targets[r, k], new[r]) if now else (old_targets[r, k], old[r])
                if np.isnan(target):
                    continue
                there[now, r] = 0
                if same and old_targets[r, k] == new_targets[r, k]:
                    continue
                sign, whole = 2 * now - 1, np.int64(target)
                counts[0, k] += sign
                counts[1, k] += sign * whole
                for u in range(width):
                    cross[u, k] += sign * whole * np.int64(row[u])
    nothing, none = np.zeros_like(gram[0]), np.zeros((width, 1), dtype=np.int64)
    more, rows = replaced(nothing, none, old, there[0], new, there[1])
    gram, mass = gram + more, mass + rows
    some = np.empty((2, m), dtype=np.int64)
    for k in range(len(gram) if len(gram) > 1 else 0):
        for r in range(m):
            some[0, r] = there[0, r] if np.isnan(old_targets[r, k]) else -1
            some[1, r] = there[1, r] if np.isnan(new_targets[r, k]) else -1
        less, rows = replaced(nothing, none, old, some[0], new, some[1])
        gram[k] -= less
        mass[:, k] -= rows[:, 0]
    return gram, mass, cross, counts


def _cross(rows: Rows, targets: Targets) -> Integers:
    """Sum rows times targets: in two halves, each of them exact in float64."""
    whole = np.nan_to_num(targets).astype(np.int64)
    high = whole >> _HALF
    low = whole - (high << _HALF)
    turned = np.ascontiguousarray(rows.T)
    first, second = (turned @ half.astype(np.float64) for half in (high, low))
    return (first.astype(np.int64) << _HALF) + second.astype(np.int64)


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
