"""Metrics of recommendations: recall, NDCG, hit rate, reciprocal rank and coverage at k."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RecommendationScore:
    """Result of `Recommender.score`: means over users with something to be found.

    Attributes:
        recall: the share of a user's items that are among the k recommended.
        ndcg: discounted cumulative gain, as a share of the best that k items can have.
        hit_rate: the share of users with at least one of their items among the k.
        mrr: mean of 1 / the rank of the first of them; 0 where there is none.
        coverage: the share of all items that are recommended to anybody.
        k: how many items are recommended.
        users: how many there are.
    """

    recall: float
    ndcg: float
    hit_rate: float
    mrr: float
    coverage: float
    k: int
    users: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def recommendation_score(
    found: NDArray[np.int64], wanted: list[NDArray[np.int64]], num_items: int
) -> RecommendationScore:
    """Compare recommendations ``[n, k]``, best first, -1 for none, with the items of each user."""
    k = found.shape[1]
    gains = 1.0 / np.log2(np.arange(2, k + 2))
    hits = np.stack([np.isin(row, own) for row, own in zip(found, wanted, strict=True)])
    counts = np.array([len(own) for own in wanted])
    first = np.where(hits.any(axis=1), hits.argmax(axis=1), k)
    best = np.cumsum(gains)[np.minimum(counts, k) - 1]
    return RecommendationScore(
        recall=float((hits.sum(axis=1) / counts).mean()),
        ndcg=float(((hits * gains).sum(axis=1) / best).mean()),
        hit_rate=float(hits.any(axis=1).mean()),
        mrr=float(np.where(first < k, 1.0 / (first + 1), 0.0).mean()),
        coverage=len(np.unique(found[found >= 0])) / num_items,
        k=k,
        users=len(wanted),
    )
