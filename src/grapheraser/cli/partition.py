"""grapheraser partition: cut a graph, and look at the cut."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.output import JsonOption, print_json

NAME = "partition"


def run(
    dataset: Annotated[str, typer.Argument(help="Name of a data set, or path of an npz file.")],
    method: Annotated[str, typer.Option(help="Partition method.")] = "random",
    shards: Annotated[int, typer.Option(help="Number of shards.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the cut.")] = 0,
    split_seed: Annotated[int, typer.Option(help="Seed of the train/test split.")] = 0,
    gamma: Annotated[float, typer.Option(help="Slack of the shard capacity, 0 to 1.")] = 0.0,
    delta: Annotated[int | None, typer.Option(help="Shard capacity itself.")] = None,
    draw: Annotated[Path | None, typer.Option(help="Picture to write, .png or .svg.")] = None,
    json: JsonOption = False,
) -> None:
    """Cut the training graph of a data set into shards and report on them."""
    from grapheraser.datasets import load_dataset
    from grapheraser.partition import partition_graph

    del draw
    graph = load_dataset(dataset, split_seed=split_seed)
    part = partition_graph(graph, method, num_shards=shards, seed=seed, gamma=gamma, delta=delta)
    if json:
        print_json({"dataset": graph.name, "sizes": part.sizes.tolist()})
        return
    print(part)
