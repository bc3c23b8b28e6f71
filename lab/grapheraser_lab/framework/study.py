"""Run experiments and write a folder for each, and one report over all of them."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from grapheraser.errors import ParameterError
from grapheraser.reports.figures.canvas import as_png
from grapheraser.reports.pages.render import Picture
from grapheraser.reports.tables import Table
from grapheraser.store import write_file, write_text
from grapheraser_lab.figures.tables import to_csv
from grapheraser_lab.framework.cell import Cell, Result, Results
from grapheraser_lab.framework.experiment import EXPERIMENTS, Experiment, Summary, in_order
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.report import Provenance, Section, report_markdown, report_page
from grapheraser_lab.framework.resolve import shown
from grapheraser_lab.framework.runner import Outcome, run_cells

ALL = "all"
_DPI = 110


@dataclass(frozen=True)
class Study:
    """A study that was run, and its files.

    Attributes:
        summaries: by experiment.
        report: the page.
        cells: how many cells there are in all.
        computed: how many of them were computed now.
        seconds: how long that took.
        failures: message by cell.
        left: how many cells were not begun for want of time.
    """

    summaries: dict[str, Summary]
    report: Path
    cells: int
    computed: int
    seconds: float
    failures: dict[str, str]
    left: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "report": str(self.report),
            "cells": self.cells,
            "computed": self.computed,
            "seconds": self.seconds,
            "failures": self.failures,
            "left": self.left,
            "experiments": {
                name: {
                    "claims": [asdict(claim) for claim in summary.claims],
                    "rows": list(summary.rows),
                }
                for name, summary in self.summaries.items()
            },
        }


def chosen(names: Sequence[str], protocol: str = "paper") -> list[Experiment]:
    """The experiments of these names; ``all`` stands for every one of the protocol."""
    if ALL in names:
        return [
            experiment
            for experiment in in_order()
            if protocol in experiment.protocols and protocol not in experiment.only_named
        ]
    wanted = [EXPERIMENTS.get(name) for name in dict.fromkeys(names)]
    for experiment in wanted:
        if protocol not in experiment.protocols:
            known = " or ".join(experiment.protocols)
            raise ParameterError(f"'{experiment.name}' is about protocol {known}. Got {protocol}.")
    return wanted


def options_for(experiment: Experiment, options: Options, *, given: bool) -> Options:
    """Its own data sets where the user named none, and fewer runs where it has very many cells."""
    datasets = options.datasets if given or not experiment.datasets else experiment.datasets
    runs = min(options.runs, experiment.most_runs or options.runs)
    return replace(options, datasets=datasets, runs=runs)


def run_study(
    names: Sequence[str],
    options: Options,
    out: Path,
    *,
    given: bool = True,
    compute: bool = True,
    say: Callable[[str], None] = lambda text: None,
    **how: Any,
) -> Study:
    """Run what is missing and write everything.

    Args:
        names: of experiments, or ``all``.
        options: data sets, models, runs, protocol.
        out: the folder; results that are there already are used.
        given: whether the user named the data sets; else each experiment has its own.
        compute: whether to run what is missing; else report on what is there.
        say: told what happens.
        how: other arguments of `run_cells`.
    """
    experiments = chosen(names, options.protocol)
    plans = [(e, options_for(e, options, given=given)) for e in experiments]
    cells = {experiment.name: experiment.cells(opts) for experiment, opts in plans}
    every = list(dict.fromkeys(cell for group in cells.values() for cell in group))
    say(f"{len(plans)} experiments, {len(every)} cells")
    outcome = run_cells(every, out, compute=compute, say=say, **how)
    if outcome.left or not compute:
        plans = [(e, _at_hand(opts, cells[e.name], outcome.results)) for e, opts in plans]
        cells = {experiment.name: experiment.cells(opts) for experiment, opts in plans}
    summaries = {e.name: e.summarise(opts, outcome.results) for e, opts in plans}
    sections = []
    for experiment, opts in plans:
        summary, group = summaries[experiment.name], cells[experiment.name]
        png = _write(summary, out / experiment.name)
        runs = _runs(opts, group, outcome.results)
        sections.append(_section(experiment, opts, summary, png, runs))
    opening = [words for summary in summaries.values() for words in summary.opening]
    page = out / "report.html"
    told = options, sections, _made(every, outcome), opening
    whole = ALL in names
    write_text(page, report_page(*told, whole=whole))
    write_text(out / "report.md", report_markdown(*told, whole=whole))
    failures = {str(cell): text for cell, text in outcome.failures.items()}
    return Study(
        summaries,
        page,
        len(every),
        outcome.computed,
        round(outcome.seconds, 1),
        failures,
        outcome.left,
    )


def _at_hand(options: Options, cells: Sequence[Cell], results: Results) -> Options:
    """Leave out data sets without results, unless there are no results at all."""
    there = {cell["dataset"] for cell in cells if cell in results}
    kept = tuple(dataset for dataset in options.datasets if dataset in there)
    return replace(options, datasets=kept or options.datasets)


def _write(summary: Summary, folder: Path) -> bytes | None:
    """The files of one experiment; returns the picture for the page."""
    write_text(folder / "data.csv", to_csv(summary.rows))
    if summary.draw is None:
        return None
    png = fewer_colours(as_png(summary.draw(), dpi=_DPI))
    write_file(folder / "figure.png", png)
    return png


def _runs(options: Options, cells: Sequence[Cell], results: Results) -> str:
    """How many runs there are of each data set, in words; the number alone where all agree."""
    seeds: dict[str, set[int]] = {dataset: set() for dataset in options.datasets}
    for cell in cells:
        if cell in results and cell["dataset"] in seeds and cell["seed"] < options.runs:
            seeds[cell["dataset"]].add(cell["seed"])
    counts = {len(found) for found in seeds.values()}
    if len(counts) == 1 and len(seeds) > 1:
        return f"{counts.pop()}"
    return ", ".join(f"{shown(dataset)} {len(found)}" for dataset, found in seeds.items())


def _section(
    experiment: Experiment, options: Options, summary: Summary, png: bytes | None, runs: str
) -> Section:
    models = experiment.models_of(options)
    setting = f"Data sets: {', '.join(map(shown, options.datasets))}. "
    setting += f"Models: {', '.join(map(shown, models))}. " if models else ""
    setting += f"Runs: {runs}."
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
    if result.hardware.get("at_once", 1) > 1:
        parts.append(f"{result.hardware['at_once']} cells at once")
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
    return Provenance(versions, hardware, len(found), len(cells), spent, failures, _devices(found))


def _devices(results: Sequence[Result]) -> Table:
    """Which machine measured what: a row for each kind of cell, data set and machine."""
    counts: dict[tuple[str, str, str], int] = {}
    for result in results:
        key = result.cell.kind, shown(result.cell["dataset"]), _machine(result)
        counts[key] = counts.get(key, 0) + 1
    merged: dict[tuple[str, str], list[str]] = {}
    for (kind, dataset, machine), count in sorted(counts.items()):
        merged.setdefault((kind, machine), []).append(f"{dataset} {count:,}")
    return Table(
        "Which machine measured what",
        ("kind of cell", "machine", "cells"),
        tuple((kind, machine, ", ".join(some)) for (kind, machine), some in merged.items()),
        "What is timed runs on the processor, whatever trains the rest.",
    )


def fewer_colours(png: bytes, colours: int = 128) -> bytes:
    """Return a PNG in few colours, a third of the size: for pages that hold many.

    Colours that are far from all others are kept, however few pixels have them.
    """
    from PIL import Image

    buffer = io.BytesIO()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    cover, plain = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
    few = picture.quantize(colours, method=cover, kmeans=3, dither=plain)
    few.save(buffer, format="png", optimize=True)
    return buffer.getvalue()
