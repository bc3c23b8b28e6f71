"""Run experiments and write a folder for each, and one report over all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from grapheraser.experiments.framework.cell import Cell, Result, Results
from grapheraser.experiments.framework.experiment import EXPERIMENTS, Experiment, Summary
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.report import (
    Provenance,
    Section,
    report_markdown,
    report_page,
)
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.runner import CPU, WORKERS, Outcome, run_cells
from grapheraser.reports.figures.canvas import as_file, as_png, fewer_colours
from grapheraser.reports.pages.render import Picture
from grapheraser.reports.tables import to_csv, to_latex, to_markdown
from grapheraser.store import write_file, write_text

ALL = "all"
_DPI = 110


@dataclass(frozen=True)
class Study:
    """What was run and written.

    Attributes:
        summaries: by experiment.
        report: the page.
        cells: how many cells there are in all.
        computed: how many of them were computed now.
        seconds: how long that took.
        failures: message by cell.
    """

    summaries: dict[str, Summary]
    report: Path
    cells: int
    computed: int
    seconds: float
    failures: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        return {
            "report": str(self.report),
            "cells": self.cells,
            "computed": self.computed,
            "seconds": self.seconds,
            "failures": self.failures,
            "experiments": {
                name: {
                    "claims": [asdict(claim) for claim in summary.claims],
                    "rows": list(summary.rows),
                }
                for name, summary in self.summaries.items()
            },
        }


def chosen(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names; ``all`` stands for every one."""
    wanted = list(EXPERIMENTS) if ALL in names else list(dict.fromkeys(names))
    return [EXPERIMENTS.get(name) for name in wanted]


