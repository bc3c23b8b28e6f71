"""grapheraser demo: fit, predict, unlearn and verify on the embedded graph, offline.

With ``--serve``: the graph behind the service, with its dashboard, to be tried out.
"""

from __future__ import annotations

import signal
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grapheraser.checks import one_of
from grapheraser.cli import options
from grapheraser.cli.output import answered, print_line, say, wants_json
from grapheraser.errors import ParameterError
from grapheraser.reports.wording import duration

if TYPE_CHECKING:
    from grapheraser.demo.story import DemoResult
    from grapheraser.graph import Graph
    from grapheraser.nodes import GraphEraser

# What has to be the same for a run that is there to be served again.
_SAME = ("model", "partition", "num_shards", "aggregation", "seed")


def demo(
    task: str = "nodes",
    typed: bool = False,
    out: Path | None = None,
    dataset: Annotated[str, typer.Option(autocompletion=options.complete_datasets)] = "demo-large",
    model: Annotated[str, typer.Option(autocompletion=options.complete_models)] = "gcn",
    partition: Annotated[str, typer.Option(autocompletion=options.complete_partitions)] = "hash",
    aggregation: options.AggregationOption = "routed",
    shards: int | None = None,
    requests: int | None = None,
    seed: options.SeedOption = 0,
    serve: bool = False,
    port: int | None = None,
    no_open: bool = False,
) -> None:
    """Fit, unlearn and verify on the embedded graph. Writes a page with pictures.

    With --serve it is up to you: the service and its dashboard, on this machine alone.

    Options:
        task: What is predicted: nodes, links, graphs, recommendation or embeddings.
        typed: On a graph with types: of nodes, or embeddings.
        out: Folder for the run, the page and a receipt, overwritten; default demo-report. With
            --serve: for the run, which is served again; default: removed at the end.
        dataset: A data set, or a path.
        model: Model of the shards: gcn, sage, gat, gin or mlp.
        partition: Partition method.
        shards: Number of shards; default: what suits the data set.
        requests: Number of node requests, and of edge requests; default 10.
        serve: Serve the graph and its dashboard, to be tried out.
        port: With --serve: port to listen on; default: any free one.
        no_open: With --serve: print the link, open no browser.
    """
    if typed or task != "nodes":
        if serve or out is not None:
            raise ParameterError("--serve and --out are of --task nodes, without --typed.")
        _tell(task, 10 if requests is None else requests, seed, typed=typed)
        return
    if serve and requests is not None:
        raise ParameterError("--requests is not of --serve: there you choose what to forget.")
    if not serve and (port is not None or no_open):
        raise ParameterError("--port and --no-open need --serve.", hint="add --serve.")
    if serve:
        from grapheraser.service import needs_extra

        needs_extra()
    from grapheraser.datasets import default_shards, load_dataset
    from grapheraser.nodes import GraphEraser

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
        _try_out(graph, eraser, out, port=port or 0, is_opened=not no_open)
        return
    _show(
        graph,
        eraser,
        out or Path("demo-report"),
        10 if requests is None else requests,
        seed,
    )


def _tell(task: str, requests: int, seed: int, *, typed: bool) -> None:
    """Tell the story of another task, in lines."""
    from grapheraser.demo.tasks import SCENES, TYPED, tell

    one_of(
        "--task", "demo --typed" if typed else "demo", task, TYPED if typed else ("nodes", *SCENES)
    )
    found = tell(task, requests, seed, say if wants_json() else print_line, typed=typed)
    answered(found)
    if not found["identical"]:
        raise typer.Exit(1)


def _show(graph: Graph, eraser: GraphEraser, out: Path, requests: int, seed: int) -> None:
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
    files = {"page": str(page), "run": str(out / "run"), "receipt": str(receipt)}
    if not answered(result.to_dict() | files):
        for line in told(result):
            print_line(line)
        print_line(f"page                {page}")
        if command:
            print_line(f"check a receipt     {command}")
        verdict = "bit-identical" if result.proof.is_identical else "NOT identical"
        print_line(f"verified: {verdict} ({result.proof.verification.values:,} values)")
    if not result.proof.is_identical:
        raise typer.Exit(1)


