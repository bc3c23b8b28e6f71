"""The members that only count: words, labels and edges, over the same counts.

Counts are integers. Taking a node out subtracts what it was counted with, which is exact by
construction and costs as much as the node has features and edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.members import edges, labels
from grapheraser.aggregation.members.base import (
    Evidence,
    FittedMember,
    Ids,
    Positions,
    labelled,
    trained_among,
)
from grapheraser.aggregation.members.words import WordCounts
from grapheraser.graph import Graph

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
        del sample
        graph = ensemble.graph
        classes = np.bincount(graph.y[labelled(graph)], minlength=graph.num_classes)
        words = WordCounts.of(graph, classes) if WORDS in self.names else None
        pairs = edges.edge_counts(graph) if EDGES in self.names else None
        return FittedCounting(self.names, classes, words, pairs)

    def refit(
        self, fitted: FittedMember, ensemble: Ensemble, change: Change, sample: Ids
    ) -> FittedCounting:
        """See `Member`."""
        assert isinstance(fitted, FittedCounting)
        del sample
        before, graph, changed = change.before.graph, ensemble.graph, change.changed
        classes = fitted.classes - _by_class(before, changed) + _by_class(graph, changed)
        words, pairs = fitted.words, fitted.pairs
        if words is not None:
            words = words.changed(before, graph, changed, classes)
        if pairs is not None:
            pairs = edges.changed_edge_counts(pairs, before, graph, changed)
        return FittedCounting(self.names, classes, words, pairs)

    def restore(self, tensors: Mapping[str, NDArray[np.generic]]) -> FittedCounting:
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
        )


def _by_class(graph: Graph, nodes: Ids) -> NDArray[np.int64]:
    return np.bincount(graph.y[trained_among(graph, nodes)], minlength=graph.num_classes)


@dataclass(frozen=True, eq=False)
class FittedCounting:
    """Counts over the training nodes.

    Attributes:
        names: the members, in the order of their evidence.
        classes: int64 ``[num_classes]``, training nodes of each class.
        words: how many of them have each feature; None without `WORDS`.
        pairs: edges between classes; None without `EDGES`.
    """

    names: tuple[str, ...]
    classes: NDArray[np.int64]
    words: WordCounts | None
    pairs: NDArray[np.int64] | None

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
        return self._evidence(ensemble, positions, held_out=False)

    def held_out(self, ensemble: Ensemble, sample: Ids) -> Evidence:
        """See `FittedMember`: without what the node itself was counted with."""
        return self._evidence(ensemble, ensemble.graph.positions(sample), held_out=True)

    def _evidence(self, ensemble: Ensemble, positions: Positions, *, held_out: bool) -> Evidence:
        graph, seed = ensemble.graph, ensemble.seed
        out = np.empty((len(positions), len(self.names), graph.num_classes))
        for i, name in enumerate(self.names):
            if name == WORDS and self.words is not None:
                out[:, i] = self.words.evidence(graph, positions, held_out=held_out)
            elif name == EDGES and self.pairs is not None:
                out[:, i] = edges.evidence(self.pairs, graph, positions, seed, held_out=held_out)
            else:
                out[:, i] = labels.evidence(graph, positions, seed, self.classes, self.words)
        return out
