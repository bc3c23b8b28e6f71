"""A sweep: one parameter moves, and F1 is watched. What tells sweeps apart is data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grapheraser.reports.tables import Table
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import SWEEP_RUNS, Experiment, Summary, flat, register
from grapheraser_lab.framework.f1_curves import (
    Line,
    curve_figure,
    curve_rows,
    curve_table,
)
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.rules import Claim, by_reading
from grapheraser_lab.framework.shared_cells import f1_means, utility_cells

# By data set, model, series and place on the axis.
Groups = Mapping[tuple[str, str, str, float], list[Cell]]


@dataclass(frozen=True)
class More:
    """Tables before and after that of the curves, further claims, and titles of panels."""

    before: Sequence[Table] = ()
    after: Sequence[Table] = ()
    claims: Sequence[Claim] = ()
    titles: Mapping[tuple[str, str], str] | None = None


@dataclass(frozen=True)
class Sweep:
    """One parameter, its places, and how the curves are judged and shown.

    Attributes:
        name, title, label, cost, datasets, models: of the `Experiment`.
        axis: what the parameter is called in rows.
        places: its values.
        cell: from a kind and a place to arguments of `utility_cell`.
        heading: of a table; ``{}`` stands for the reading of LBAggr, or the aggregation.
        xlabel: of the figure.
        judges: rules about the curves that stand.
        kinds: how series of one partition differ, with the words that its name ends in.
        lines: data sets, models and partitions, from the options.
        curves: from F1 to what is shown.
        more: what is shown beside the curves.
        note: below the table.
        tell: a place in words.
        scale: of the figure's axis.
        ylabel, value: what the curves show, in the figure and in rows.
    """

    name: str
    title: str
    label: str
    cost: str
    axis: str
    places: tuple[float, ...]
    cell: Callable[[str, float], dict[str, Any]]
    heading: str
    xlabel: str
    judges: Sequence[Callable[..., list[Claim]]]
    kinds: Mapping[str, str] = field(default_factory=lambda: {"": ""})
    lines: Callable[[Options], Iterable[tuple[str, str, str]]] = lambda options: options.lines
    curves: Callable[[Line], Line] = lambda found: found
    more: Callable[[Options, Results, Groups, Line], More] = lambda *_: More()
    note: str = "† collapsed."
    tell: Callable[[float], str] = "{:g}".format
    scale: float = 1.0
    ylabel: str = "micro F1"
    value: str = "f1"
    datasets: tuple[str, ...] = ()
    models: Callable[[Options], tuple[str, ...]] | None = None

    def groups(self, options: Options) -> Groups:
        """Return the cells of every curve and place, one for each run."""
        return {
            (dataset, model, method + words, place): utility_cells(
                options, dataset, model, method, **self.cell(kind, place)
            )
            for dataset, model, method in self.lines(options)
            for kind, words in self.kinds.items()
            for place in self.places
        }

    def summarise(self, options: Options, results: Results) -> Summary:
        """Return the curves with their verdicts, under each reading of LBAggr."""
        groups = self.groups(options)
        every = {
            name: self.curves(f1_means(results, groups, text))
            for name, text in options.solved.items()
        }
        found = next(iter(every.values()))
        more = self.more(options, results, groups, found)
        known = {name: curves for name, curves in every.items() if curves or curves is found}
        tables = [
            curve_table(curves, self.heading.format(name), tell=self.tell, note=self.note)
            for name, curves in known.items()
        ]
        judged = [{name: judge(curves) for name, curves in known.items()} for judge in self.judges]
        leads = options.how.leads
        return Summary(
            [
                {**row, "reading": name}
                for name, curves in known.items()
                for row in curve_rows(curves, self.axis, self.value)
            ],
            [*more.before, *tables, *more.after],
            [*(claim for some in judged for claim in by_reading(some, leads=leads)), *more.claims],
            lambda: curve_figure(
                found, self.xlabel, self.ylabel, titles=more.titles, scale=self.scale
            ),
        )

    def register(self) -> None:
        """Make it known as an experiment."""
        register(
            Experiment(
                self.name,
                self.title,
                self.label,
                self.cost,
                lambda options: list(flat(self.groups(options))),
                self.summarise,
                datasets=self.datasets,
                models=self.models,
                most_runs=SWEEP_RUNS,
            )
        )
