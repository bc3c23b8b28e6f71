"""Arguments and options that several verbs share, and the names that the shell completes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer


def completing(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Make a completion with those of the names that begin as the word does."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _at(room: str, name: str) -> Any:
    """Return what a room of the package has under a name, imported when it is asked for."""
    return getattr(import_module(f"grapheraser.{room}"), name)


complete_datasets = completing(lambda: [info.name for info in _at("datasets", "dataset_info")()])
complete_models = completing(
    lambda: (
        *_at("models", "PRESETS"),
        _at("models", "RELATIONAL"),
        *_at("models.spec", "CLOSED_FORM"),
    )
)
complete_partitions = completing(lambda: _at("partition", "PARTITIONERS"))
complete_aggregations = completing(lambda: _at("aggregation", "AGGREGATORS"))

RunArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
DatasetArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="Name of a data set, or path of an npz file.", autocompletion=complete_datasets
    ),
]
JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
]
QuietOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print results, warnings and errors: no notes, no progress."
    ),
]
TrustOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--trust",
        metavar="MODULE:NAME",
        help="Import this code of yours, which the run was fitted with; may be repeated.",
    ),
]
ExecutorOption: TypeAlias = Annotated[
    str, typer.Option(help="Where shards are trained: local, process or ray.")
]
SplitOption: TypeAlias = Annotated[
    str,
    typer.Option(
        help="The split: random (80/20), public (the one that comes with the data) or auto (a "
        "file's own, else random)."
    ),
]
SplitSeedOption: TypeAlias = Annotated[int, typer.Option(help="Seed of the random split.")]
ContextOption: TypeAlias = Annotated[
    str, typer.Option(help="Nodes in shards beside training nodes: none, unlabelled or all.")
]
ShardsOption: TypeAlias = Annotated[
    int | None, typer.Option(help="Number of shards; default: the paper's k, else 20.")
]
AggregationOption: TypeAlias = Annotated[
    str, typer.Option(help="Aggregation of the shards.", autocompletion=complete_aggregations)
]
GammaOption: TypeAlias = Annotated[
    float, typer.Option(help="Slack of the shard capacity, from 0 to 1.")
]
DeltaOption: TypeAlias = Annotated[
    int | None, typer.Option(help="Shard capacity, instead of gamma.")
]
SeedOption: TypeAlias = Annotated[int, typer.Option(help="Seed of all random numbers.")]
