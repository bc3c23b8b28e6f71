"""The aggregation stage: from the posteriors of all shard models to one."""

from collections.abc import Callable

from grapheraser.aggregation.base import Aggregator, Change, Ensemble, FittedAggregator
from grapheraser.aggregation.simple import MajorityAggregator, MeanAggregator
from grapheraser.errors import ParameterError
from grapheraser.registry import Registry

__all__ = [
    "AGGREGATORS",
    "Aggregator",
    "Change",
    "Ensemble",
    "FittedAggregator",
    "MajorityAggregator",
    "MeanAggregator",
    "resolve_aggregator",
]

AGGREGATORS: Registry[Callable[[], Aggregator]] = Registry("aggregation")
AGGREGATORS.add("mean", MeanAggregator)
AGGREGATORS.add("majority", MajorityAggregator)


def resolve_aggregator(aggregation: str | Aggregator) -> Aggregator:
    """An aggregator from its name or itself."""
    if isinstance(aggregation, str):
        return AGGREGATORS.get(aggregation)()
    if isinstance(aggregation, Aggregator):
        return aggregation
    raise ParameterError.of("aggregation", "GraphEraser", "a name or an Aggregator", aggregation)
