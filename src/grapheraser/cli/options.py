"""Options that several verbs share: where the split comes from, and who is in shards."""

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
