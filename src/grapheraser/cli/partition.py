"""grapheraser partition, recommend: measure how a graph can be partitioned and fitted."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli import options
from grapheraser.cli.output import answered, print_line, print_rows, print_table, say
from grapheraser.errors import MissingExtraError
from grapheraser.reports.wording import duration

if TYPE_CHECKING:
    from grapheraser.graph import Graph
    from grapheraser.partition import Partition


def partition(
    dataset: options.DatasetArgument,
    method: Annotated[str, typer.Option(autocompletion=options.complete_partitions)] = "blpa",
    shards: options.ShardsOption = None,
    seed: int = 0,
    split: options.SplitOption = "auto",
    split_seed: options.SplitSeedOption = 0,
    context: options.ContextOption = "unlabelled",
    gamma: options.GammaOption = 0.0,
    delta: options.DeltaOption = None,
    draw: Path | None = None,
    no_draw: bool = False,
) -> None:
    """Partition a data set, measure and draw the partition.

    Options:
        method: Partition method.
        seed: Seed of the partition.
        draw: Figure to write (.png, .svg or .pdf); default: DATASET-METHOD.png.
        no_draw: Write no figure.
    """
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
    if not answered(report):
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
    dataset: options.DatasetArgument,
    model: Annotated[str, typer.Option(autocompletion=options.complete_models)] = "",
    shards: int | None = None,
    epochs: int = 100,
    seed: options.SeedOption = 0,
    split: options.SplitOption = "auto",
    split_seed: options.SplitSeedOption = 0,
    context: options.ContextOption = "unlabelled",
) -> None:
    """Recommend how to fit a graph. Measures on held-out training nodes.

    Options:
        model: Model of the shards; default tries all.
        shards: Number of shards, if it is fixed.
        epochs: Training epochs per shard.
    """
    from grapheraser.aggregation import named
    from grapheraser.datasets import load_dataset
    from grapheraser.nodes import recommend as advising

    graph = load_dataset(dataset, split_seed=split_seed, split=split).with_context(context)
    advice = advising.recommend(graph, model or None, num_shards=shards, epochs=epochs, seed=seed)
    if answered({"dataset": graph.name, **advice.report()}):
        return
    for reason in advice.reasons:
        print_line(reason)
    print_line(
        "\nMeasured on a fifth of the training nodes, learning from the others; test nodes were "
        f"not looked at. Differences below {advice.margin:.3f} may be chance."
    )
    best = sorted(advice.f1.items(), key=lambda entry: -entry[1])
    print_table("", ("candidate", "F1"), [(name, f"{f1:.3f}") for name, f1 in best])
    given: dict[str, tuple[object, object]] = {"shards": (advice.num_shards, 1)}
    given |= {"members": (",".join(advice.members), ",".join(named(None)))}
    given |= {"epochs": (epochs, 100), "seed": (seed, 0), "split-seed": (split_seed, 0)}
    given |= {"split": (split, "auto"), "context": (context, "unlabelled")}
    changed = [f" --{name} {now}" for name, (now, usual) in given.items() if now != usual]
    print_line(f"\ngrapheraser fit {dataset} --model {advice.model}{''.join(changed)} --out RUN")
