"""Options that several verbs share: the split, who is in shards, and where these are trained."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

SplitOption: TypeAlias = Annotated[
    str,
    typer.Option(
        help="random (80/20); public, the one that comes with the data; or auto: a file's own, "
        "else random."
    ),
]
SplitSeedOption: TypeAlias = Annotated[int, typer.Option(help="Seed of the random split.")]
ContextOption: TypeAlias = Annotated[
    str, typer.Option(help="Nodes in shards beside training nodes: none, unlabelled or all.")
]
ExecutorOption: TypeAlias = Annotated[
    str, typer.Option(help="Where shards are trained: local, process or ray.")
]
