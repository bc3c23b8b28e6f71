"""grapheraser recommend: measure how to fit a graph, and give reasons."""

from __future__ import annotations

from typing import Annotated

import typer

from grapheraser.cli import completion
from grapheraser.cli.options import ContextOption, DatasetArgument, SplitOption, SplitSeedOption
from grapheraser.cli.output import JsonOption, print_json, print_table

NAME = "recommend"


def run(
    dataset: DatasetArgument,
    model: Annotated[
        str,
        typer.Option(
            help="Model of the shards; default tries all.", autocompletion=completion.models
        ),
    ] = "",
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
    print(
        "\nMeasured on a fifth of the training nodes, learning from the others; test nodes were "
        f"not looked at. Differences below {advice.margin:.3f} may be chance."
    )
    rows = [(name, f"{f1:.3f}") for name, f1 in sorted(advice.f1.items(), key=_falling)]
    print_table("", ("candidate", "F1"), rows)
    options: dict[str, tuple[object, object]] = {
        "epochs": (epochs, 100),
        "seed": (seed, 0),
        "split-seed": (split_seed, 0),
    }
    options |= {"split": (split, "auto"), "context": (context, "unlabelled")}
    changed = "".join(f" --{name} {now}" for name, (now, usual) in options.items() if now != usual)
    shards_option = "" if advice.num_shards == 1 else f" --shards {advice.num_shards}"
    print(f"\ngrapheraser fit {dataset} --model {advice.model}{shards_option}{changed} --out RUN")


def _falling(entry: tuple[str, float]) -> float:
    return -entry[1]
