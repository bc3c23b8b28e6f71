"""grapheraser partition, recommend: measure how a graph can be partitioned and fitted."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.options import (
    ContextOption,
    DatasetArgument,
    DeltaOption,
    GammaOption,
    JsonOption,
    SeedOption,
    ShardsOption,
    SplitOption,
    SplitSeedOption,
    complete_models,
    complete_partitions,
)
from grapheraser.cli.output import print_json, print_line, print_rows, print_table, say
from grapheraser.errors import MissingExtraError
from grapheraser.reports.wording import duration

if TYPE_CHECKING:
    from grapheraser.graph import Graph
    from grapheraser.partition import Partition


def partition(
    dataset: DatasetArgument,
    method: Annotated[
        str, typer.Option(help="Partition method.", autocompletion=complete_partitions)
    ] = "blpa",
    shards: ShardsOption = None,
    seed: Annotated[int, typer.Option(help="Seed of the partition.")] = 0,
    split: SplitOption = "auto",
    split_seed: SplitSeedOption = 0,
    context: ContextOption = "unlabelled",
    gamma: GammaOption = 0.0,
    delta: DeltaOption = None,
    draw: Annotated[
        Path | None,
        typer.Option(help="Figure to write (.png, .svg or .pdf); default: DATASET-METHOD.png."),
    ] = None,
    no_draw: Annotated[bool, typer.Option("--no-draw", help="Write no figure.")] = False,
    json: JsonOption = False,
) -> None:
    """Partition a data set, measure and draw the partition."""
    from grapheraser.datasets import default_shards, load_dataset
    from grapheraser.partition import partition_graph

    graph = load_dataset(dataset, split_seed=split_seed, split=split).with_context(context)
    part = partition_graph(
        graph,
        method,
        num_shards=default_shards(dataset) if shards is None else shards,
        seed=seed,
        gamma=gamma,
        delta=delta,
    )
    picture = None if no_draw else _drawn(graph, part, draw)
    report = {**part.report(), "dataset": graph.name, "picture": picture and str(picture)}
    if json:
        print_json(report)
        return
    _print_report(report)


def _drawn(graph: Graph, part: Partition, asked: Path | None) -> Path | None:
    """The figure that was written; a picture that nobody asked for may be missing."""
    from grapheraser.reports.figures.partition import draw_partition

    try:
        return draw_partition(graph, part, asked or Path(f"{graph.name}-{part.method}.png"))
    except MissingExtraError as error:
        if asked is not None:
            raise
        say(f"note: no picture: {error.message} ({error.hint})")
        return None


def _print_report(report: dict[str, Any]) -> None:
    quality, sizes = report["quality"], report["sizes"]
    end = "converged" if report["converged"] else "stopped"
    rows = {
        "sizes": f"{min(sizes)} to {max(sizes)} nodes, capacity {report['capacity']}",
        "edge cut": f"{quality['edge_cut']:,} of {quality['edges']:,} edges",
        "neighbours kept": f"{quality['neighbours_kept'] or 0:.1%} of a node's, on average",
        "modularity": f"{quality['modularity']:.3f}",
        "label entropy": f"{fmean(quality['label_entropy']):.3f} nats a shard, on average",
        "rounds": f"{report['iterations']}, {end}" if report["iterations"] else "",
        "took": duration(report["seconds"]),
        "made from": ", ".join(report["inputs"]) or "node ids and a key alone",
        "note": "; ".join(report["notes"]),
        "picture": report["picture"] or "",
    }
    print_line(f"{report['dataset']}, {report['method']}: {report['num_shards']} shards")
    print_rows(rows, 17)


def recommend(
    dataset: DatasetArgument,
    model: Annotated[
        str,
        typer.Option(
            help="Model of the shards; default tries all.", autocompletion=complete_models
        ),
    ] = "",
    shards: Annotated[int | None, typer.Option(help="Number of shards, if it is fixed.")] = None,
    epochs: Annotated[int, typer.Option(help="Training epochs per shard.")] = 100,
    seed: SeedOption = 0,
    split: SplitOption = "auto",
    split_seed: SplitSeedOption = 0,
    context: ContextOption = "unlabelled",
    json: JsonOption = False,
) -> None:
    """Recommend how to fit a graph. Measures on held-out training nodes."""
    from grapheraser.datasets import load_dataset
    from grapheraser.nodes import recommend as advising

    graph = load_dataset(dataset, split_seed=split_seed, split=split).with_context(context)
    advice = advising.recommend(graph, model or None, num_shards=shards, epochs=epochs, seed=seed)
    if json:
        print_json({"dataset": graph.name, **advice.report()})
        return
    for reason in advice.reasons:
        print_line(reason)
    print_line(
        "\nMeasured on a fifth of the training nodes, learning from the others; test nodes were "
        f"not looked at. Differences below {advice.margin:.3f} may be chance."
    )
    rows = [
        (name, f"{f1:.3f}") for name, f1 in sorted(advice.f1.items(), key=lambda entry: -entry[1])
    ]
    print_table("", ("candidate", "F1"), rows)
    options: dict[str, tuple[object, object]] = {
        "epochs": (epochs, 100),
        "seed": (seed, 0),
        "split-seed": (split_seed, 0),
    }
    options |= {"split": (split, "auto"), "context": (context, "unlabelled")}
    changed = "".join(f" --{name} {now}" for name, (now, usual) in options.items() if now != usual)
    shards_option = "" if advice.num_shards == 1 else f" --shards {advice.num_shards}"
    print_line(
        f"\ngrapheraser fit {dataset} --model {advice.model}{shards_option}{changed} --out RUN"
    )
