"""An experiment: cells to run, and how their results become tables, a figure and claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grapheraser.registry import Registry
from grapheraser.reports.tables import Table
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.options import PROTOCOLS, Options
from grapheraser_lab.framework.rules import Claim

# How many runs a sweep makes at the most: it has ten times the cells of a table.
SWEEP_RUNS = 5


@dataclass(frozen=True)
class Summary:
    """The outcome of an experiment.

    Attributes:
        rows: tidy rows, one for each run.
        tables: for people.
        claims: each with its verdict.
        draw: makes the figure, when it is wanted; None where there is nothing to draw.
        notes: what a reader should know.
        opening: paragraphs that the report begins with.
    """

    rows: Sequence[dict[str, Any]]
    tables: Sequence[Table]
    claims: Sequence[Claim] = ()
    draw: Callable[[], Any] | None = None
    notes: Sequence[str] = ()
    opening: Sequence[str] = ()


Summarise = Callable[[Options, Results], Summary]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Attributes:
        name: as the command line has it.
        title: what it shows.
        label: the paper's label of the table or figure; empty for one of this project's own.
        cost: roughly how long it takes on two cores.
        cells: everything that has to be measured.
        summarise: from the results to the summary; cells that failed have no result.
        datasets: its own default, where that is not all of the paper's.
        models: the models that it looks at, from the options; None for those of the options.
        most_runs: how many runs it makes at the most; None for as many as are asked for.
        protocols: those that it has something to say about.
        only_named: protocols under which ``all`` leaves it out: it says the same under another.
    """

    name: str
    title: str
    label: str
    cost: str
    cells: Callable[[Options], list[Cell]]
    summarise: Summarise
    datasets: tuple[str, ...] = ()
    models: Callable[[Options], tuple[str, ...]] | None = None
    most_runs: int | None = None
    protocols: tuple[str, ...] = tuple(PROTOCOLS)
    only_named: tuple[str, ...] = ()

    def models_of(self, options: Options) -> tuple[str, ...]:
        """The models that its section is about; empty for one about partitions alone."""
        return options.models if self.models is None else self.models(options)


EXPERIMENTS: Registry[Experiment] = Registry("experiment")
# The order of `list` and of the report; others follow.
ORDER = (
    "readings",
    "collapse",
    "datasets",
    "utility",
    "edge-utility",
    "mlp",
    "guideline",
    "samples",
    "importance",
    "tsne",
    "node-efficiency",
    "edge-efficiency",
    "cost",
    "partitioners",
    "partition-cost",
    "shard-sizes",
    "lpa-view",
    "convergence",
    "structure",
    "robustness",
    "community",
    "shards",
    "delta",
    "attack",
    "insertion",
    "sensitivity",
    "links",
)


def in_order() -> list[Experiment]:
    """Every experiment, in the order of the report."""
    rank = {name: place for place, name in enumerate(ORDER)}
    names = sorted(EXPERIMENTS, key=lambda name: rank.get(name, len(rank)))
    return [EXPERIMENTS.get(name) for name in names]


def register(experiment: Experiment) -> Experiment:
    """Make an experiment known by its name."""
    return EXPERIMENTS.add(experiment.name, experiment)


def experiment(
    name: str, title: str, label: str, cost: str, *cells: Callable[[Options], Any], **more: Any
) -> Callable[[Summarise], Summarise]:
    """Register the function below as the summary of an `Experiment` with these attributes.

    Every function of ``cells`` returns cells, in groups of any depth.
    """

    def every(options: Options) -> list[Cell]:
        return [cell for some in cells for cell in flat(some(options))]

    def made(summarise: Summarise) -> Summarise:
        register(Experiment(name, title, label, cost, every, summarise, **more))
        return summarise

    return made


def flat(cells: Any) -> Iterator[Cell]:
    """Walk a cell, or mappings and lists of them."""
    if isinstance(cells, Cell):
        yield cells
        return
    for part in cells.values() if isinstance(cells, Mapping) else cells:
        yield from flat(part)


def no_models(options: Options) -> tuple[str, ...]:
    """Return no models, for an experiment that trains none."""
    del options
    return ()
