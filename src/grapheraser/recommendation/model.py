"""The model of a recommender: weights of a few blocks, learned to rank interactions held out.

The weights are all that is kept of the graph besides the graph itself; scores are counted when
somebody asks (see `scoring`). They are learned anew with every request, from cases (see `cases`)
of which only those that the change has touched are judged again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble, FittedAggregator
from grapheraser.aggregation.form import MAX_WEIGHT, Form, Tensors, check_forms
from grapheraser.aggregation.log_linear import pool_weights
from grapheraser.errors import CorruptRunError
from grapheraser.graph import Graph
from grapheraser.kernels.paged import NOWHERE, labels_at, located
from grapheraser.recommendation.cases import ITEM, USER, Cases
from grapheraser.recommendation.weighing import (
    NO_TIMES,
    Ids,
    Neighbours,
    Recency,
    Vector,
    Weighing,
    recent_sums,
    side_degrees,
    weighing_of,
)


@dataclass(frozen=True)
class RecommendationModel:
    """The aggregator of a recommender, before it has seen a graph.

    Attributes:
        item_power, blocks, damping, ridge, scale, half_life: see `weighing_of`.
        sample: how many users to learn the weights from at the most, by an item of each.
        neighbours: how many users count as neighbours, about, where there are more.
    """

    item_power: float
    blocks: tuple[tuple[float, int], ...]
    damping: float
    ridge: float
    scale: float | None
    sample: int
    neighbours: int
    half_life: float | None = None
    name: str = "recommendation"

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the blocks, and of the popularity of items, with times also of late."""
        named = [f"neighbours, degree^-{power:g}, steps {steps}" for power, steps in self.blocks]
        return (*named, "popularity", *(["popularity of late"] if self.half_life else []))

    @property
    def weighing(self) -> Weighing:
        """The numbers that scores are made with."""
        return weighing_of(
            self.item_power, self.blocks, self.damping, self.ridge, self.scale, self.half_life
        )

    def fit(self, ensemble: Ensemble) -> FittedRecommendation:
        """See `Aggregator`."""
        graph = ensemble.graph
        counts = np.bincount(graph.y, minlength=2).astype(np.int64)
        near = self.near(counts, ensemble.seed)
        recency = self.recency(graph)
        cases = Cases.of(graph, self.sample, ensemble.seed, self.weighing, near, recency)
        return self._fitted(cases, counts, recency)

    def recency(self, graph: Graph) -> Recency:
        """Add up the interactions of late of all items."""
        if self.half_life is None:
            return NO_TIMES
        items, _ = side_degrees(graph.table, graph.ids, ITEM)
        return Recency(items, recent_sums(graph.table, items, self.weighing))

    def refit(
        self, fitted: FittedAggregator, ensemble: Ensemble, change: Change
    ) -> FittedRecommendation:
        """See `Aggregator`."""
        assert isinstance(fitted, FittedRecommendation)
        if fitted.cases is None:  # just loaded
            return self.fit(ensemble)
        graph, before = ensemble.graph, change.before.graph
        counts = fitted.counts[:2] - _sides(before, change.gone) + _new(graph, before, change)
        near = self.near(counts, ensemble.seed)
        recency = fitted.recency_of(before)
        if self.half_life is not None:
            items = change.touched[graph.labels(change.touched) == ITEM]
            left = ~np.isin(recency.items, change.changed)
            ids = np.concatenate([recency.items[left], items])
            sums = [recency.sums[left], recent_sums(graph.table, items, self.weighing)]
            order = np.argsort(ids, kind="stable")
            recency = Recency(ids[order], np.concatenate(sums)[order])
        cases = fitted.cases.changed(graph, change, ensemble.seed, self.weighing, near, recency)
        return self._fitted(cases, counts, recency)

    def near(self, counts: Ids, seed: int) -> Neighbours:
        """Say which users count as neighbours, where there are so many users and items."""
        return Neighbours.among(int(counts[USER]), self.neighbours, seed)

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble) -> None:
        """See `ChecksTensors`."""
        forms = {
            "weights": Form(np.float64, (len(self.members),), -MAX_WEIGHT, MAX_WEIGHT),
            "counts": Form(np.int64, (3,), 0, 2**31),
        }
        check_forms(tensors, forms, "a recommender's run")
        graph, counts = ensemble.graph, np.asarray(tensors["counts"])
        if int(counts[:2].sum()) != graph.num_nodes or graph.num_classes != 2:
            raise CorruptRunError("a recommender's run has other users and items than its graph.")

    def restore(self, tensors: Tensors) -> FittedRecommendation:
        """See `Aggregator`."""
        weights = np.asarray(tensors["weights"], dtype=np.float64)
        counts = np.asarray(tensors["counts"], dtype=np.int64)
        return FittedRecommendation(self, weights, counts, None)

    def _fitted(self, cases: Cases, counts: Ids, recency: Recency) -> FittedRecommendation:
        blocks = len(self.blocks)
        # Choices come as often as they are popular (with times: of late): an item of degree d by a
        # factor of d too often, which its evidence, log 1 / d, makes up for with a weight of 1.
        start = np.array([1.0 / blocks] * blocks + [0.0] * (self.half_life is not None) + [1.0])
        weights = pool_weights(cases.evidence, cases.labels, start).members
        weights[-1] = 1.0 - weights[-1]
        counts = np.append(counts, len(cases.users))
        return FittedRecommendation(self, weights, counts, cases, recency)


def _sides(graph: Graph, nodes: Ids) -> Ids:
    """Count users and items among nodes, as far as the graph has them."""
    places = located(graph.table, nodes)
    labels = labels_at(graph.table, places[places != NOWHERE])
    return np.bincount(labels, minlength=2).astype(np.int64)


def _new(graph: Graph, before: Graph, change: Change) -> Ids:
    """Count the users and items that came."""
    return _sides(graph, change.touched[~before.contains(change.touched)])


@dataclass(frozen=True, eq=False)
class FittedRecommendation:
    """The learned weights, and what learns them again cheaply.

    Attributes:
        model: what they were learned by.
        weights: float64, of the members in the order of their names.
        counts: int64 ``[3]``: users, items, and cases that the weights were learned from.
        cases: follow from the graph; None after loading.
        recency: follows from the graph; None after loading.
        popular: ids of all items, most popular first; made when it is first asked for.
    """

    model: RecommendationModel
    weights: Vector
    counts: NDArray[np.int64]
    cases: Cases | None = field(repr=False)
    recency: Recency | None = field(default=None, repr=False)
    popular: Ids | None = field(default=None, repr=False)

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        """See `FittedAggregator`."""
        return {"weights": self.weights, "counts": self.counts}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for receipts about what was learned."""
        if self.counts[2]:
            return ()
        return ("no interaction could be held out: the weights of the blocks are those to begin",)

    def recency_of(self, graph: Graph) -> Recency:
        """Return the popularity of late of the graph's items."""
        if self.recency is None:
            object.__setattr__(self, "recency", self.model.recency(graph))
        assert self.recency is not None
        return self.recency

    def popular_items(self, graph: Graph) -> Ids:
        """All items, most popular first, with times of late; equals in the order of their ids."""
        if self.popular is None:
            items, degrees = side_degrees(graph.table, graph.ids, ITEM)
            keys = [-degrees, *(-sums for sums in self.recency_of(graph)[1:] if len(sums))]
            object.__setattr__(self, "popular", items[np.lexsort(keys)])
        assert self.popular is not None
        return self.popular
