"""The model that makes the rows of an embedding, and all that it keeps from one state to the next.

A row is made of the votes around a node (see `votes`) and, where the graph has features, of the
features around it. Both follow from the graph and fixed arguments, so there is nothing to learn and
nothing to forget but the graph itself; only weights of steps that are learned are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble, FittedAggregator
from grapheraser.aggregation.form import Form, Tensors, check_forms
from grapheraser.aggregation.members.smoothing import (
    FIRST,
    SECOND,
    Sketch,
    key_of,
    smoothed_rows,
    smoothed_rows_twice,
)
from grapheraser.aggregation.members.walks import Reach, Walk, stale_nodes
from grapheraser.embeddings.learned import MAX_SHARE, learned_weights
from grapheraser.embeddings.moved import Moved
from grapheraser.embeddings.votes import Ids, Places, Rule, Tally
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.neighbourhoods import ANY
from grapheraser.kernels.paged import degrees_at
from grapheraser.seeding import derive

Rows = NDArray[np.float32]
# The neighbours whose features count in the step from a node.
_REACH = Reach(ANY, SECOND)
# How much features count beside votes, and to how many columns each is sent; chosen on validation
# nodes and edges.
_FEATURES, _SPREAD = 0.75, 8
# What all rows have in common, beside votes and features, each at length 1; chosen likewise.
_COMMON = 0.3
# Rows that are made at once.
_BLOCK = 2**14


@dataclass(frozen=True)
class RowModel:
    """The aggregator of an embedding run, before it has seen a graph.

    Attributes:
        width: columns of a row.
        steps: weights of the votes after each step; None: they are learned.
        depth: how many steps.
        neighbours: how many count in a step.
        rarity: one node in ``2**rarity`` is a landmark.
        features: whether features have a part in rows, where the graph has any.
    """

    width: int
    steps: tuple[float, ...] | None
    depth: int
    neighbours: int
    rarity: int
    features: bool
    name: str = "embeddings"

    def rule(self, graph: Graph, seed: int) -> Rule:
        """Return how votes are cast."""
        shift = 63 if graph.types is None else graph.types.shift
        columns = self.width - 1  # the last is the same in all rows
        return Rule.of(seed, columns, self.depth, self.neighbours, self.rarity, shift)

    @property
    def shown(self) -> NDArray[np.bool_]:
        """True for each step whose votes are part of a row."""
        return np.ones(self.depth, bool) if self.steps is None else np.array(self.steps) != 0

    def sketch(self, graph: Graph, seed: int) -> Sketch | None:
        """Return what projects features to the columns; None where they have no part."""
        if not self.features or graph.num_features == 0:
            return None
        key = derive(seed, "embeddings")
        return Sketch.of(graph.num_features, self.width, key, spread=_SPREAD)

    def fit(self, ensemble: Ensemble) -> FittedRows:
        """See `Aggregator`."""
        graph, seed = ensemble.graph, ensemble.seed
        tally = Tally(self.rule(graph, seed), graph)
        return FittedRows(self, self._weights(tally, graph, seed), Moved.none(), tally)

    def refit(self, fitted: FittedAggregator, ensemble: Ensemble, change: Change) -> FittedRows:
        """See `Aggregator`."""
        assert isinstance(fitted, FittedRows)
        graph, seed = ensemble.graph, ensemble.seed
        tally = fitted.tally_of(change.before.graph, seed)
        with tally.turn:
            moved = tally.move(graph, change.touched, change.gone, self.shown)
            weights = self._weights(tally, graph, seed)
        if (sketch := self.sketch(graph, seed)) is not None:
            moved = np.union1d(moved, _moved_features(sketch, change, graph, seed))
        if weights.tobytes() != fitted.weights.tobytes():
            moved = graph.ids.copy()
        return FittedRows(self, weights, fitted.moved.then(moved, change.gone), tally)

    def _weights(self, tally: Tally, graph: Graph, seed: int) -> NDArray[np.float64]:
        if self.steps is not None:
            return np.array(self.steps)
        return learned_weights(tally, graph, seed, self.depth)

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble) -> None:
        """See `ChecksTensors`."""
        bound = MAX_SHARE if self.steps is None else max(1.0, *map(abs, self.steps))
        forms = {"weights": Form(np.float64, (self.depth,), -bound, bound)}
        check_forms(tensors, forms | Moved.forms(tensors), "an embedding run")
        Moved.restored(tensors).check(ensemble.graph)

    def restore(self, tensors: Tensors) -> FittedRows:
        """See `Aggregator`."""
        weights = np.asarray(tensors["weights"], dtype=np.float64)
        return FittedRows(self, weights, Moved.restored(tensors), None)


@dataclass(frozen=True, eq=False)
class FittedRows:
    """An embedding of one graph.

    Attributes:
        rule: what makes its rows.
        weights: float64, of the votes after each step.
        moved: which rows moved when; no part of the state, but kept with it.
        tally: the votes; follows from the graph. None after loading.
    """

    rule: RowModel
    weights: NDArray[np.float64]
    moved: Moved
    tally: Tally | None = field(repr=False)

    @property
    def tensors(self) -> Mapping[str, NDArray[Any]]:
        """See `FittedAggregator`."""
        return {"weights": self.weights}

    @property
    def kept(self) -> Mapping[str, NDArray[Any]]:
        """Arrays that are saved beside the state and are no part of it."""
        return self.moved.tensors

    def compared(self, ensemble: Ensemble) -> dict[str, NDArray[Any]]:
        """Return arrays to compare with those of a fresh fit, beside `tensors`: the signs."""
        tally = self.tally_of(ensemble.graph, ensemble.seed)
        with tally.turn:
            return {"signs": tally.signs()}

    @property
    def changed(self) -> Ids:
        """Sorted ids of the rows that the last change moved."""
        return self.moved.last

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for receipts."""
        if self.rule.steps is not None:
            return ()
        return ("weights of steps are learned: a change of the graph may move every row",)

    def without_history(self) -> FittedRows:
        """Return the rows as if they had just been made."""
        return replace(self, moved=Moved.none())

    def tally_of(self, graph: Graph, seed: int) -> Tally:
        """Return the votes of this state's graph; counted again where a later state holds them."""
        tally = self.tally
        if tally is None or tally.graph is not graph:
            tally = Tally(self.rule.rule(graph, seed), graph)
            object.__setattr__(self, "tally", tally)
        return tally

    def rows(self, graph: Graph, nodes: Ids, seed: int) -> Rows:
        """Return the rows ``[len(nodes), width]`` of ids, each by itself."""
        places, sketch = graph.places(nodes), self.rule.sketch(graph, seed)
        out = np.empty((len(nodes), self.rule.width), dtype=np.float32)
        for start in range(0, len(nodes), _BLOCK):
            block = places[start : start + _BLOCK]
            parts = self._voted(graph, block, seed), _featured(sketch, graph, block, seed)
            degrees = degrees_at(graph.table, block)
            out[start : start + len(block)] = _finished(*parts, degrees, self.rule.width)
        return out

    def _voted(self, graph: Graph, places: Places, seed: int) -> NDArray[np.float64]:
        tally, columns = self.tally_of(graph, seed), self.rule.width - 1
        with tally.turn:
            if tally.graph is graph:
                steps = (np.flatnonzero(self.weights) + 1).tolist()
                votes = [tally.votes(graph, places, step)[:, :columns] for step in steps]
                return weighted(votes, self.weights)
        return self._voted(graph, places, seed)  # a request took it over just now

    def new_row(self, graph: Graph, longer: Graph, node: int, seed: int) -> Rows:
        """Return the row ``[width]`` of a node that only ``longer`` has, as its neighbours are."""
        sketch, columns = self.rule.sketch(graph, seed), self.rule.width - 1
        near, tally = np.sort(longer.neighbours(node)), self.tally_of(graph, seed)
        with tally.turn:
            steps = (np.flatnonzero(self.weights) + 1).tolist()
            votes = [tally.votes_among(graph, node, near, step)[None, :columns] for step in steps]
        features = _featured(sketch, longer, longer.places([node]), seed)
        parts = weighted(votes, self.weights), features, np.array([len(near)])
        row: Rows = _finished(*parts, self.rule.width)[0]
        return row


