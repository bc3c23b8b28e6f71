"""Ask a state about nodes that are handed to it, and turn its answers into features of an attack.

An attacker who sees two states asks both about the same candidates on the same graph. A shard that
the request between them left alone gives the same answers, so it is asked once (`Answers`).

`FEATURES` are Chen et al.'s five ways of showing two posteriors to an attack model. "Sorted" puts
the classes into the order of the earlier version's posterior, largest first, in both versions: the
attack then learns from confidence, not from which class it was.

`INFORMED` are more of them, for an attacker who also uses the candidate's label and looks at
logarithms. A pool adds logarithms of what its members hold, so the traces of a record add up there;
among probabilities they drown where the pool is nearly sure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.aggregation import Ensemble
from grapheraser.arrays import Floats, Floats32, Ints
from grapheraser.engines import ShardWeights
from grapheraser.eraser.state import State
from grapheraser.graph import TEST, Graph
from grapheraser.inference import shard_posteriors
from grapheraser.nodes import GraphEraser


def state_of(eraser: GraphEraser) -> State:
    """Return the state that a fitted eraser serves now."""
    return State(eraser.aggregator_.ensemble, eraser.aggregator_.fitted)


def without_edges(graph: Graph) -> Graph:
    """Return the graph with no edges, as an attacker shows it who hands over features alone."""
    nothing = np.zeros(graph.num_nodes + 1, dtype=np.int64)
    return graph.with_fields(indptr=nothing, indices=np.zeros(0, dtype=np.int32))


def ask(
    state: State, graph: Graph, candidates: ArrayLike, known: Answers | None = None
) -> Floats32:
    """Return posteriors of candidates that are handed to a state with their features and edges.

    The graph may hold more nodes than the state was trained on; candidates have no shard while they
    are asked about. ``known`` is what shard models have answered already, on the same graph.
    """
    ids = np.asarray(candidates, dtype=np.int64)
    positions = graph.positions(ids)
    role = graph.role.copy()
    role[positions] = TEST
    ensemble = state.ensemble
    others = np.setdiff1d(ensemble.partition.nodes, ids)
    asked = _Asked(
        graph=graph.with_fields(role=role),
        partition=ensemble.partition.restricted_to(others),
        shards=ensemble.shards,
        model=ensemble.model,
        seed=ensemble.seed,
        known=known,
    )
    return state.aggregator.predict_proba(asked, positions)


@dataclass(eq=False)
class Answers:
    """Answers of the shard models of one state about many candidates, each asked once.

    A shard model's answer follows from its weights and the graph alone. So a shard that a request
    left as it was need not be asked again after it.
    """

    state: State  # whose shard models
    graph: Graph  # which they are asked on
    # Sorted rows of the graph, of all candidates that are expected.
    positions: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # By shard ``[len(positions), num_classes]``, filled when asked for.
    rows: dict[int, Floats32] = field(default_factory=dict)

    def expect(self, candidates: Ints) -> None:
        """Announce candidates that will be asked about, so that all are asked about at once."""
        wider = np.union1d(self.positions, self.graph.positions(candidates))
        if len(wider) > len(self.positions):
            self.positions = wider
            self.rows.clear()

    def holds(self, shard: int, weights: ShardWeights) -> bool:
        """True where the state has the same weights for that shard."""
        return self.state.shards.get(shard) is weights

    def of_shards(self, shards: Sequence[int], positions: Ints) -> Floats32 | None:
        """Return ``[len(shards), len(positions), c]``; None where other nodes are asked about."""
        if not np.isin(positions, self.positions).all():
            return None
        at = np.searchsorted(self.positions, positions)
        missing = [shard for shard in shards if shard not in self.rows]
        weights = [self.state.shards[shard] for shard in missing]
        if missing:
            rows = shard_posteriors(self.state.ensemble.model, weights, self.graph, self.positions)
            self.rows.update(zip(missing, rows, strict=True))
        return np.stack([self.rows[shard][at] for shard in shards])


@dataclass(frozen=True, eq=False)
class _Asked(Ensemble):
    """An ensemble that asks no shard model what is known already."""

    known: Answers | None = None

    def posteriors(self, positions: Ints, shards: Sequence[int] | None = None) -> Floats32:
        """See `Ensemble`."""
        wanted = list(self.shard_ids if shards is None else shards)
        if self.known is None:
            return super().posteriors(positions, wanted)
        same = np.array(
            [self.known.holds(shard, self.shards[shard]) for shard in wanted], dtype=bool
        )
        old = [shard for shard, known in zip(wanted, same, strict=True) if known]
        new = [shard for shard, known in zip(wanted, same, strict=True) if not known]
        known = self.known.of_shards(old, positions) if old else None
        if known is None:
            return super().posteriors(positions, wanted)
        out = np.empty((len(wanted), *known.shape[1:]), dtype=np.float32)
        out[same] = known
        if new:
            out[~same] = super().posteriors(positions, new)
        return out


Matrix = Floats
Labels = Ints
# The least probability that is told from 0.
_FLOOR = 1e-6


def direct_difference(before: Matrix, after: Matrix) -> Matrix:
    """Subtract after from before, class by class ``[n, c]``."""
    return before - after


def sorted_difference(before: Matrix, after: Matrix) -> Matrix:
    """Subtract likewise, classes by falling confidence before ``[n, c]``."""
    return direct_difference(*_sorted(before, after))


def direct_concatenation(before: Matrix, after: Matrix) -> Matrix:
    """Put both posteriors side by side ``[n, 2 c]``."""
    return np.hstack([before, after])


def sorted_concatenation(before: Matrix, after: Matrix) -> Matrix:
    """Put both side by side, classes by falling confidence before ``[n, 2 c]``."""
    return direct_concatenation(*_sorted(before, after))


def euclidean_distance(before: Matrix, after: Matrix) -> Matrix:
    """Measure how far the posterior moved ``[n, 1]``."""
    return np.linalg.norm(before - after, axis=1, keepdims=True)


FEATURES: dict[str, Callable[[Matrix, Matrix], Matrix]] = {
    "direct difference": direct_difference,
    "sorted difference": sorted_difference,
    "direct concatenation": direct_concatenation,
    "sorted concatenation": sorted_concatenation,
    "Euclidean distance": euclidean_distance,
}


def log_distance(before: Matrix, after: Matrix, labels: Labels) -> Matrix:
    """Measure how far its logarithms moved, on a logarithmic scale ``[n, 1]``."""
    moved = euclidean_distance(logarithms(before), logarithms(after))
    return np.log(np.maximum(moved, _FLOOR))


def fall(before: Matrix, after: Matrix, labels: Labels) -> Matrix:
    """Measure how far the log odds of the true class fell ``[n, 1]``."""
    return (log_odds(before, labels) - log_odds(after, labels))[:, None]


def fall_and_distance(before: Matrix, after: Matrix, labels: Labels) -> Matrix:
    """Join the log odds of the true class before, their fall and the log distance ``[n, 3]``."""
    parts = fall(before, after, labels), log_distance(before, after, labels)
    return np.hstack([log_odds(before, labels)[:, None], *parts])


INFORMED: dict[str, Callable[[Matrix, Matrix, Labels], Matrix]] = {
    "fall of its class": fall,
    "fall and log distance": fall_and_distance,
    "log distance": log_distance,
}


def logarithms(posteriors: NDArray[np.floating]) -> Matrix:
    """Return the logarithm of every entry; bounded, so that rounded answers stay finite."""
    return np.log(np.maximum(np.asarray(posteriors, dtype=np.float64), _FLOOR))


def log_odds(posteriors: NDArray[np.floating], labels: Labels) -> Floats:
    """Return the log odds of the true class ``[n]``, bounded likewise."""
    rest = np.array(posteriors, dtype=np.float64)
    at = np.arange(len(rest)), labels
    true = rest[at]
    rest[at] = 0.0
    return logarithms(true) - logarithms(rest.sum(axis=1))


def calibrated(posteriors: NDArray[np.floating], labels: Labels) -> Floats:
    """Standardise the log odds of the true class among those of the same class ``[n]``.

    How sure one run is of everybody says nothing about anybody, and differs from run to run: a
    pool learns anew how much to make of each member and of each class.
    """
    odds = log_odds(posteriors, labels)
    means = np.bincount(labels, weights=odds) / np.maximum(np.bincount(labels), 1)
    centred = odds - means[labels]
    deviation = float(centred.std())
    return centred / deviation if deviation > 0 else centred


def classical(before: Matrix) -> Matrix:
    """Sort one posterior, as membership inference without unlearning is shown it ``[n, c]``."""
    return -np.sort(-before, axis=1)


def _sorted(before: Matrix, after: Matrix) -> tuple[Matrix, Matrix]:
    order = np.argsort(-before, axis=1, kind="stable")
    return np.take_along_axis(before, order, axis=1), np.take_along_axis(after, order, axis=1)
