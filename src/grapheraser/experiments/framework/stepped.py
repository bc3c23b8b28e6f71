"""LBAggr by the paper's gradient steps, with another rate or number of steps than the preset's."""

from __future__ import annotations

from dataclasses import dataclass

from grapheraser.aggregation.base import Ensemble
from grapheraser.aggregation.learned import FittedLearned, LearnedAggregator
from grapheraser.aggregation.sample.posteriors import SampledPosteriors
from grapheraser.aggregation.solvers.simplex import paper_weights


@dataclass(frozen=True)
class SteppedAggregator(LearnedAggregator):
    """Attributes: ``rate`` and ``steps`` of the gradient steps."""

    rate: float = 0.1
    steps: int = 100
    name: str = "stepped"

    def _learn(self, ensemble: Ensemble, sampled: SampledPosteriors) -> FittedLearned:
        scores = paper_weights(
            sampled.true_class(ensemble), penalty=self.penalty, steps=self.steps, rate=self.rate
        )
        return FittedLearned(sampled, scores)
