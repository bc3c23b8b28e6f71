"""Answers about links, from one snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.eraser.snapshot import Snapshot
from grapheraser.errors import ParameterError
from grapheraser.graph.ids import as_ids
from grapheraser.links.metrics import LinkScore, link_score
from grapheraser.links.model import FittedLinks, probabilities
from grapheraser.links.pair_features import Pairs


def fitted_links(now: Snapshot) -> FittedLinks:
    """Return the learned weights."""
    fitted = now.state.aggregator
    assert isinstance(fitted, FittedLinks)
    return fitted


def log_odds(now: Snapshot, pairs: Pairs) -> NDArray[np.float64]:
    """Return the logarithm of the odds of an edge, for checked pairs."""
    return fitted_links(now).log_odds(now.state.ensemble, pairs)


def predict_links(now: Snapshot, pairs: ArrayLike) -> NDArray[np.float32]:
    """Return the probability of an edge between each pair of ids."""
    return probabilities(log_odds(now, checked_pairs(now, pairs, "predict_proba")))


def score_links(now: Snapshot, pairs: ArrayLike, labels: ArrayLike) -> LinkScore:
    """Measure how well the scores of pairs tell edges (label 1) from others (label 0)."""
    checked, truth = checked_pairs(now, pairs, "score"), np.asarray(labels)
    if truth.shape != (len(checked),) or not np.isin(truth, (0, 1)).all():
        raise ParameterError(
            f"'labels' of LinkEraser.score must be 0 or 1 for each of {len(checked)} pairs. "
            f"Got shape {list(truth.shape)}, values {np.unique(truth)[:5].tolist()}."
        )
    return link_score(log_odds(now, checked), truth.astype(bool))


def checked_pairs(now: Snapshot, pairs: Any, owner: str) -> Pairs:
    """Return pairs of ids ``[m, 2]`` that are in the graph; repeats are allowed."""
    graph = now.state.graph
    plain = hasattr(pairs, "__array__") or isinstance(pairs, list)
    ids = np.asarray(pairs if plain else list(pairs))
    if ids.size == 0:
        ids = ids.reshape(0, 2).astype(np.int64)
    if ids.ndim != 2 or ids.shape[1] != 2:
        raise ParameterError(
            f"'pairs' of LinkEraser.{owner} must have the shape [m, 2]. Got {list(ids.shape)}.",
            hint="one pair is a row; pass an edge_index [2, m] as edge_index.T.",
        )
    graph.places(ids.ravel())
    ids = as_ids(ids.ravel()).reshape(-1, 2)
    same = ids[:, 0] == ids[:, 1]
    if same.any():
        raise ParameterError(
            f"a pair of LinkEraser.{owner} must be two nodes. "
            f"Got {ids[same][0].tolist()} ({int(same.sum())} of {len(ids)} pairs are one node "
            "with itself)."
        )
    if fitted_links(now).rule.sides and len(ids):
        side = graph.labels(ids.ravel()).reshape(-1, 2)
        same = side[:, 0] == side[:, 1]
        if same.any():
            raise ParameterError(
                f"a pair of LinkEraser.{owner} must be of both sides of the bipartite graph. "
                f"Got {ids[same][0].tolist()} ({int(same.sum())} of {len(ids)} pairs are of one "
                "side)."
            )
    return ids
