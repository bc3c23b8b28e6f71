"""Regression among the nearest graphs: nothing is learned, so there is hardly anything to forget.

A graph is compared with reference graphs: training graphs, at most so many, those with the smallest
keyed hashes, so that forgetting one lets in the next and moves no other. Of the most similar ones
the labels are regressed on a Gaussian kernel, and the answer is read off at the graph. There is no
global system to solve: a request is as cheap as the few judged graphs that had the forgotten one
among their nearest.

Two rows are similar by the mean product of their blocks (see `colours`). Members differ in the
blocks that they look at. In the kernel it counts as well how much the graphs differ in size.

Classes are regressed as 1 and 0. Several labels and numbers are regressed in the graph's frame
(`Graph.label_frame`), from the mean of those that are known of the nearest graphs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.form import Form, Tensors, check_equal, check_forms
from grapheraser.aggregation.members.base import Evidence, FittedMember, Ids, Positions
from grapheraser.aggregation.members.dual import SHARPNESS
from grapheraser.aggregation.sample.membership import Candidates
from grapheraser.graph import Graph
from grapheraser.graphs.colours import BLOCKS, COLUMNS, SparseRows, coloured
from grapheraser.kernels.cholesky import solve_few
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential
from grapheraser.kernels.sets import ranks

# Blocks that each member compares.
MEMBERS: dict[str, tuple[str, ...]] = {
    "surroundings": ("atoms", "near", "far", "paths"),
    "paths": ("atoms", "near", "paths", "rings"),
    "shapes": ("shape", "rings", "paths"),
    "profiles": ("profile",),
}
# The graphs that are regressed on, and how many more are known of a judged graph, so that a few
# can go before it is compared with all references again.
_NEAREST, _SPARE = 32, 16
# Ids that are looked through one by one.
_FEW = 8
# Of the kernel: of similarity and of size; and what is added to its diagonal.
_SHARP, _SIZES, _RIDGE = 4.0, 0.5, 0.2


@dataclass(frozen=True)
class LocalRegression:
    """The local members, not yet fitted.

    Attributes:
        names: which of `MEMBERS`.
        references: how many graphs others are compared with, at the most.
    """

    names: tuple[str, ...] = tuple(MEMBERS)
    references: int = 8192

    def fit(self, ensemble: Ensemble, sample: Ids) -> FittedLocal:
        """See `Member`."""
        candidates = Candidates.of(ensemble.graph, (1.0, self.references), ensemble.seed)
        references = References.of(ensemble, candidates.sampled)
        judged = Judged.of(self, ensemble, references, sample)
        return FittedLocal(self, candidates, references, judged)

    def refit(
        self, fitted: FittedMember, ensemble: Ensemble, change: Change, sample: Ids
    ) -> FittedLocal:
        """See `Member`."""
        assert isinstance(fitted, FittedLocal)
        known, old = fitted.candidates, fitted.references
        moved = not _same_frame(change.before.graph, ensemble.graph)
        if known is None or old is None or fitted.judged is None or moved:
            return self.fit(ensemble, sample)
        candidates = known.changed(ensemble.graph, change.changed, ensemble.seed)
        references = old.changed(ensemble, candidates.sampled, change.changed)
        judged = fitted.judged.changed(self, ensemble, old, references, change.changed, sample)
        return FittedLocal(self, candidates, references, judged)

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble, sample: Ids) -> None:
        """See `Member`."""
        del sample
        limit = (1.0, self.references)
        nodes = Candidates.of(ensemble.graph, limit, ensemble.seed).sampled
        check_forms(tensors, {"references": Form(np.int64, nodes.shape)}, "the local members")
        check_equal(tensors["references"], nodes, "the reference graphs")

    def restore(self, tensors: Tensors) -> FittedLocal:
        """See `Member`."""
        nodes = np.asarray(tensors["references"], dtype=np.int64)
        return FittedLocal(self, None, None, None, nodes)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The weight of each block in each member's similarity ``[len(names), len(BLOCKS)]``."""
        out = np.zeros((len(self.names), len(BLOCKS)))
        for i, name in enumerate(self.names):
            for block in MEMBERS[name]:
                out[i, BLOCKS.index(block)] = 1.0 / len(MEMBERS[name])
        return out


