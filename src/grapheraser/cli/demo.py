"""grapheraser demo: fit, predict, unlearn and verify on the embedded graph, offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grapheraser.cli import completion
from grapheraser.cli.output import JsonOption, print_json, say
from grapheraser.errors import ParameterError
from grapheraser.reports.wording import duration

if TYPE_CHECKING:
    from grapheraser.demo.story import DemoResult
    from grapheraser.eraser import GraphEraser
    from grapheraser.graph import Graph

NAME = "demo"


def run(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder for the run, the page and a receipt, overwritten; default demo-report. "
            "With --serve: for the run, which is served again; default: removed at the end.",
        ),
    ] = None,
    dataset: Annotated[
        str, typer.Option(help="A data set, or a path.", autocompletion=completion.datasets)
    ] = "demo-large",
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
    shards: Annotated[
        int | None, typer.Option(help="Number of shards; default: what suits the data set.")
    ] = None,
    requests: Annotated[
        int | None, typer.Option(help="Number of node requests, and of edge requests; default 10.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the graph and its dashboard, to be tried out.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(help="With --serve: port to listen on; default: any free one.")
    ] = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="With --serve: print the link, open no browser.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Fit, unlearn and verify on the embedded graph. Writes a page with pictures.

    With --serve it is up to you: the service and its dashboard, on this machine alone.
    """
    if serve and requests is not None:
        raise ParameterError("--requests is not of --serve: there you choose what to forget.")
    if not serve and (port is not None or no_open):
        raise ParameterError("--port and --no-open need --serve.", hint="add --serve.")
    if serve:
        from grapheraser.service import needs_extra

        needs_extra()
    from grapheraser.datasets import default_shards, load_dataset
    from grapheraser.eraser import GraphEraser

    graph = load_dataset(dataset)
    say(f"{graph}")
    eraser = GraphEraser(
        model=model,
        partition=partition,
        num_shards=default_shards(dataset) if shards is None else shards,
        aggregation=aggregation,
        seed=seed,
    )
    if serve:
        from grapheraser.cli.trying import try_out

        try_out(graph, eraser, out, port=port or 0, is_opened=not no_open, as_json=json)
        return
    _show(
        graph,
        eraser,
        out or Path("demo-report"),
        10 if requests is None else requests,
        seed,
        as_json=json,
    )


def _show(
    graph: Graph, eraser: GraphEraser, out: Path, requests: int, seed: int, *, as_json: bool
) -> None:
    """Run the demonstration, write its files, and tell what was measured."""
    from grapheraser.demo.page import demo_page
    from grapheraser.demo.story import run_demo
    from grapheraser.store import write_text

    result = run_demo(graph, eraser, requests=requests, seed=seed, say=say)
    eraser.save(out / "run", replace=True)
    receipt, key, page = out / "receipt.json", out / "operator.pub", out / "index.html"
    write_text(receipt, result.proof.part.to_json())
    command = ""
    if result.proof.key is not None:
        write_text(key, result.proof.key.to_pem())
        command = f"grapheraser receipt verify {receipt} --key {key}"
    write_text(page, demo_page(result, command))
    if as_json:
        print_json(
            {
                **result.to_dict(),
                "page": str(page),
                "run": str(out / "run"),
                "receipt": str(receipt),
            }
        )
    else:
        for line in told(result):
            print(line)
        print(f"page                {page}")
        if command:
            print(f"check a receipt     {command}")
        verdict = "bit-identical" if result.proof.is_identical else "NOT identical"
        print(f"verified: {verdict} ({result.proof.verification.values:,} values)")
    if not result.proof.is_identical:
        raise typer.Exit(1)


def told(result: DemoResult) -> list[str]:
    """What was done and what it cost, in lines."""
    from grapheraser.demo.story import PYG_EPOCHS

    f1, seconds, count = result.f1, result.seconds, len(result.receipts) // 2
    kept = len(result.sizes) - len(result.scene.retrained)
    return [
        f"one model           F1 {f1['scratch']:.4f}   {duration(seconds['scratch'])}",
        f"{f'{len(result.sizes)} shards':<19} F1 {f1['before']:.4f}   {duration(seconds['fit'])}",
        f"forgot {count} nodes and {count} edges, one by one: {duration(seconds['node'])} a node, "
        f"{duration(seconds['edge'])} an edge",
        f"the first request   left {kept} of {len(result.sizes)} shards untouched",
        f"afterwards          F1 {f1['after']:.4f}",
        f"one model again     F1 {f1['retrained']:.4f}   {duration(seconds['retrain'])}, "
        f"{result.times('retrain'):,.0f} times a node",
        f"with plain PyG                  {duration(seconds['pyg'])}, {result.times('pyg'):,.0f} "
        f"times a node ({PYG_EPOCHS} epochs measured, scaled)",
        f"statement           {result.receipts[-1].statement}",
    ]
