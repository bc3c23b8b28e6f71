"""grapheraser arena: any method of unlearning against what retraining would have given."""

from __future__ import annotations

import shlex
import sys
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.options import JsonOption
from grapheraser.cli.output import print_json, print_line, say
from grapheraser.errors import GraphEraserError, ParameterError

RUN, LIST = "run", "list"
QUESTIONS = ("utility", "stream", "versions", "members", "edges")
# Who is not asked everything: by question and task, the kinds of requests.
_ATTACKS: dict[str, dict[str, tuple[str, ...]]] = {
    "members": {"nodes": ("nodes",), "links": ("nodes", "edges")},
    "edges": dict.fromkeys(("nodes", "links", "embeddings"), ("edges",)),
}
_NOTHING = "none of these questions is asked of these methods when that goes (docs/arena.md)"


def run(
    action: Annotated[str, typer.Argument(metavar="run|list", help="Run methods, or list rows.")],
    methods: Annotated[
        list[str] | None,
        typer.Argument(metavar="METHOD...", help="Names of rows, or package.module:Class."),
    ] = None,
    datasets: Annotated[str, typer.Option(help="Data sets, e.g. cora,citeseer.")] = "cora",
    requests: Annotated[
        str,
        typer.Option(
            help="What is forgotten: nodes,edges,features; graphs,nodes,edges of collections; "
            "users,items,interactions."
        ),
    ] = "nodes",
    questions: Annotated[
        str, typer.Option(help=f"What is measured, of {','.join(QUESTIONS)}; default all.")
    ] = ",".join(QUESTIONS),
    share: Annotated[
        float, typer.Option(help="How much is forgotten at once.", min=0.0001, max=0.9)
    ] = 0.05,
    seeds: Annotated[int, typer.Option(help="How many splits and seeds.", min=1)] = 3,
    stream: Annotated[
        int,
        typer.Option(help="Requests of the stream, one by one, of half the data at most.", min=1),
    ] = 1000,
    attacked: Annotated[int, typer.Option(help="Requests that attackers see.", min=1)] = 100,
    workers: Annotated[int, typer.Option(help="Cells at once; 0: in this process.", min=0)] = 2,
    out: Annotated[Path, typer.Option(help="Folder for the page, the table and cells.")] = Path(
        "arena"
    ),
    json: JsonOption = False,
) -> None:
    """Measure methods of unlearning: utility, distance to retraining, attacks, cost, streams."""
    from grapheraser_lab.arena.methods import ROWS, method_of, task_of
    from grapheraser_lab.arena.page import write
    from grapheraser_lab.framework.cell import Cell
    from grapheraser_lab.framework.resolve import sources_of
    from grapheraser_lab.framework.runner import run_cells

    if action == LIST:
        for name in ROWS:
            print_line(f"{name} ({task_of(ROWS[name])})")
        return
    if action != RUN or not methods:
        raise ParameterError("arena takes 'run METHOD...', or 'list'.")
    asked = _names(questions)
    if unknown := [name for name in asked if name not in QUESTIONS]:
        raise ParameterError(
            f"unknown question '{unknown[0]}'. Choose from: {', '.join(QUESTIONS)}."
        )
    import grapheraser_lab.arena.measure  # noqa: F401  (registers the kinds)

    cells = []
    for method, dataset, kind, seed in product(
        methods, _names(datasets), _names(requests), range(seeds)
    ):
        task = task_of(method_of(method))
        config = {"method": method, "dataset": dataset, "requests": kind, "seed": seed}
        config |= {"sources": sources_of([method])}  # an edited method is another one
        for question in asked:
            if question in _ATTACKS and kind not in _ATTACKS[question].get(task, ()):
                continue
            more: dict[str, dict[str, object]] = {"utility": {"share": share}}
            more |= {"stream": {"count": stream, "looks": 5}}
            more |= {name: {"count": attacked} for name in ("versions", "members")}
            cells.append(Cell.of(f"arena-{question}", **config, **more.get(question, {})))
    outcome = run_cells(cells, out, workers=workers, say=say)
    found = {cell: made for cell in cells if (made := outcome.results.get(cell)) is not None}
    if not found:
        reason = next(iter(outcome.failures.values()), _NOTHING)
        raise GraphEraserError(f"nothing could be measured: {reason}")
    command = shlex.join(["grapheraser", *(word for word in sys.argv[1:] if word != "--json")])
    report = write(found, outcome.failures, out, command)
    if json:
        print_json(report)
        return
    typer.echo((out / "table.md").read_text())
    print_line(f"{report['page']}: {len(found)} measurements, {len(outcome.failures)} failed.")


def _names(text: str) -> list[str]:
    """Read names that are separated by commas, each once."""
    return list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
