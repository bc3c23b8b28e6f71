"""What the shell completes: names of data sets, models, partitions and the like, as registered."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Complete = Callable[[str], list[str]]


def _of(names: Callable[[], Iterable[str]]) -> Complete:
    """A completion with those of the names that begin as the word does."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _datasets() -> Iterable[str]:
    from grapheraser.datasets import dataset_info

    return [info.name for info in dataset_info()]


def _models() -> Iterable[str]:
    from grapheraser.models import PRESETS
    from grapheraser.models.spec import CLOSED_FORM

    return (*PRESETS, *CLOSED_FORM)


def _partitions() -> Iterable[str]:
    from grapheraser.partition import PARTITIONERS

    return PARTITIONERS


def _aggregations() -> Iterable[str]:
    from grapheraser.aggregation import AGGREGATORS

    return AGGREGATORS


def _experiments() -> Iterable[str]:
    from grapheraser.experiments.catalogue import EXPERIMENTS

    return ("list", "all", *EXPERIMENTS)


def _benchmarks() -> Iterable[str]:
    from grapheraser.cli.bench import BENCHMARKS

    return BENCHMARKS


datasets = _of(_datasets)
models = _of(_models)
partitions = _of(_partitions)
aggregations = _of(_aggregations)
experiments = _of(_experiments)
benchmarks = _of(_benchmarks)
