"""Saying less: what a service may do to a posterior before it hands it out.

All of them are functions of one posterior, so they change nothing about the model, what it
forgets, or the proof. What each costs and buys is measured by the audit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser import checks
from grapheraser.graph import Graph
from grapheraser.graph.labels import require_classes
from grapheraser.reports.wording import plural


def temperature(posteriors: NDArray[np.floating], value: float) -> NDArray[np.float32]:
    """Flatten (above 1) or sharpen (below 1): softmax of the log-posteriors over ``value``."""
    logs = np.log(np.maximum(np.asarray(posteriors, dtype=np.float64), 1e-30)) / value
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)


def top_k(posteriors: NDArray[np.floating], k: int) -> NDArray[np.float32]:
    """Keep the k largest entries, as they are; the rest becomes 0. Ties go to the lower class."""
    kept = np.zeros(posteriors.shape, dtype=np.float32)
    best = np.argsort(-posteriors, axis=1, kind="stable")[:, :k]
    np.put_along_axis(kept, best, np.take_along_axis(posteriors, best, axis=1), axis=1)
    return kept


def top_labels(posteriors: NDArray[np.floating], k: int) -> NDArray[np.float32]:
    """Only which k classes are likeliest, in their order: k, k-1, ... over their sum, else 0."""
    ranks = np.zeros(posteriors.shape, dtype=np.float32)
    best = np.argsort(-posteriors, axis=1, kind="stable")[:, :k]
    places = np.arange(best.shape[1], 0, -1, dtype=np.float32)
    np.put_along_axis(ranks, best, np.broadcast_to(places / places.sum(), best.shape), axis=1)
    return ranks


def rounded(posteriors: NDArray[np.floating], decimals: int) -> NDArray[np.float32]:
    """Round to that many decimals; a row need no longer sum to 1."""
    return np.round(np.asarray(posteriors, dtype=np.float64), decimals).astype(np.float32)


@dataclass(frozen=True)
class Mitigation:
    """Mitigations to apply, in this order; None leaves one out.

    Attributes:
        temperature: above 0.
        labels: hand out no probabilities, only the order of that many classes.
        top: hand out that many probabilities.
        decimals: of what is handed out, 15 at most.
    """

    temperature: float | None = None
    labels: int | None = None
    top: int | None = None
    decimals: int | None = None

    def __post_init__(self) -> None:
        if self.temperature is not None:
            checks.real("temperature", "Mitigation", self.temperature, above=0)
        for name, least, most in (("labels", 1, None), ("top", 1, None), ("decimals", 0, 15)):
            count = getattr(self, name)
            if count is not None:
                checks.whole(name, "Mitigation", count, least, most)

    def __call__(self, posteriors: NDArray[np.floating]) -> NDArray[np.float32]:
        """Apply it to posteriors ``[n, num_classes]``."""
        out = np.asarray(posteriors, dtype=np.float32)
        if self.temperature is not None:
            out = temperature(out, self.temperature)
        if self.labels is not None:
            out = top_labels(out, self.labels)
        if self.top is not None:
            out = top_k(out, self.top)
        return out if self.decimals is None else rounded(out, self.decimals)

    def __str__(self) -> str:
        said = []
        if self.temperature is not None:
            said.append(f"temperature {self.temperature:g}")
        if self.labels is not None:
            said.append(f"top {plural(self.labels, 'label')} only")
        if self.top is not None:
            said.append(f"top {plural(self.top, 'probability')}")
        if self.decimals is not None:
            said.append(f"rounded to {plural(self.decimals, 'decimal')}")
        return ", ".join(said) or "none"


class Predictor(Protocol):
    """Anything with scikit-learn's two ways of predicting, by node id."""

    def predict_proba(self, nodes: ArrayLike) -> NDArray[np.float32]:
        """Posteriors ``[len(nodes), num_classes]``."""


@dataclass(frozen=True)
class Guarded:
    """A fitted eraser that hands out mitigated posteriors only.

    Attributes:
        predictor: a `GraphEraser`, or anything that predicts by node id.
        mitigation: what is done to each answer.
    """

    predictor: Predictor
    mitigation: Mitigation

    def predict_proba(self, nodes: ArrayLike) -> NDArray[np.float32]:
        """Mitigated posteriors ``[len(nodes), num_classes]``."""
        if isinstance(graph := getattr(self.predictor, "graph_", None), Graph):
            require_classes(graph, "a mitigation")
        return self.mitigation(self.predictor.predict_proba(nodes))

    def predict(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """The class of each node, as far as the mitigated posteriors tell; ties to the lower."""
        return self.predict_proba(nodes).argmax(axis=1)


CANDIDATES = (
    Mitigation(),
    Mitigation(decimals=2),
    Mitigation(decimals=1),
    Mitigation(top=3),
    Mitigation(labels=3),
    Mitigation(labels=1),
    Mitigation(temperature=2.0),
    Mitigation(temperature=0.1),
    Mitigation(temperature=2.0, decimals=2),
)
