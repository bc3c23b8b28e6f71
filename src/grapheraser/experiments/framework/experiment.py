"""An experiment: cells to run, and how their results become tables, a figure and claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.options import Options
from grapheraser.registry import Registry
from grapheraser.reports.tables import Table
from grapheraser.reports.wording import plural

HOLDS, PARTLY, FAILS, OPEN = "holds", "partly", "does not hold", "not tested"


@dataclass(frozen=True)
class Claim:
    """A conclusion of the paper, and what our figures say about it.

    Attributes:
        statement: the conclusion, in our words.
        verdict: holds, partly, does not hold, or not tested.
        evidence: the figures, in words.
        ours: whether the statement is this project's own instead of the paper's.
    """

    statement: str
    verdict: str
    evidence: str
    ours: bool = False


@dataclass(frozen=True)
class Summary:
    """The outcome of an experiment.

    Attributes:
        rows: tidy rows.
        tables: for people.
        claims: each with its verdict.
        draw: makes the figure, when it is wanted; None where there is nothing to draw.
        notes: what a reader should know.
    """

    rows: Sequence[dict[str, Any]]
    tables: Sequence[Table]
    claims: Sequence[Claim] = ()
    draw: Callable[[], Any] | None = None
    notes: Sequence[str] = ()


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
        one_run_in: 3 makes one run of every three that were asked for, where a run has very many
            cells.
    """

    name: str
    title: str
    label: str
    cost: str
    cells: Callable[[Options], list[Cell]]
    summarise: Callable[[Options, Results], Summary]
    datasets: tuple[str, ...] = ()
    one_run_in: int = 1


EXPERIMENTS: Registry[Experiment] = Registry("experiment")


def register(experiment: Experiment) -> Experiment:
    """Make an experiment known by its name."""
    return EXPERIMENTS.add(experiment.name, experiment)


def judged(good: int, total: int, *, holds: float = 0.8, partly: float = 0.4) -> str:
    """The verdict from the share of cases in which a statement is true."""
    if total == 0:
        return OPEN
    share = good / total
    return HOLDS if share >= holds else PARTLY if share >= partly else FAILS


def judged_claim(
    statement: str,
    cases: Sequence[bool],
    evidence: Callable[[str], str],
    *,
    noun: str = "case",
    holds: float = 0.8,
    partly: float = 0.4,
    ours: bool = False,
) -> list[Claim]:
    """A claim, judged by the share of cases in which it is true; none where there are no cases.

    Args:
        statement: the conclusion.
        cases: whether it is true in each of them.
        evidence: given ``9 of 12 cases``, the figures in words.
        noun: of a case.
        holds: from which share on it holds.
        partly: from which share on it holds partly.
        ours: see `Claim`.
    """
    if not cases:
        return []
    good, total = sum(cases), len(cases)
    words = evidence(f"{good} of {plural(total, noun)}")
    return [Claim(statement, judged(good, total, holds=holds, partly=partly), words, ours)]