def options_for(experiment: Experiment, options: Options, *, given: bool) -> Options:
    """Its own data sets where the user named none, and fewer runs where it has very many cells."""
    datasets = options.datasets if given or not experiment.datasets else experiment.datasets
    runs = max(1, options.runs // experiment.one_run_in)
    return replace(options, datasets=datasets, runs=runs)


def run_study(
    names: Sequence[str],
    options: Options,
    out: Path,
    *,
    given: bool = True,
    workers: int = WORKERS,
    device: str = CPU,
    compute: bool = True,
    say: Callable[[str], None] = lambda text: None,
) -> Study:
    """Run what is missing and write everything.

    Args:
        names: of experiments, or ``all``.
        options: data sets, models, runs, protocol.
        out: the folder; results that are there already are used.
        given: whether the user named the data sets; else each experiment has its own.
        workers: processes at once; 0 stays in this one.
        device: where shards are trained, but for what is timed.
        compute: whether to run what is missing; else report on what is there.
        say: told what happens.
    """
    plans = [(e, options_for(e, options, given=given)) for e in chosen(names)]
    cells = {experiment.name: experiment.cells(opts) for experiment, opts in plans}
    every = list(dict.fromkeys(cell for group in cells.values() for cell in group))
    say(f"{len(plans)} experiments, {len(every)} cells")
    outcome = run_cells(every, out, workers=workers, device=device, compute=compute, say=say)
    if not compute:
        plans = [(e, _at_hand(opts, cells[e.name], outcome.results)) for e, opts in plans]
        cells = {experiment.name: experiment.cells(opts) for experiment, opts in plans}
    summaries: dict[str, Summary] = {}
    sections = []
    for experiment, opts in plans:
        summary = experiment.summarise(opts, outcome.results)
        summaries[experiment.name] = summary
        png = _write(experiment, opts, summary, cells[experiment.name], outcome.results, out)
        group = cells[experiment.name]
        sections.append(
            _section(experiment, opts, summary, png, _runs(opts, group, outcome.results))
        )
    page = out / "report.html"
    made = _made(every, outcome)
    write_text(page, report_page(options, sections, made))
    write_text(out / "report.md", report_markdown(options, sections, made))
    failures = {str(cell): text for cell, text in outcome.failures.items()}
    return Study(summaries, page, len(every), outcome.computed, round(outcome.seconds, 1), failures)


def _at_hand(options: Options, cells: Sequence[Cell], results: Results) -> Options:
    """Leave out data sets without results, unless there are no results at all."""
    there = {cell["dataset"] for cell in cells if cell in results}
    kept = tuple(dataset for dataset in options.datasets if dataset in there)
    return replace(options, datasets=kept or options.datasets)


def _write(
    experiment: Experiment,
    options: Options,
    summary: Summary,
    cells: Sequence[Cell],
    results: Results,
    out: Path,
) -> bytes | None:
    """The files of one experiment; returns the picture for the page."""
    folder = out / experiment.name
    write_text(folder / "data.csv", to_csv(summary.rows))
    write_text(folder / "data.json", _json(experiment, options, summary, cells, results))
    write_text(folder / "table.md", to_markdown(summary.tables))
    write_text(folder / "table.tex", to_latex(summary.tables, experiment.name))
    if summary.draw is None:
        return None
    figure = summary.draw()
    png = as_png(figure, dpi=_DPI)
    write_file(folder / "figure.png", png)
    write_file(folder / "figure.svg", as_file(figure, "svg", dpi=130))
    return fewer_colours(png)


def _json(
    experiment: Experiment,
    options: Options,
    summary: Summary,
    cells: Sequence[Cell],
    results: Results,
) -> str:
    found = [result for cell in dict.fromkeys(cells) if (result := results.get(cell)) is not None]
    data = {
        "experiment": experiment.name,
        "paper": experiment.label,
        "options": asdict(options),
        "claims": [asdict(claim) for claim in summary.claims],
        "rows": list(summary.rows),
        "environments": _environments(found),
        "cells": {
            result.cell.digest: {
                "kind": result.cell.kind,
                "config": result.cell.config,
                "seconds": result.seconds,
                "cpu_seconds": result.cpu_seconds,
            }
            for result in found
        },
    }
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def _environments(results: Sequence[Result]) -> list[Any]:
    texts = {
        json.dumps({"versions": r.versions, "hardware": r.hardware}, sort_keys=True)
        for r in results
    }
    return [json.loads(text) for text in sorted(texts)]


def _runs(options: Options, cells: Sequence[Cell], results: Results) -> str:
    """How many runs there are of each data set, in words."""
    seeds: dict[str, set[int]] = {dataset: set() for dataset in options.datasets}
    for cell in cells:
        if cell in results and cell["dataset"] in seeds:
            seeds[cell["dataset"]].add(cell["seed"])
    return ", ".join(f"{shown(dataset)} {len(found)}" for dataset, found in seeds.items())


def _section(
    experiment: Experiment, options: Options, summary: Summary, png: bytes | None, runs: str
) -> Section:
    setting = f"Models: {', '.join(map(shown, options.models))}. Runs: {runs}."
    return Section(
        experiment.name,
        experiment.title,
        experiment.label,
        setting,
        summary.tables,
        summary.claims,
        summary.notes,
        None if png is None else Picture(f"figure: {experiment.title}", png),
    )


def _machine(result: Result) -> str:
    parts = [result.hardware["processor"], f"{result.hardware['cores']} cores"]
    if "gpu" in result.versions:
        parts.append(f"{result.versions['gpu']} for training")
    return ", ".join(parts)


def _made(cells: Sequence[Cell], outcome: Outcome) -> Provenance:
    found = [r for cell in cells if (r := outcome.results.get(cell)) is not None]
    versions = sorted(
        {", ".join(f"{name} {text}" for name, text in sorted(r.versions.items())) for r in found}
    )
    hardware = sorted({_machine(result) for result in found})
    failures = {str(cell): text for cell, text in outcome.failures.items()}
    spent = sum(r.cpu_seconds for r in found)
    return Provenance(versions, hardware, len(found), len(cells), spent, failures)
