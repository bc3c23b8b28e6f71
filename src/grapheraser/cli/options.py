"""Arguments that several verbs share: the data set, its split, who is in shards, and executors."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from grapheraser.cli import completion

SplitOption: TypeAlias = Annotated[
    str,
    typer.Option(
        help="random (80/20); public, the one that comes with the data; or auto: a file's own, "
        "else random."
    ),
]
SplitSeedOption: TypeAlias = Annotated[int, typer.Option(help="Seed of the random split.")]
DatasetArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="Name of a data set, or path of an npz file.", autocompletion=completion.datasets
    ),
]
ContextOption: TypeAlias = Annotated[
    str, typer.Option(help="Nodes in shards beside training nodes: none, unlabelled or all.")
]
ExecutorOption: TypeAlias = Annotated[
    str, typer.Option(help="Where shards are trained: local, process or ray.")
]
