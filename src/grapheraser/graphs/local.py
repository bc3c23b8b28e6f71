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
from grapheraser.aggregation.sample.membership import Candidates
from grapheraser.graph import Graph
from grapheraser.graphs.colours import BLOCKS, SparseRows, coloured
from grapheraser.graphs.nearest import exchanged, index, nearest, regress
from grapheraser.kernels.sets import ranks

# Blocks that each member compares.
MEMBERS: dict[str, tuple[str, ...]] = {
    "surroundings": ("atoms", "near", "far", "paths"),
    "paths": ("atoms", "near", "paths", "rings"),
    "shapes": ("shape", "rings", "paths"),
    "profiles": ("profile",),
}


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
        found: tuple[Any, Any, Any] = index(*self.rows[:3])
        return found

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
        cls,
        rule: LocalRegression,
        ensemble: Ensemble,
        references: References,
        own: Ids,
        rows: SparseRows | None = None,
    ) -> Judged:
        """Compare graphs, or rows, with all references, but for those with their own ids."""
        if rows is None:
            rows = coloured(ensemble.graph, ensemble.graph.places(own), ensemble.seed)
        near, similar = nearest(rows, own, references.nodes, references.index, rule.shares)
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
        others = references.nodes, references.rows, references.targets
        classes = ensemble.graph.label_kind.is_classes
        regress(*known, moved, *others, rule.shares, classes, self.evidence)

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
        stale, moved = exchanged(
            near, similar, hit, kept, gone, come, new, rows, sample, rule.shares, others
        )
        again = np.flatnonzero(stale)
        if len(again):
            part = rows.taken(again), sample[again]
            near[again], similar[again] = nearest(
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
        return Judged.of(self.rule, ensemble, self._references(ensemble), own, rows)

    def evidence_of(self, ensemble: Ensemble, rows: SparseRows) -> Evidence:
        """Return evidence about graphs that are not in the collection."""
        nobody = np.full(len(rows), -1)
        references = self._references(ensemble)
        return Judged.of(self.rule, ensemble, references, nobody, rows).evidence

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
