"""The members that only count: words, labels and edges, over the same counts.

Counts are integers. Taking a node out subtracts what it was counted with, which is exact by
construction and costs as much as the node has features and edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.form import Form, Tensors, check_equal, check_forms
from grapheraser.aggregation.members.around import Around
from grapheraser.aggregation.members.base import (
    Evidence,
    FittedMember,
    Ids,
    Places,
    Positions,
    labelled_places,
    relabelled,
    trained_among,
)
from grapheraser.aggregation.members.neighbour_labels import (
    changed_edge_counts,
    edge_counts,
    edge_evidence,
    label_evidence,
)
from grapheraser.aggregation.members.words import WordCounts, is_dense, sums_form
from grapheraser.aggregation.sample.membership import few_labels
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.kernels.paged import labels_at
from grapheraser.kernels.sets import ranks

WORDS, LABELS, EDGES = NAMES = ("words", "labels", "edges")


@dataclass(frozen=True)
class Counting:
    """Some of the counting members, before they have counted anything.

    Attributes:
        names: which of them.
    """

    names: tuple[str, ...] = NAMES

    def fit(self, ensemble: Ensemble, sample: Ids) -> FittedCounting:
        """See `Member`."""
        graph = ensemble.graph
        classes = _by_class(graph, labelled_places(graph))
        words = WordCounts.of(graph, classes) if WORDS in self.names else None
        pairs = edge_counts(graph) if EDGES in self.names else None
        return FittedCounting(self.names, classes, words, pairs, self._judged(ensemble, sample))

    def refit(
        self, fitted: FittedMember, ensemble: Ensemble, change: Change, sample: Ids
    ) -> FittedCounting:
        """See `Member`."""
        assert isinstance(fitted, FittedCounting)
        before, graph, changed = change.before.graph, ensemble.graph, change.changed
        classes = fitted.classes - _by_class(before, trained_among(before, changed))
        classes += _by_class(graph, trained_among(graph, changed))
        words, pairs = fitted.words, fitted.pairs
        if words is not None:
            words = words.changed(before, graph, changed, classes)
        if pairs is not None:
            pairs = changed_edge_counts(pairs, before, graph, changed)
        judged = self._judged(ensemble, sample, change, fitted.judged)
        return FittedCounting(self.names, classes, words, pairs, judged)

    def _judged(
        self,
        ensemble: Ensemble,
        sample: Ids,
        change: Change | None = None,
        old: Judged | None = None,
    ) -> Judged | None:
        """Look around the sampled nodes; after a change, only where it touched something."""
        if self.names == (WORDS,):
            return None
        graph, seed = ensemble.graph, ensemble.seed
        if change is None or old is None:
            return Judged(sample, Around.of(graph, graph.places(sample), seed))
        moved = change.touched
        others = relabelled(change.before.graph, graph, moved)
        if len(others):
            moved = np.union1d(moved, graph.around(others))
        rows = ranks(sample, old.sample)
        rows[(ranks(sample, moved) >= 0) | (ranks(sample, graph.around(moved)) >= 0)] = -1
        if sample is old.sample and (rows >= 0).all():
            return old
        fresh = Around.of(graph, graph.places(sample[rows < 0]), seed)
        return Judged(sample, old.around.replaced(rows, fresh))

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble, sample: Ids) -> None:
        """See `Member`."""
        del sample
        graph = ensemble.graph
        c, n = graph.num_classes, graph.num_train
        classes = _by_class(graph, labelled_places(graph))
        forms = {"classes": Form(np.int64, (c,), 0, n)}
        if EDGES in self.names:
            forms["pairs"] = Form(np.int64, (c, c), 0, 2 * graph.num_edges)
        if WORDS in self.names:
            forms["words"] = Form(np.int32, (c, graph.num_features), 0, n)
        check_forms({name: tensors[name] for name in forms if name in tensors}, forms, "counts")
        check_equal(tensors["classes"], classes, "the training nodes of each class")
        if WORDS in self.names and is_dense(classes, np.asarray(tensors["words"], dtype=np.int32)):
            forms["sums"] = sums_form(graph)
        check_forms(tensors, forms, "counts")

    def restore(self, tensors: Tensors) -> FittedCounting:
        """See `Member`."""
        classes = np.asarray(tensors["classes"], dtype=np.int64)
        words, sums, pairs = (tensors.get(name) for name in ("words", "sums", "pairs"))
        return FittedCounting(
            self.names,
            classes,
            None
            if words is None
            else WordCounts(
                classes,
                np.asarray(words, dtype=np.int32),
                None if sums is None else np.asarray(sums, dtype=np.int64),
            ),
            None if pairs is None else np.asarray(pairs, dtype=np.int64),
            None,
        )


def _own(graph: Graph, places: Places, *, held_out: bool) -> NDArray[np.int64]:
    """The class that each node is held out of, or -1."""
    if held_out:
        own: NDArray[np.int64] = labels_at(graph.table, places)
        return own
    return np.full(len(places), UNLABELLED)


def _by_class(graph: Graph, places: Places) -> NDArray[np.int64]:
    return np.bincount(labels_at(graph.table, places), minlength=graph.num_classes)


@dataclass(frozen=True, eq=False)
class Judged:
    """Surroundings to judge the sampled nodes by; they save time and follow from the graph.

    Attributes:
        sample: sorted ids.
        around: the labels around them.
    """

    sample: Ids
    around: Around


@dataclass(frozen=True, eq=False)
class FittedCounting:
    """Counts over the training nodes.

    Attributes:
        names: the members, in the order of their evidence.
        classes: int64 ``[num_classes]``, training nodes of each class.
        words: how many of them have each feature; None without `WORDS`.
        pairs: edges between classes; None without `EDGES`.
        judged: None after loading, and where `WORDS` are alone.
    """

    names: tuple[str, ...]
    classes: NDArray[np.int64]
    words: WordCounts | None
    pairs: NDArray[np.int64] | None
    judged: Judged | None = field(repr=False)

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        named: dict[str, NDArray[np.generic]] = {"classes": self.classes}
        if self.words is not None:
            named["words"] = self.words.counts
            if self.words.sums is not None:
                named["sums"] = self.words.sums
        return named if self.pairs is None else named | {"pairs": self.pairs}

    def evidence(self, ensemble: Ensemble, positions: Positions) -> Evidence:
        """See `FittedMember`."""
        return self._evidence(ensemble, ensemble.graph.places_at(positions), None, held_out=False)

    def held_out(self, ensemble: Ensemble, sample: Ids) -> Evidence:
        """See `FittedMember`: without what the node itself was counted with."""
        around = None if self.judged is None else self.judged.around
        return self._evidence(ensemble, ensemble.graph.places(sample), around, held_out=True)

    def _evidence(
        self, ensemble: Ensemble, places: Places, around: Around | None, *, held_out: bool
    ) -> Evidence:
        graph = ensemble.graph
        out = np.empty((len(places), len(self.names), graph.num_classes))
        if around is None and self.names != (WORDS,):
            around = Around.of(graph, places, ensemble.seed)
        for i, name in enumerate(self.names):
            if name == WORDS and self.words is not None:
                out[:, i] = self.words.evidence(graph, places, held_out=held_out)
            elif name == EDGES and self.pairs is not None and around is not None:
                own = (
                    labels_at(graph.table, places) if held_out else np.full(len(places), UNLABELLED)
                )
                out[:, i] = edge_evidence(self.pairs, around, own)
            elif around is not None:
                hints = None if few_labels(graph) else self.words
                out[:, i] = label_evidence(graph, around, self.classes, hints)
        return out
