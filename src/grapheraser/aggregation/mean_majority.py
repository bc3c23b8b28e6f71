"""The aggregations with nothing to learn: mean and majority."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import (
    Change,
    Ensemble,
    Explanation,
    FittedAggregator,
    explain_shards,
)
from grapheraser.aggregation.form import Tensors, check_forms


@dataclass(frozen=True)
class Stateless(ABC):
    """Fitted from the start."""

    def fit(self, ensemble: Ensemble) -> Self:
        """See `Aggregator`."""
        del ensemble
        return self

    def refit(self, fitted: FittedAggregator, ensemble: Ensemble, change: Change) -> Self:
        """See `Aggregator`."""
        del fitted, ensemble, change
        return self

    def check_tensors(self, tensors: Tensors, ensemble: Ensemble) -> None:
        """See `ChecksTensors`."""
        del ensemble
        check_forms(tensors, {}, "an aggregation that learns nothing")

    def restore(self, tensors: Tensors) -> Self:
        """See `Aggregator`."""
        del tensors
        return self

    @property
    def tensors(self) -> Mapping[str, NDArray[np.generic]]:
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    @abstractmethod
    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """See `FittedAggregator`."""

    def explain(self, ensemble: Ensemble, position: int) -> Explanation:
        """See `FittedAggregator`."""
        label = int(self.predict_proba(ensemble, np.array([position]))[0].argmax())
        weights = np.ones(len(ensemble.shards))
        why = "every shard has the same weight"
        return explain_shards(ensemble, position, weights, label=label, why=why)


@dataclass(frozen=True)
class MeanAggregator(Stateless):
    """The average of the shard models' posteriors."""

    name: str = "mean"

    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """See `FittedAggregator`."""
        total = ensemble.posteriors(positions).astype(np.float64).sum(axis=0)
        return (total / total.sum(axis=1, keepdims=True)).astype(np.float32)


@dataclass(frozen=True)
class MajorityAggregator(Stateless):
    """One vote per shard model; the share of votes is the posterior, ties go to the lower class."""

    name: str = "majority"

    def predict_proba(
        self, ensemble: Ensemble, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """See `FittedAggregator`."""
        votes = ensemble.posteriors(positions).argmax(axis=2)
        classes = np.arange(ensemble.graph.num_classes)
        counts = (votes[:, :, None] == classes).sum(axis=0)
        return (counts / len(votes)).astype(np.float32)
