"""grapheraser recommend: measure how to fit a graph, and give reasons."""

from __future__ import annotations

from typing import Annotated

import typer

from grapheraser.cli.options import ContextOption, SplitOption, SplitSeedOption
from grapheraser.cli.output import JsonOption, print_json

NAME = "recommend"


def run(
    dataset: Annotated[str, typer.Argument(help="Name of a data set, or path of an npz file.")],
    model: Annotated[str, typer.Option(help="Model of the shards; default tries all.")] = "",
    shards: Annotated[int | None, typer.Option(help="Number of shards, if it is fixed.")] = None,
    epochs: Annotated[int, typer.Option(help="Training epochs per shard.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    split: SplitOption = "auto",
    split_seed: SplitSeedOption = 0,
    context: ContextOption = "unlabelled",
    json: JsonOption = False,
) -> None:
    """Recommend how to fit a graph. Measures on held-out training nodes."""
    from grapheraser.datasets import load_dataset
    from grapheraser.eraser.recommend import recommend

    graph = load_dataset(dataset, split_seed=split_seed, split=split).with_context(context)
    advice = recommend(graph, model or None, num_shards=shards, epochs=epochs, seed=seed)
    if json:
        print_json({"dataset": graph.name, **advice.report()})
        return
    for reason in advice.reasons:
        print(reason)
    options: dict[str, tuple[object, object]] = {
        "epochs": (epochs, 100),
        "seed": (seed, 0),
        "split-seed": (split_seed, 0),
    }
    options |= {"split": (split, "auto"), "context": (context, "unlabelled")}
    changed = "".join(f" --{name} {now}" for name, (now, usual) in options.items() if now != usual)
    shards_option = "" if advice.num_shards == 1 else f" --shards {advice.num_shards}"
    print(f"\ngrapheraser fit {dataset} --model {advice.model}{shards_option}{changed} --out RUN")
