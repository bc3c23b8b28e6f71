"""The global expert beside any other aggregation, and alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import (
    Aggregator,
    Change,
    Ensemble,
    Explanation,
    FittedAggregator,
)
from grapheraser.aggregation.expert.ridge import Expert, FittedExpert
from grapheraser.aggregation.explain import explanation, say
from grapheraser.checks import real

_PREFIX = "expert."


@dataclass(frozen=True)
class WithExpert:
    """Another aggregation of the shards, and the global expert with a weight of its own.

    Attributes:
        inner: combines the shards; None leaves the expert alone.
        expert: the global expert.
        weight: the expert's share of the decision, between 0 and 1.
    """

    inner: Aggregator | None
    expert: Expert = field(default_factory=Expert)
    weight: float = 0.6

    def __post_init__(self) -> None:
        real("weight", "WithExpert", self.weight, 0, 1)

    @property
    def name(self) -> str:
        return "expert" if self.inner is None else self.inner.name

    def fit(self, ensemble: Ensemble) -> FittedWithExpert:
        """See `Aggregator`."""
        inner = None if self.inner is None else self.inner.fit(ensemble)
        return FittedWithExpert(self, inner, self.expert.fit(ensemble))

    def refit(
        self, fitted: FittedAggregator, ensemble: Ensemble, change: Change
    ) -> FittedWithExpert:
        """See `Aggregator`."""
        assert isinstance(fitted, FittedWithExpert)
        inner = None
        if self.inner is not None and fitted.inner is not None:
            inner = self.inner.refit(fitted.inner, ensemble, change)
        return FittedWithExpert(self, inner, self.expert.refit(fitted.expert, ensemble, change))

    def restore(self, tensors: Mapping[str, NDArray[np.generic]]) -> FittedWithExpert:
        """See `Aggregator`."""
        mine = {k.removeprefix(_PREFIX): v for k, v in tensors.items() if k.startswith(_PREFIX)}
        others = {k: v for k, v in tensors.items() if not k.startswith(_PREFIX)}
        inner = None if self.inner is None else self.inner.restore(others)
        return FittedWithExpert(self, inner, self.expert.restore(mine))


@dataclass(frozen=True, eq=False)
class FittedWithExpert:
    """The shards' aggregation and the expert, fitted."""

    rule: WithExpert
    inner: FittedAggregator | None
    expert: FittedExpert

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        mine = {_PREFIX + name: tensor for name, tensor in self.expert.tensors.items()}
        return {**(self.inner.tensors if self.inner else {}), **mine}

    @property
    def notes(self) -> tuple[str, ...]:
        return self.inner.notes if self.inner else ()

    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """See `FittedAggregator`."""
        expert = self.expert.predict_proba(ensemble, positions)
        if self.inner is None:
            return expert
        shards = self.inner.predict_proba(ensemble, positions)
        weight = np.float32(self.rule.weight)
        return (1 - weight) * shards + weight * expert

    def explain(self, ensemble: Ensemble, position: int) -> Explanation:
        """See `FittedAggregator`."""
        positions = np.array([position])
        label = int(self.predict_proba(ensemble, positions)[0].argmax())
        expert = self.expert.predict_proba(ensemble, positions)[0]
        weight = 1.0 if self.inner is None else self.rule.weight
        says = [say("global expert", weight, expert)]
        why = "the closed-form model of the whole training graph"
        if self.inner is not None:
            shards = self.inner.explain(ensemble, position)
            why = f"{shards.why}; {why} has a weight of {weight:g}"
            says += [replace(s, weight=(1 - weight) * s.weight) for s in shards.members]
        return explanation(ensemble, position, says, label=label, why=why)
