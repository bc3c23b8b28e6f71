"""The aggregation stage: from the posteriors of all shard models to one."""

from collections.abc import Callable
from dataclasses import replace

from grapheraser.aggregation.base import (
    Aggregator,
    Change,
    Ensemble,
    Explanation,
    FittedAggregator,
    Say,
)
from grapheraser.aggregation.expert import Expert
from grapheraser.aggregation.learned import LearnedAggregator
from grapheraser.aggregation.routed import RoutedAggregator
from grapheraser.aggregation.routed_learned import RoutedLearnedAggregator
from grapheraser.aggregation.sample import Sample, limits
from grapheraser.aggregation.simple import MajorityAggregator, MeanAggregator
from grapheraser.aggregation.with_expert import WithExpert
from grapheraser.errors import ParameterError
from grapheraser.registry import Registry

__all__ = [
    "AGGREGATORS",
    "Aggregator",
    "Change",
    "Ensemble",
    "Expert",
    "Explanation",
    "FittedAggregator",
    "LearnedAggregator",
    "MajorityAggregator",
    "MeanAggregator",
    "RoutedAggregator",
    "RoutedLearnedAggregator",
    "Sample",
    "Say",
    "WithExpert",
    "resolve_aggregator",
]

AGGREGATORS: Registry[Callable[..., Aggregator]] = Registry("aggregation")
AGGREGATORS.add("mean", MeanAggregator)
AGGREGATORS.add("majority", MajorityAggregator)
AGGREGATORS.add("learned", LearnedAggregator)
AGGREGATORS.add("routed", RoutedAggregator)
AGGREGATORS.add("routed-learned", RoutedLearnedAggregator)


def resolve_aggregator(
    aggregation: str | Aggregator,
    *,
    sample: Sample | None = None,
    global_expert: bool = False,
) -> Aggregator:
    """An aggregator from its name or itself.

    Args:
        aggregation: a registered name or an `Aggregator`.
        sample: which training nodes it learns from, where it learns; None leaves that to it.
        global_expert: add the closed-form model of the whole training graph as one more member.
    """
    if isinstance(aggregation, str):
        resolved = AGGREGATORS.get(aggregation)()
        if isinstance(resolved, RoutedAggregator) and global_expert:
            # The expert knows every node, which is what the floor is for; see docs/aggregation.md.
            resolved = replace(resolved, floor=0.0)
    elif isinstance(aggregation, Aggregator):
        resolved = aggregation
    else:
        raise ParameterError.of(
            "aggregation", "GraphEraser", "a name or an Aggregator", aggregation
        )
    if global_expert not in (True, False):
        raise ParameterError.of("global_expert", "GraphEraser", "a bool", global_expert)
    if sample is not None:
        limits(sample)
        if isinstance(resolved, LearnedAggregator | RoutedLearnedAggregator):
            resolved = replace(resolved, sample=sample)
    return WithExpert(resolved) if global_expert else resolved
