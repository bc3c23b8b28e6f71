"""Arguments that several verbs share: the data set, its split, and who is in shards."""

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
