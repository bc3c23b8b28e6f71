"""Metrics of link prediction: AUC, Hits@K and mean reciprocal rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import GraphError

HITS = (10, 50, 100)


@dataclass(frozen=True)
class LinkScore:
    """Result of `LinkEraser.score`.

    Attributes:
        auc: how often an edge scores higher than another pair; ties count half.
        hits: by K, the share of edges that score higher than all but the K - 1 best other pairs;
            where there are fewer than K others, it is 1.
        mrr: mean over the edges of 1 / (1 + how many other pairs score higher); ties count half.
        edges, others: how many pairs of each kind were scored.
    """

    auc: float
    hits: dict[int, float]
    mrr: float
    edges: int
    others: int

    def to_dict(self) -> dict[str, Any]:
        hits = {str(k): share for k, share in self.hits.items()}
        return {**self.__dict__, "hits": hits}


def link_score(scores: NDArray[np.floating], labels: NDArray[np.bool_]) -> LinkScore:
    """Compare the scores of edges with those of other pairs."""
    edges, others = np.sort(scores[labels]), np.sort(scores[~labels])
    if len(edges) == 0 or len(others) == 0:
        raise GraphError(
            "a score needs pairs of both labels "
            f"(found {len(edges)} with label 1 and {len(others)} with label 0)."
        )
    above = len(others) - np.searchsorted(others, edges, side="right")
    tied = len(others) - np.searchsorted(others, edges, side="left") - above
    higher = above + 0.5 * tied
    hits = {
        k: 1.0 if k > len(others) else float((edges > others[len(others) - k]).mean()) for k in HITS
    }
    return LinkScore(
        auc=float(1.0 - higher.mean() / len(others)),
        hits=hits,
        mrr=float((1.0 / (1.0 + higher)).mean()),
        edges=len(edges),
        others=len(others),
    )
