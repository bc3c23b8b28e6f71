"""From weights and posteriors of the members to an `Explanation`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble, Explanation, Say


def explain_shards(
    ensemble: Ensemble,
    position: int,
    weights: NDArray[np.float64],
    *,
    label: int,
    why: str,
) -> Explanation:
    """An explanation from one weight per shard ``[num_shards]``, in the ensemble's order."""
    heard = [shard for shard, w in zip(ensemble.shard_ids, weights, strict=True) if w > 0]
    posteriors = ensemble.posteriors(np.array([position]), heard)[:, 0]
    shares = weights[weights > 0] / weights.sum()
    says = [
        say(f"shard {shard}", share, posterior)
        for shard, share, posterior in zip(heard, shares, posteriors, strict=True)
    ]
    return explanation(ensemble, position, says, label=label, why=why)


def say(member: str, weight: float, posterior: NDArray[np.floating]) -> Say:
    """What a member with this posterior ``[num_classes]`` says."""
    label = int(posterior.argmax())
    return Say(member, float(weight), label, float(posterior[label]))


def explanation(
    ensemble: Ensemble, position: int, says: Sequence[Say], *, label: int, why: str
) -> Explanation:
    """The heaviest first; equals in the order given."""
    ordered = sorted(says, key=lambda item: -item.weight)
    graph = ensemble.graph
    (node,) = graph.names_of(graph.ids_at(np.array([position])))
    return Explanation(node, label, tuple(ordered), why)
