"""The aggregation stage: from the posteriors of all members to one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from grapheraser.aggregation.base import (
    Aggregator,
    BoundAggregator,
    Change,
    ChecksTensors,
    Ensemble,
    Explanation,
    FittedAggregator,
    Say,
)
from grapheraser.aggregation.learned import LearnedAggregator
from grapheraser.aggregation.mean_majority import MajorityAggregator, MeanAggregator
from grapheraser.aggregation.members import MEMBERS, named
from grapheraser.aggregation.pooled import PooledAggregator
from grapheraser.aggregation.routed import SHARDS_ASKED, RoutedAggregator
from grapheraser.aggregation.sample.membership import Sample, limits
from grapheraser.checks import one_of, whole
from grapheraser.errors import ParameterError
from grapheraser.registry import Registry

__all__ = [
    "AGGREGATORS",
    "MEMBERS",
    "SHARDS_ASKED",
    "Aggregator",
    "BoundAggregator",
    "Change",
    "ChecksTensors",
    "Ensemble",
    "Explanation",
    "FittedAggregator",
    "LearnedAggregator",
    "MajorityAggregator",
    "MeanAggregator",
    "PooledAggregator",
    "RoutedAggregator",
    "Sample",
    "Say",
    "named",
    "resolve_aggregator",
]

AGGREGATORS: Registry[Callable[..., Aggregator]] = Registry("aggregation")
AGGREGATORS.add("mean", MeanAggregator)
AGGREGATORS.add("majority", MajorityAggregator)
AGGREGATORS.add("learned", LearnedAggregator)
AGGREGATORS.add("routed", RoutedAggregator)
# Aggregations whose shards may join closed-form members in a pool.
POOLED = ("routed",)


def resolve_aggregator(
    aggregation: str | Aggregator,
    *,
    num_shards: int,
    sample: Sample = "auto",
    global_expert: bool | None = None,
    members: Sequence[str] | None = None,
    shards_asked: int = SHARDS_ASKED,
) -> Aggregator:
    """The aggregator that arguments of `GraphEraser` stand for.

    Args:
        aggregation: a registered name or an `Aggregator`; an object is taken as it is.
        num_shards: a single shard is training from scratch, and stays alone unless members are
            asked for.
        sample: which training nodes an aggregator given by name learns from, where it learns.
        global_expert: whether the closed-form members join; None: where several shards are routed.
        members: which of them; None: all.
        shards_asked: how many shards an aggregation that routes asks about a node.
    """
    limits(sample)
    shards_asked = whole("shards_asked", "GraphEraser", shards_asked, 1)
    one_of("global_expert", "GraphEraser", global_expert, (None, True, False))
    chosen = named(members)
    if not isinstance(aggregation, str):
        if not isinstance(aggregation, Aggregator) or isinstance(aggregation, type):
            constraint = "a name or an Aggregator"
            raise ParameterError.of("aggregation", "GraphEraser", constraint, aggregation)
        if global_expert or members or shards_asked != SHARDS_ASKED:
            raise ParameterError(
                "an Aggregator is taken as it is, so 'global_expert', 'members' and 'shards_asked' "
                "of GraphEraser must be left out.",
                hint="name the aggregation: aggregation='routed'.",
            )
        return aggregation
    resolved = AGGREGATORS.get(aggregation)()
    asked = bool(global_expert or members)
    if asked and global_expert is False:
        raise ParameterError("'members' of GraphEraser need 'global_expert', which is False.")
    if asked and aggregation not in POOLED:
        raise ParameterError(
            f"closed-form members join aggregation {POOLED[0]!r} only. 'aggregation' of "
            f"GraphEraser is {aggregation!r}.",
            hint="use aggregation='routed', or leave out global_expert and members.",
        )
    if shards_asked != SHARDS_ASKED and aggregation not in POOLED:
        raise ParameterError(
            f"'shards_asked' of GraphEraser is for aggregation {POOLED[0]!r} only. 'aggregation' "
            f"is {aggregation!r}, which asks all shards.",
            hint="use aggregation='routed', or leave out shards_asked.",
        )
    joins = asked or (global_expert is None and num_shards > 1 and aggregation in POOLED)
    if joins and chosen:
        return PooledAggregator(chosen, sample=sample, shards_asked=shards_asked)
    if isinstance(resolved, RoutedAggregator):
        return replace(resolved, shards_asked=shards_asked)
    if isinstance(resolved, LearnedAggregator):
        return replace(resolved, sample=sample)
    return resolved
