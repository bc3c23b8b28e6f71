"""grapheraser partition: partition a graph, measure and draw the result."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli import completion
from grapheraser.cli.options import ContextOption, DatasetArgument, SplitOption, SplitSeedOption
from grapheraser.cli.output import JsonOption, print_json, say
from grapheraser.errors import MissingExtraError
from grapheraser.reports.wording import duration

if TYPE_CHECKING:
    from grapheraser.graph import Graph
    from grapheraser.partition import Partition

NAME = "partition"


def run(
    dataset: DatasetArgument,
    method: Annotated[
        str, typer.Option(help="Partition method.", autocompletion=completion.partitions)
    ] = "blpa",
    shards: Annotated[
        int | None, typer.Option(help="Number of shards; default: the paper's k, else 20.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the partition.")] = 0,
    split: SplitOption = "auto",
    split_seed: SplitSeedOption = 0,
    context: ContextOption = "unlabelled",
    gamma: Annotated[float, typer.Option(help="Slack of the shard capacity, from 0 to 1.")] = 0.0,
    delta: Annotated[int | None, typer.Option(help="Shard capacity, instead of gamma.")] = None,
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
    print(f"{report['dataset']}, {report['method']}: {report['num_shards']} shards")
    for name, text in rows.items():
        if text:
            print(f"{name:<16} {text}")
