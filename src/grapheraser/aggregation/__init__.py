"""The aggregation stage: from the posteriors of all shard models to one."""

from collections.abc import Callable
from dataclasses import replace

from grapheraser.aggregation.base import (
    Aggregator,
    BoundAggregator,
    Change,
    Ensemble,
    Explanation,
    FittedAggregator,
    Say,
)
from grapheraser.aggregation.expert.ridge import Expert
from grapheraser.aggregation.learned import LearnedAggregator
from grapheraser.aggregation.mean_majority import MajorityAggregator, MeanAggregator
from grapheraser.aggregation.routed import RoutedAggregator
from grapheraser.aggregation.routed_learned import RoutedLearnedAggregator
from grapheraser.aggregation.sample.membership import Sample, limits
from grapheraser.aggregation.with_expert import WithExpert
from grapheraser.checks import one_of
from grapheraser.errors import ParameterError
from grapheraser.registry import Registry

__all__ = [
    "AGGREGATORS",
    "WIDE",
    "Aggregator",
    "BoundAggregator",
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
    "named_expert",
    "resolve_aggregator",
    "wants_expert",
]

AGGREGATORS: Registry[Callable[..., Aggregator]] = Registry("aggregation")
AGGREGATORS.add("mean", MeanAggregator)
AGGREGATORS.add("majority", MajorityAggregator)
AGGREGATORS.add("learned", LearnedAggregator)
AGGREGATORS.add("routed", RoutedAggregator)
AGGREGATORS.add("routed-learned", RoutedLearnedAggregator)

WIDE = "wide"
_EXPERTS: dict[bool | str, Expert | None] = {False: None, True: Expert(), WIDE: Expert.wide()}
_LEARNING = (LearnedAggregator, RoutedLearnedAggregator)


def resolve_aggregator(
    aggregation: str | Aggregator,
    *,
    sample: Sample | None = None,
    global_expert: bool | str = False,
) -> Aggregator:
    """An aggregator from its name or itself.

    Args:
        aggregation: a registered name or an `Aggregator`.
        sample: which training nodes an aggregator given by name learns from, where it learns.
        global_expert: add the closed-form model of the whole training graph as one more member;
            ``"wide"`` for one with more columns.
    """
    if isinstance(aggregation, str):
        resolved = AGGREGATORS.get(aggregation)()
        if isinstance(resolved, RoutedAggregator) and global_expert:
            # The expert knows every node, which is what the floor is for; see docs/aggregation.md.
            resolved = replace(resolved, floor=0.0)
    elif isinstance(aggregation, Aggregator) and not isinstance(aggregation, type):
        resolved = aggregation
    else:
        raise ParameterError.of(
            "aggregation", "GraphEraser", "a name or an Aggregator", aggregation
        )
    if sample is not None:
        limits(sample)
        if isinstance(aggregation, str) and isinstance(resolved, _LEARNING):
            resolved = replace(resolved, sample=sample)
    expert = named_expert(global_expert)
    if isinstance(resolved, WithExpert) or expert is None:
        return resolved
    return WithExpert(resolved, expert)


def named_expert(global_expert: bool | str) -> Expert | None:
    """The global expert that is meant by True or ``"wide"``."""
    return _EXPERTS[one_of("global_expert", "GraphEraser", global_expert, _EXPERTS)]


def wants_expert(aggregation: str | Aggregator, num_shards: int) -> bool:
    """Whether the expert joins when the user has not said: where several shards are routed.

    Not with the paper's own aggregations, and not where one shard stands for training from scratch.
    An aggregator handed in as an object is taken as it is.
    """
    if not isinstance(aggregation, str) or num_shards == 1:
        return False
    return bool(getattr(AGGREGATORS.get(aggregation)(), "takes_expert", False))