def told(result: DemoResult) -> list[str]:
    """Say what was done and what it cost, in lines."""
    from grapheraser.demo.story import NO_PYG, PYG_EPOCHS

    f1, seconds, count = result.f1, result.seconds, len(result.receipts) // 2
    kept = len(result.sizes) - len(result.scene.retrained)
    pyg = NO_PYG
    if "pyg" in result.rivals:
        pyg = (
            f"{'':<12}{duration(seconds['pyg'])}, {result.times('pyg'):,.0f} times a node "
            f"({PYG_EPOCHS} epochs measured, scaled)"
        )
    return [
        f"one model           F1 {f1['scratch']:.4f}   {duration(seconds['scratch'])}",
        f"{f'{len(result.sizes)} shards':<19} F1 {f1['before']:.4f}   {duration(seconds['fit'])}",
        f"what decides        {result.decides}",
        f"forgot {count} nodes and {count} edges, one by one: {duration(seconds['node'])} a node, "
        f"{duration(seconds['edge'])} an edge",
        f"the first request   left {kept} of {len(result.sizes)} shards untouched",
        f"afterwards          F1 {f1['after']:.4f}",
        f"one model again     F1 {f1['retrained']:.4f}   {duration(seconds['retrain'])}, "
        f"{result.times('retrain'):,.0f} times a node",
        f"with plain PyG      {pyg}",
        f"statement           {result.receipts[-1].statement}",
    ]


def _try_out(
    graph: Graph,
    eraser: GraphEraser,
    out: Path | None,
    *,
    port: int,
    is_opened: bool,
) -> None:
    """Fit, or take the run that is there, and serve it on this machine until somebody stops it.

    Without ``out`` the run is removed at the end; ``is_opened`` says whether to open a browser.
    """
    from grapheraser.demo.scene import choose
    from grapheraser.service.api.keys import Role
    from grapheraser.service.api.start import listening, started
    from grapheraser.service.running import Service
    from grapheraser.service.settings import Settings

    with _folder(out) as folder, _stopped() as wait:
        path = folder / "run"
        _fit(graph, eraser, path)
        settings = Settings(
            port=port, window=0.1, poll_seconds=0.1, name=graph.name, log_level="warning"
        )
        service = Service.opened(path, settings)
        with started(service, choose(graph, eraser.seed)) as app, listening(app, settings) as url:
            parts = app.state.parts
            _, key = parts.keys.create("demo", Role.OPERATOR)
            link = f"{url}/dashboard/sign-in#once={parts.sign_in_links.issue(key)}"
            _announce(url, link, key, path)
            if is_opened:
                webbrowser.open(link)
            wait()
            say("stopping")


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="grapheraser-demo-") as made:
        yield Path(made)


@contextmanager
def _stopped() -> Iterator[Callable[[], None]]:
    """Yield a function that waits until somebody stops the process."""
    stopped = threading.Event()
    names = (signal.SIGINT, signal.SIGTERM)
    before = {name: signal.signal(name, lambda *_: stopped.set()) for name in names}

    def wait() -> None:
        while not stopped.wait(0.5):  # in steps, since some systems tell of no signal meanwhile
            pass

    try:
        yield wait
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _fit(graph: Graph, eraser: GraphEraser, path: Path) -> None:
    """Put a fitted run into a folder, unless it is there already."""
    from grapheraser.errors import RunNotFoundError
    from grapheraser.nodes import GraphEraser

    try:
        there = GraphEraser.load(path)
    except RunNotFoundError:
        say("fitting; the first time on a machine this compiles for a minute or two")
        eraser.fit(graph).save(path)
        return
    differs = [name for name in _SAME if there.get_params()[name] != eraser.get_params()[name]]
    if differs or there.graph_.name != graph.name:
        raise ParameterError(
            f"{path} holds another run ({', '.join(differs) or there.graph_.name}).",
            hint="choose another --out, or the options that it was fitted with.",
        )
    say(f"serving the run that is in {path}, with all that it forgot")


def _announce(url: str, link: str, key: str, path: Path) -> None:
    if answered({"url": url, "link": link, "key": key, "run": str(path)}):
        return
    say(f"serving     {path}")
    say(f"open        {link}")
    say("            it signs you in once, within ten minutes")
    say(f"key         {key}")
    say("            for later, and for the API; it is shown this once")
    say("stop        Ctrl-C")