def _featured(
    sketch: Sketch | None, graph: Graph, places: Places, seed: int
) -> NDArray[np.float64]:
    """Return features around nodes, projected, at length `_FEATURES`; exact sums of squares."""
    if sketch is None:
        return np.zeros((len(places), 0))
    rows = smoothed_rows(sketch, graph, places, _REACH, seed)
    square = np.einsum("nc,nc->n", rows, rows)
    scaled: NDArray[np.float64] = rows * (_FEATURES / np.sqrt(np.maximum(square, 1.0)))[:, None]
    return scaled


@compiled
def _finished(votes, features, degrees, width):  # type: ignore[no-untyped-def]
    """Add up the parts of rows, with `_COMMON` in the last column, and bring them to their length.

    A node without neighbours so lies where all rows lead to a little, neither near the others nor
    far from them. Lengths grow with the eighth root of the number of neighbours. Every sum runs
    along one row, in the order of its columns.
    """
    out = np.zeros((len(votes), width), dtype=np.float32)
    row = np.empty(width)
    for r in range(len(votes)):
        row[:-1], row[-1] = votes[r], _COMMON
        for c in range(min(features.shape[1], width - 1)):
            row[c] += features[r, c]
        square = 0.0
        for c in range(width):
            square += row[c] * row[c]
        scale = np.sqrt(np.sqrt(np.sqrt(1.0 + degrees[r]))) / np.sqrt(square)
        for c in range(width):
            out[r, c] = row[c] * scale
    return out


def weighted(votes: list[NDArray[np.int16]], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average the votes of steps, each at length 1, by their weights.

    Squares of whole numbers have exact sums; the sum over steps runs in their order.
    """
    total = np.zeros(votes[0].shape)
    shares = weights[weights != 0] / np.abs(weights).sum()
    for part, weight in zip(votes, shares.tolist(), strict=True):
        square = np.einsum("nc,nc->n", part, part, dtype=np.int64)
        total += part * (weight / np.sqrt(np.maximum(square, 1)))[:, None]
    return total


def _moved_features(sketch: Sketch, change: Change, graph: Graph, seed: int) -> Ids:
    """Return sorted ids of the nodes left whose smoothed features are not what they were."""
    walk = Walk(_REACH, Reach(ANY, FIRST), key_of(seed), features=True)
    stale = stale_nodes(change, graph, walk)
    before = change.before.graph
    known = before.contains(stale.nodes)
    there = stale.nodes[known]
    parts = (before, before.places(there)), (graph, graph.places(there))
    old, new = smoothed_rows_twice(sketch, *parts, stale.moved, _REACH, seed)
    return np.sort(np.append(stale.nodes[~known], there[(old != new).any(axis=1)]))
