"""grapheraser recommend: measure how to fit a graph, and give reasons."""

from __future__ import annotations

from typing import Annotated

import typer

from grapheraser.cli.output import JsonOption, print_json

NAME = "recommend"


def run(
    dataset: Annotated[str, typer.Argument(help="Name of a data set, or path of an npz file.")],
    model: Annotated[str, typer.Option(help="gcn, sage, gat, gin, mlp, or NAME:paper.")] = "gcn",
    shards: Annotated[int | None, typer.Option(help="Number of shards, if it is fixed.")] = None,
    epochs: Annotated[int, typer.Option(help="Training epochs per shard.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    split_seed: Annotated[int, typer.Option(help="Seed of the train/test split.")] = 0,
    json: JsonOption = False,
) -> None:
    """Recommend how to fit a graph. Measures on held-out training nodes."""
    from grapheraser.aggregation import WIDE
    from grapheraser.datasets import load_dataset
    from grapheraser.eraser.recommend import recommend

    graph = load_dataset(dataset, split_seed=split_seed)
    advice = recommend(graph, model, num_shards=shards, epochs=epochs, seed=seed)
    if json:
        print_json({"dataset": graph.name, "model": model, **advice.report()})
        return
    for reason in advice.reasons:
        print(reason)
    numbers = {"epochs": (epochs, 100), "seed": (seed, 0), "split-seed": (split_seed, 0)}
    changed = "".join(f" --{name} {now}" for name, (now, usual) in numbers.items() if now != usual)
    expert = " --wide-expert" if advice.global_expert == WIDE else " --global-expert"
    print(
        f"\ngrapheraser fit {dataset} --model {model} --partition {advice.partition} --shards "
        f"{advice.num_shards} --aggregation {advice.aggregation}{expert}{changed} --out RUN"
    )
