"""grapheraser experiment: reproduce tables and figures of the paper."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from grapheraser.cli.options import (
    JsonOption,
    complete_aggregations,
    complete_datasets,
    complete_models,
    complete_partitions,
    completing,
)
from grapheraser.cli.output import print_json, print_table, say
from grapheraser.errors import ParameterError
from grapheraser.reports.wording import duration

LIST = "list"
_MANY = ("--datasets", "--models", "--partition", "--aggregation")


class SpreadCommand(TyperCommand):
    """A command whose list options take values separated by spaces or commas."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read ``--datasets cora citeseer`` as ``--datasets cora --datasets citeseer``."""
        return super().parse_args(ctx, spread(args))


COMMAND = SpreadCommand


def spread(words: list[str]) -> list[str]:
    """Repeat a list option before each of its values."""
    out: list[str] = []
    option: str | None = None
    for word in words:
        name, equals, value = word.partition("=")
        if word.startswith("-"):
            option = name if name in _MANY else None
            if option is None:
                out.append(word)
            elif equals:
                out += [part for item in _split(value) for part in (option, item)]
                option = None
        elif option is not None:
            out += [part for item in _split(word) for part in (option, item)]
        else:
            out.append(word)
    return out


def _split(word: str) -> list[str]:
    """Split at commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(word):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(word[start:i])
            start = i + 1
    return [part for part in [*parts, word[start:]] if part]


def _names() -> Iterable[str]:
    from grapheraser_lab.experiments.catalogue import EXPERIMENTS

    return (LIST, "all", *EXPERIMENTS)


def run(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Experiments, 'all', or 'list'.",
            autocompletion=completing(_names),
        ),
    ],
    datasets: Annotated[
        list[str] | None,
        typer.Option(
            "--datasets",
            help="Names or npz files; default: those of the experiment.",
            autocompletion=complete_datasets,
        ),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--models",
            help="Models: gat, gcn, gin, sage, mlp, or module:factory.",
            autocompletion=complete_models,
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option(help="Number of runs, each with its own split and seed.")
    ] = 10,
    protocol: Annotated[str, typer.Option(help="Protocol: paper, literal or best.")] = "paper",
    out: Annotated[
        Path, typer.Option("--out", help="Folder of the results; finished cells are reused.")
    ] = Path("experiments"),
    partition: Annotated[
        list[str] | None,
        typer.Option(
            "--partition",
            help="Additional partition method, or module:function.",
            autocompletion=complete_partitions,
        ),
    ] = None,
    aggregation: Annotated[
        list[str] | None,
        typer.Option(
            "--aggregation",
            help="Additional aggregation, or module:class.",
            autocompletion=complete_aggregations,
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(help="Training epochs.")] = 100,
    shards: Annotated[
        int | None, typer.Option(help="Number of shards; default: the paper's.")
    ] = None,
    requests: Annotated[int, typer.Option(help="Requests to time in each cell.")] = 100,
    scratch_requests: Annotated[
        int, typer.Option(help="The same where a request trains all, or much, afresh.")
    ] = 100,
    workers: Annotated[int, typer.Option(help="Worker processes; 0 runs in this process.")] = 2,
    timed_workers: Annotated[
        int, typer.Option(help="Timed cells to run at once; 0 leaves them.")
    ] = 1,
    executor: Annotated[
        str, typer.Option(help="Where workers run: process, on this machine, or ray.")
    ] = "process",
    minutes: Annotated[
        float | None, typer.Option(help="Begin no cell after this time; run it again to resume.")
    ] = None,
    device: Annotated[str, typer.Option(help="Device for training; timings use the CPU.")] = "cpu",
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Report on the finished cells; run nothing.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Run tables and figures of the paper. Finished cells are kept, so it can be resumed."""
    from grapheraser_lab.experiments.catalogue import EXPERIMENTS, Options, run_study
    from grapheraser_lab.framework.published import DATASETS, MODELS

    if names == [LIST]:
        _list(as_json=json)
        return
    if LIST in names:
        raise ParameterError("'list' takes no other names.", hint="grapheraser experiment list")
    for name in names:
        if name != "all":
            EXPERIMENTS.get(name)
    options = Options(
        datasets=tuple(datasets or DATASETS),
        models=tuple(models or MODELS),
        runs=runs,
        protocol=protocol,
        partitions=tuple(partition or ()),
        aggregations=tuple(aggregation or ()),
        epochs=epochs,
        requests=requests,
        scratch_requests=scratch_requests,
        num_shards=shards,
    )
    try:
        study = run_study(
            names,
            options,
            out,
            given=datasets is not None,
            workers=workers,
            timed_workers=timed_workers,
            executor=executor,
            device=device,
            minutes=minutes,
            compute=not report_only,
            say=say,
        )
    except KeyboardInterrupt:
        say(f"stopped. Finished cells are in {out}; run the same command to resume.")
        raise typer.Exit(130) from None
    if json:
        print_json(jsonlib.loads(jsonlib.dumps(study.to_dict())))
    else:
        for name, summary in study.summaries.items():
            for claim in summary.claims:
                print(f"{name:16} {claim.verdict:14} {claim.statement} {claim.judgement}")
        print(f"cells   {study.cells}, {study.computed} of them now in {duration(study.seconds)}")
        print(f"left    {study.left}")
        print(f"report  {study.report}")
    if study.failures:
        say(f"{len(study.failures)} cells failed; the report names them.")
        raise typer.Exit(1)


def _list(*, as_json: bool) -> None:
    from grapheraser_lab.experiments.catalogue import in_order

    rows = in_order()
    if as_json:
        print_json(
            [{"name": e.name, "title": e.title, "paper": e.label, "cost": e.cost} for e in rows]
        )
        return
    header = ("name", "what it shows", "in the paper", "time on two cores")
    kinds = [(e.name, e.title, e.label.partition(":")[0] or "no", e.cost) for e in rows]
    print_table("experiments", header, kinds)
