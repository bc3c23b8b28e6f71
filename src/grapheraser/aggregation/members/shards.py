"""Shards: what the routed shard models say together, as a member of the pool.

A sampled node was trained on in one of the shards, which therefore knows its label. So it is judged
by the others alone, on a thinned neighbourhood (see `sample.answers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change, Ensemble
from grapheraser.aggregation.form import SHARE, Form, Tensors, check_equal, check_forms
from grapheraser.aggregation.members.base import Evidence, FittedMember, Ids, Positions
from grapheraser.aggregation.routed import RoutedAggregator, mixed
from grapheraser.aggregation.sample.answers import SampledAnswers, collect, refresh
from grapheraser.errors import CorruptRunError
from grapheraser.graph.labels import ONE
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, logarithms

_LEAST = 1e-6


@dataclass(frozen=True)
class RoutedShards:
    """The shards, weighted by where a node's neighbours live.

    Attributes:
        routing: how shards are weighted.
    """

    routing: RoutedAggregator = field(default_factory=lambda: RoutedAggregator(floor=0.0))

    def fit(self, ensemble: Ensemble, sample: Ids) -> FittedShards:
        """See `Member`."""
        return FittedShards(self.routing, collect(ensemble, sample, self.routing.shards_asked))

    def refit(
        self, fitted: FittedMember, ensemble: Ensemble, change: Change, sample: Ids
    ) -> FittedShards:
        """See `Member`."""
        assert isinstance(fitted, FittedShards)
        most = self.routing.shards_asked
        return FittedShards(self.routing, refresh(fitted.sampled, ensemble, change, sample, most))

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble, sample: Ids) -> None:
        """See `Member`."""
        asked = (len(sample), self.routing.shards_asked)
        forms = {
            "nodes": Form(np.int64, sample.shape),
            "asked": Form(np.int32, asked),
            "weights": Form(np.float64, asked, 0, SHARE),
            "posteriors": Form(
                np.float32,
                (*asked, ensemble.graph.num_classes),
                *((0, SHARE) if ensemble.graph.label_kind.is_classes else ()),
            ),
        }
        check_forms(tensors, forms, "what the shards say about sampled nodes")
        check_equal(tensors["nodes"], sample, "the nodes that shards were asked about")
        if not np.isin(tensors["asked"], (-1, *ensemble.shard_ids)).all():
            raise CorruptRunError("sampled nodes ask shards that there are not.")

    def restore(self, tensors: Tensors) -> FittedShards:
        """See `Member`."""
        return FittedShards(self.routing, SampledAnswers.restore(tensors))


@dataclass(frozen=True, eq=False)
class FittedShards:
    """Answers of the shards about the sampled nodes.

    Attributes:
        routing: how shards are weighted.
        sampled: what the shards that each sampled node asks say about it.
    """

    routing: RoutedAggregator
    sampled: SampledAnswers

    @property
    def names(self) -> tuple[str, ...]:
        return ("shards",)

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        return self.sampled.tensors

    def evidence(self, ensemble: Ensemble, positions: Positions) -> Evidence:
        """See `FittedMember`."""
        if not ensemble.graph.label_kind.is_classes:
            found, outputs = self.routing.answers(ensemble, positions)
            return _framed(ensemble, mixed(found.weights, outputs))
        posteriors = self.routing.predict_proba(ensemble, positions).astype(np.float64)
        evidence: Evidence = logarithms(np.maximum(posteriors, _LEAST))
        return evidence[:, None]

    def held_out(self, ensemble: Ensemble, sample: Ids) -> Evidence:
        """See `FittedMember`: without the shard that a node was trained in."""
        del sample
        if not ensemble.graph.label_kind.is_classes:
            return _framed(ensemble, self.sampled.mixed())
        evidence: Evidence = logarithms(np.maximum(self.sampled.mixed(), _LEAST))
        return evidence[:, None]


def _framed(ensemble: Ensemble, outputs: NDArray[np.float64]) -> Evidence:
    """Return the mean outputs of shards in the graph's frame: numbers lie in it already."""
    graph = ensemble.graph
    if graph.label_kind.is_numbers:
        return outputs[:, None]
    frame, shares = graph.label_frame, _shares(outputs)
    return ((shares * ONE - frame.centre) / frame.spread)[:, None]


@compiled
def _shares(outputs):  # type: ignore[no-untyped-def]
    """Probabilities from log-odds."""
    out = np.empty(outputs.shape)
    for r in range(outputs.shape[0]):
        for k in range(outputs.shape[1]):
            out[r, k] = 1.0 / (1.0 + exponential(-outputs[r, k]))
    return out
