"""grapheraser demo: fit, predict, unlearn and verify on the embedded graph, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli import completion
from grapheraser.cli.output import JsonOption, print_json, say
from grapheraser.reports.wording import duration

NAME = "demo"


def run(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the run and the page; overwritten.")
    ] = Path("demo-report"),
    model: Annotated[
        str, typer.Option(help="gcn, sage, gat, gin or mlp.", autocompletion=completion.models)
    ] = "gcn",
    partition: Annotated[
        str, typer.Option(help="Partition method.", autocompletion=completion.partitions)
    ] = "hash",
    aggregation: Annotated[
        str,
        typer.Option(help="Aggregation of the shards.", autocompletion=completion.aggregations),
    ] = "routed",
    shards: Annotated[int, typer.Option(help="Number of shards.")] = 20,
    requests: Annotated[
        int, typer.Option(help="Number of node requests, and of edge requests.")
    ] = 10,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    json: JsonOption = False,
) -> None:
    """Fit, unlearn and verify on the embedded graph. Writes a page with figures."""
    from grapheraser.datasets import load_dataset
    from grapheraser.demo.page import demo_page
    from grapheraser.demo.story import run_demo
    from grapheraser.eraser import GraphEraser
    from grapheraser.store import write_text

    graph = load_dataset("demo")
    say(f"{graph}")
    eraser = GraphEraser(
        model=model, partition=partition, num_shards=shards, aggregation=aggregation, seed=seed
    )
    result = run_demo(graph, eraser, requests=requests, seed=seed)
    eraser.save(out / "run", replace=True)
    page = out / "index.html"
    write_text(page, demo_page(result))
    f1, seconds = result.f1, result.seconds
    if json:
        print_json({**result.to_dict(), "page": str(page), "run": str(out / "run")})
    else:
        print(f"from scratch        F1 {f1['scratch']:.4f}   {duration(seconds['scratch'])}")
        print(f"{shards} shards           F1 {f1['before']:.4f}   {duration(seconds['fit'])}")
        print(
            f"forgot {requests} nodes and {requests} edges, one by one: "
            f"{duration(seconds['request'])} a request"
        )
        print(f"afterwards          F1 {f1['after']:.4f}")
        print(
            f"from scratch again  F1 {f1['retrained']:.4f}   {duration(seconds['retrain'])}; "
            f"{duration(seconds['pyg'])} with plain PyG, {result.speedup:.0f} times a request"
        )
        print(f"statement           {result.receipts[-1].statement}")
        print(f"page                {page}")
        verdict = "bit-identical" if result.verification.identical else "NOT identical"
        print(f"verified: {verdict} ({result.verification.values:,} values)")
    if not result.verification.identical:
        raise typer.Exit(1)