@dataclass(frozen=True, eq=False)
class References:
    """The reference graphs: sorted ids, their rows, and what is known of each.

    Attributes:
        nodes: sorted ids.
        rows: of colours.
        targets: float64 ``[m, num_classes]``: 1 for the own class, less the share of one class; of
            several labels and numbers, these in the graph's frame, NaN where they are not known.
    """

    nodes: Ids
    rows: SparseRows
    targets: NDArray[np.float64]

    @classmethod
    def of(cls, ensemble: Ensemble, nodes: Ids) -> References:
        """Colour these graphs."""
        graph = ensemble.graph
        rows = coloured(graph, graph.places(nodes), ensemble.seed)
        return cls(nodes, rows, _targets(graph, nodes))

    @cached_property
    def index(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """The rows by column."""
        found: tuple[Any, Any, Any] = _index(*self.rows[:3])
        return found

    @property
    def parts(self) -> tuple[Ids, SparseRows, NDArray[np.float64]]:
        """For kernels."""
        return self.nodes, self.rows, self.targets

    def changed(self, ensemble: Ensemble, nodes: Ids, changed: Ids) -> References:
        """Return the references of a graph that differs in these nodes alone."""
        at = ranks(nodes, self.nodes)
        at[ranks(nodes, changed) >= 0] = -1
        if len(nodes) == len(self.nodes) and (at >= 0).all():
            return self
        graph, new = ensemble.graph, nodes[at < 0]
        fresh = coloured(graph, graph.places(new), ensemble.seed)
        at[at < 0] = len(self.nodes) + np.arange(len(new))
        return References(nodes, self.rows.and_more(fresh).taken(at), _targets(graph, nodes))


def _targets(graph: Graph, nodes: Ids) -> NDArray[np.float64]:
    c, kind = graph.num_classes, graph.label_kind
    if not kind.is_classes:
        frame = graph.label_frame
        return np.asarray((kind.fixed(graph.labels(nodes)) - frame.centre) / frame.spread)
    out = np.full((len(nodes), c), -1.0 / c)
    out[np.arange(len(nodes)), graph.labels(nodes)] += 1.0
    return out


def _same_frame(before: Graph, graph: Graph) -> bool:
    return graph.label_kind.is_classes or graph.label_frame.same(before.label_frame)


@dataclass(frozen=True, eq=False)
class Judged:
    """The sampled graphs with the references nearest to them; follows from the collection.

    Attributes:
        sample: sorted ids.
        rows: of colours.
        near: int64 ``[m, names, _NEAREST + _SPARE]``, ids of the most similar references but for
            the graph itself, most similar first; -1 where there are no more.
        similar: float64, how similar each is.
        evidence: ``[m, names, num_classes]``.
    """

    sample: Ids
    rows: SparseRows
    near: NDArray[np.int64]
    similar: NDArray[np.float64]
    evidence: Evidence

    @classmethod
    def of(
        cls, rule: LocalRegression, ensemble: Ensemble, references: References, sample: Ids
    ) -> Judged:
        """Compare the sampled graphs with all references."""
        graph = ensemble.graph
        rows = coloured(graph, graph.places(sample), ensemble.seed)
        return cls.compared(rule, ensemble, references, sample, rows)

    @classmethod
    def compared(
        cls,
        rule: LocalRegression,
        ensemble: Ensemble,
        references: References,
        own: Ids,
        rows: SparseRows,
    ) -> Judged:
        """Compare rows with all references, but for those with their own ids."""
        near, similar = _nearest(rows, own, references.nodes, references.index, rule.shares)
        evidence = np.empty((*near.shape[:2], ensemble.graph.num_classes))
        made = cls(own, rows, near, similar, evidence)
        made._regress(rule, ensemble, references, np.ones(near.shape[:2], dtype=np.bool_))
        return made

    def _regress(
        self,
        rule: LocalRegression,
        ensemble: Ensemble,
        references: References,
        moved: NDArray[np.bool_],
    ) -> None:
        """Work out the evidence of these rows and members, in place."""
        known = self.near, self.similar, self.rows.sizes
        classes = ensemble.graph.label_kind.is_classes
        _regress(*known, moved, *references.parts, rule.shares, classes, self.evidence)

    def changed(
        self,
        rule: LocalRegression,
        ensemble: Ensemble,
        old: References,
        references: References,
        changed: Ids,
        sample: Ids,
    ) -> Judged:
        """Return what is known after a change of these graphs, from what was known before."""
        at = ranks(sample, self.sample)
        at[ranks(sample, changed) >= 0] = -1
        kept = at >= 0
        near, similar = self.near[np.maximum(at, 0)], self.similar[np.maximum(at, 0)]
        evidence = self.evidence[np.maximum(at, 0)]
        gone = np.union1d(old.nodes[ranks(old.nodes, references.nodes) < 0], changed)
        come = np.union1d(references.nodes[ranks(references.nodes, old.nodes) < 0], changed)
        come = come[ranks(come, references.nodes) >= 0]
        rows = self.rows
        if not kept.all() or len(sample) != len(self.sample):
            graph = ensemble.graph
            fresh = coloured(graph, graph.places(sample[~kept]), ensemble.seed)
            at[~kept] = len(self.sample) + np.arange(int((~kept).sum()))
            rows = rows.and_more(fresh).taken(at)
        new = references.rows.taken(ranks(come, references.nodes))
        others = tuple(
            len(part.nodes) - (ranks(sample, part.nodes) >= 0) for part in (old, references)
        )
        hit = np.isin(near, gone).any(axis=(1, 2))
        stale, moved = _exchanged(
            near, similar, hit, kept, gone, come, new, rows, sample, rule.shares, others
        )
        again = np.flatnonzero(stale)
        if len(again):
            part = rows.taken(again), sample[again]
            near[again], similar[again] = _nearest(
                *part, references.nodes, references.index, rule.shares
            )
        moved[again] = True
        made = Judged(sample, rows, near, similar, evidence)
        made._regress(rule, ensemble, references, moved)
        return made


@dataclass(frozen=True, eq=False)
class FittedLocal:
    """Reference graphs, and the judged ones.

    Attributes:
        rule: what it was fitted by.
        candidates, references, judged: None after loading.
        nodes: ids of the references, after loading.
    """

    rule: LocalRegression
    candidates: Candidates | None = field(repr=False)
    references: References | None = field(repr=False)
    judged: Judged | None = field(repr=False)
    nodes: Ids | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.rule.names

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        nodes = self.nodes if self.references is None else self.references.nodes
        assert nodes is not None
        return {"references": nodes}

    def nearest(self, ensemble: Ensemble, positions: Positions, own: Ids) -> Judged:
        """Return the most similar references of some graphs, and what follows from them.

        Args:
            ensemble: with the graph.
            positions: of the graphs that are asked about.
            own: of each an id that is left out; -1: none.
        """
        graph = ensemble.graph
        rows = coloured(graph, graph.places_at(positions), ensemble.seed)
        return Judged.compared(self.rule, ensemble, self._references(ensemble), own, rows)

    def evidence_of(self, ensemble: Ensemble, rows: SparseRows) -> Evidence:
        """Return evidence about graphs that are not in the collection."""
        nobody = np.full(len(rows), -1)
        references = self._references(ensemble)
        return Judged.compared(self.rule, ensemble, references, nobody, rows).evidence

    def evidence(self, ensemble: Ensemble, positions: Positions) -> Evidence:
        """See `FittedMember`."""
        return self.nearest(ensemble, positions, np.full(len(positions), -1)).evidence

    def held_out(self, ensemble: Ensemble, sample: Ids) -> Evidence:
        """See `FittedMember`: a graph is no reference of its own."""
        if self.judged is None:
            references = self._references(ensemble)
            return Judged.of(self.rule, ensemble, references, sample).evidence
        return self.judged.evidence

    def _references(self, ensemble: Ensemble) -> References:
        if self.references is not None:
            return self.references
        known = vars(self).get("_loaded")
        if known is None:
            assert self.nodes is not None
            known = References.of(ensemble, self.nodes)
            vars(self)["_loaded"] = known  # the same for every thread that makes it
        return known


@compiled
def _index(pointers, columns, values):  # type: ignore[no-untyped-def]
    """Return rows by column: where each column begins, and its rows and values."""
    starts = np.zeros(COLUMNS + 1, dtype=np.int64)
    for column in columns:
        starts[column + 1] += 1
    for column in range(COLUMNS):
        starts[column + 1] += starts[column]
    at = starts[:-1].copy()
    owners, carried = np.empty(len(columns), dtype=np.int32), np.empty(len(columns), np.float32)
    for r in range(len(pointers)):
        for e in range(pointers[r, 0], pointers[r, -1]):
            place = at[columns[e]]
            owners[place], carried[place] = r, values[e]
            at[columns[e]] += 1
    return starts, owners, carried


@compiled
def _nearest(rows, own, nodes, index, shares):  # type: ignore[no-untyped-def]
    """Find the references most similar to each row, but for the graph itself.

    Products are added in the order of columns, as `_products` does: the same bits.
    """
    m, names, most = len(rows.pointers), len(shares), _NEAREST + _SPARE
    near = np.full((m, names, most), -1, dtype=np.int64)
    similar = np.full((m, names, most), -1.0)
    product, means = np.empty(len(nodes)), np.empty((names, len(nodes)))
    for r in range(m):
        means[:] = 0.0
        for block in range(shares.shape[1]):
            _multiply(rows, r, block, index, product)
            for k in range(names):
                if shares[k, block] > 0.0:
                    for i in range(len(nodes)):
                        means[k, i] += shares[k, block] * product[i]
        for k in range(names):
            for i in range(len(nodes)):
                if means[k, i] >= similar[r, k, most - 1] and nodes[i] != own[r]:
                    _let_in(near[r, k], similar[r, k], nodes[i], means[k, i])
    return near, similar


@compiled
def _multiply(rows, r, block, index, product):  # type: ignore[no-untyped-def]
    """Multiply a block of a row with those of all references."""
    starts, owners, carried = index
    product[:] = 0.0
    for e in range(rows.pointers[r, block], rows.pointers[r, block + 1]):
        value, column = np.float64(rows.values[e]), rows.columns[e]
        for i in range(starts[column], starts[column + 1]):
            product[owners[i]] += np.float64(carried[i]) * value


@compiled(inline=True)
def _open(wide, rows, r):  # type: ignore[no-untyped-def]
    """Write a row where every column has its place."""
    for e in range(rows.pointers[r, 0], rows.pointers[r, -1]):
        wide[rows.columns[e]] = rows.values[e]


@compiled(inline=True)
def _close(wide, rows, r):  # type: ignore[no-untyped-def]
    for e in range(rows.pointers[r, 0], rows.pointers[r, -1]):
        wide[rows.columns[e]] = 0.0


@compiled
def _products(wide, rows, r, shares, blocks):  # type: ignore[no-untyped-def]
    """Multiply a row with one that lies wide open, in the order of columns; blocks with a share."""
    for b in range(len(blocks)):
        total = 0.0
        if shares[b] > 0.0:
            for e in range(rows.pointers[r, b], rows.pointers[r, b + 1]):
                total += np.float64(rows.values[e]) * np.float64(wide[rows.columns[e]])
        blocks[b] = total


@compiled
def _mean(blocks, shares):  # type: ignore[no-untyped-def]
    total = 0.0
    for b in range(len(blocks)):
        if shares[b] > 0.0:
            total += shares[b] * blocks[b]
    return total


@compiled
def _let_in(near, similar, node, value):  # type: ignore[no-untyped-def]
    """Put a reference in its place: most similar first, equals by id; the last one falls out."""
    last = len(near) - 1
    if value < similar[last] or (value == similar[last] and node > near[last] >= 0):
        return False
    at = last
    while at > 0 and (
        value > similar[at - 1] or (value == similar[at - 1] and node < near[at - 1])
    ):
        near[at], similar[at] = near[at - 1], similar[at - 1]
        at -= 1
    near[at], similar[at] = node, value
    return True


@compiled
def _exchanged(near, similar, hit, kept, gone, come, new, rows, sample, shares, others):  # type: ignore[no-untyped-def]
    """Take references out of the lists and put others in, in place.

    ``hit`` marks the rows with one of ``gone`` in a list. ``new`` are the rows of those that come,
    ``rows`` those of the sample; ``others`` count the references of each, but for the graph itself,
    before and after.

    Returns: which rows have to be compared with all again; and by member, which have other nearest
    ones.
    """
    m, names, _ = near.shape
    stale, moved = ~kept, np.zeros((m, names), dtype=np.bool_)
    wide, blocks = np.zeros(COLUMNS, dtype=np.float32), np.empty((len(come), shares.shape[1]))
    before, some = np.empty(_NEAREST, dtype=np.int64), shares.sum(axis=0)
    for r in range(m):
        if not (kept[r] and (hit[r] or len(come))):
            continue
        if len(come):
            _open(wide, rows, r)
            for i in range(len(come)):
                _products(wide, new, i, some, blocks[i])
            _close(wide, rows, r)
        for k in range(names):
            before[:] = near[r, k, :_NEAREST]
            # Whoever comes belongs to a list that held all there were.
            whole = _length(near[r, k]) >= others[0][r]
            _take_out(near[r, k], similar[r, k], gone)
            _put_in(near[r, k], similar[r, k], come, blocks, shares[k], sample[r], whole)
            stale[r] |= _length(near[r, k]) < min(_NEAREST, others[1][r]) and not whole
            for j in range(_NEAREST):
                moved[r, k] |= near[r, k, j] != before[j] or _among(near[r, k, j], come)
    return stale, moved


@compiled
def _length(near):  # type: ignore[no-untyped-def]
    count = 0
    while count < len(near) and near[count] >= 0:
        count += 1
    return count


@compiled
def _take_out(near, similar, gone):  # type: ignore[no-untyped-def]
    left = 0
    for j in range(len(near)):
        node, value = near[j], similar[j]
        near[j], similar[j] = -1, -1.0
        if node >= 0 and not _among(node, gone):
            near[left], similar[left] = node, value
            left += 1


@compiled
def _put_in(near, similar, come, blocks, shares, own, whole):  # type: ignore[no-untyped-def]
    """Put those that come into a list; where it does not hold all, only before its last one."""
    left = _length(near)
    bound, last = (similar[left - 1], near[left - 1]) if left else (2.0, -1)
    for i in range(len(come)):
        value = _mean(blocks[i], shares)
        closer = value > bound or (value == bound and come[i] < last)
        if come[i] != own and (closer or whole):
            _let_in(near, similar, come[i], value)


@compiled
def _among(node, nodes):  # type: ignore[no-untyped-def]
    if len(nodes) <= _FEW:
        found = False
        for other in nodes:
            found |= other == node
        return found
    at = np.searchsorted(nodes, node)
    return at < len(nodes) and nodes[at] == node


@compiled
def _regress(near, similar, sizes, moved, nodes, rows, targets, shares, classes, out):  # type: ignore[no-untyped-def]
    """Solve each small system in one fixed order, its unknowns from the most similar graph on."""
    wide, blocks = np.zeros(COLUMNS, dtype=np.float32), np.empty(shares.shape[1])
    for r in range(len(near)):
        for k in range(near.shape[1]):
            if not moved[r, k]:
                continue
            count = min(_NEAREST, _length(near[r, k]))
            at = np.searchsorted(nodes, near[r, k, :count])
            kernel = _kernel(at, rows, shares[k], wide, blocks)
            weights = np.empty(count)
            for i in range(count):
                weights[i] = _closeness(similar[r, k, i], sizes[r] - rows.sizes[at[i]])
            # (K + ridge)^-1 k, once for all classes: the kernel is symmetric.
            solve_few(kernel, weights)
            for u in range(targets.shape[1]):
                centre = 0.0 if classes else _centre(targets, at, u)
                total = 0.0
                for i in range(count):
                    if not np.isnan(targets[at[i], u]):
                        total += weights[i] * (targets[at[i], u] - centre)
                out[r, k, u] = SHARPNESS * total if classes else centre + total


@compiled
def _centre(targets, at, u):  # type: ignore[no-untyped-def]
    """Return the mean of what is known of a target; the frame's centre where nothing is."""
    total, known = 0.0, 0
    for i in at:
        if not np.isnan(targets[i, u]):
            total += targets[i, u]
            known += 1
    return total / max(known, 1)


@compiled
def _closeness(similar, apart):  # type: ignore[no-untyped-def]
    return exponential(_SHARP * (similar - 1.0) - _SIZES * apart * apart)


@compiled
def _kernel(at, rows, shares, wide, blocks):  # type: ignore[no-untyped-def]
    """Compare the rows at these places with each other; the lower half, with the ridge."""
    out = np.empty((len(at), len(at)))
    for i in range(len(at)):
        _open(wide, rows, at[i])
        for j in range(i):
            _products(wide, rows, at[j], shares, blocks)
            apart = rows.sizes[at[i]] - rows.sizes[at[j]]
            out[i, j] = _closeness(_mean(blocks, shares), apart)
        out[i, i] = 1.0 + _RIDGE
        _close(wide, rows, at[i])
    return out
