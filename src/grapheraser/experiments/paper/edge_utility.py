"""F1 after edges were forgotten (table:edge_unlearning_utility_optimal).

The paper does not say what was deleted. Here 100 random edges of the training graph are, after it
was partitioned, and F1 is that of the ensemble afterwards; scratch is trained on what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import Experiment, Summary, register
from grapheraser.experiments.framework.f1_bars import draw_f1
from grapheraser.experiments.framework.means import Mean, entry, run_rows, tidy_rows
from grapheraser.experiments.framework.noise import paired
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import named, shown
from grapheraser.experiments.framework.rules import EVERY, Case, Claim, Finding, rule
from grapheraser.experiments.framework.shared_cells import (
    SCRATCH,
    every_cell,
    f1_means,
    standing,
    utility_cells,
)
from grapheraser.experiments.paper import published as paper
from grapheraser.experiments.paper.utility import MARKS, about_partitions
from grapheraser.reports.tables import Entry, Table

FORGET = {"what": "edges", "count": 100}
AS_BEFORE = 0.01

Key = tuple[str, str, str]


@rule(
    "edges/same-conclusions",
    "We reach similar conclusions as node unlearning.",
    "Each of the paper's sentences on partitions has the same verdict on the figures after 100 "
    "edges were forgotten as on those of the node table.",
    limits=EVERY,
    noun="sentence",
)
def same_conclusions(before: Sequence[Claim], after: Sequence[Claim]) -> Finding:
    """Compares verdicts, not figures."""
    theirs = {claim.rule: claim.verdict for claim in before}
    both = [claim for claim in after if claim.rule in theirs]
    cases = [Case(claim.rule, claim.verdict == theirs[claim.rule]) for claim in both]
    moved = [
        f"{claim.rule}: {theirs[claim.rule]}, after edges {claim.verdict}"
        for claim in both
        if claim.verdict != theirs[claim.rule]
    ]
    return Finding(cases, f"Differently judged: {'; '.join(moved) or 'none'}.")


@rule(
    "edges/f1-as-before",
    "Forgetting 100 edges leaves F1 as it was.",
    f"Every data set, GNN and method: F1 after and before differ by at most {AS_BEFORE}.",
    ours=True,
)
def f1_as_before(before: Mapping[Key, Mean], after: Mapping[Key, Mean]) -> Finding:
    """Run by run."""
    gaps = {key: paired(mean, before[key]) for key, mean in after.items() if key in before}
    cases = [Case(named(*key), gap.within(AS_BEFORE)) for key, gap in gaps.items()]
    moved = np.mean([abs(gap.mean) for gap in gaps.values()]) if gaps else 0.0
    return Finding(cases, f"It moves by {moved:.4f} on average.")


def _methods(options: Options) -> tuple[str, ...]:
    return (SCRATCH, *options.main_partitions)


def _groups(options: Options, *, after: bool) -> dict[Key, list[Cell]]:
    forget = FORGET if after else None
    return {
        (dataset, model, partition): utility_cells(
            options, dataset, model, partition, forget=forget
        )
        for dataset, model in options.pairs
        for partition in _methods(options)
    }


def _means(options: Options, results: Results, *, after: bool) -> dict[Key, Mean]:
    """With the chosen aggregation; scratch has one shard and nothing to aggregate."""
    groups = _groups(options, after=after)
    scratch = {key: group for key, group in groups.items() if key[2] == SCRATCH}
    found = f1_means(results, scratch) | f1_means(results, groups, options.chosen)
    return {key: found[key] for key in groups if key in found}


def cells(options: Options) -> list[Cell]:
    """Before (shared with `utility`) and after the edges are gone."""
    return [cell for after in (False, True) for cell in every_cell(_groups(options, after=after))]


def _judged(options: Options, found: Mapping[Key, Mean]) -> list[Claim]:
    label = options.how.chosen
    full = {(*key, "mean" if key[2] == SCRATCH else label): mean for key, mean in found.items()}
    return about_partitions(options, full)


def summarise(options: Options, results: Results) -> Summary:
    """F1 after 100 edges, beside the paper's; and how far it is from before."""
    before, found = (_means(options, results, after=after) for after in (False, True))
    columns = ("dataset", "model", "partition")
    rows = tidy_rows(found, columns, paper.EDGE_UTILITY.get)
    for key, row in zip(found, rows, strict=True):
        row["before_mean"] = before[key].mean if key in before else None
    table_rows: list[tuple[Entry | str, ...]] = [
        (
            shown(dataset),
            shown(model),
            *(
                entry(found.get(key), paper.EDGE_UTILITY.get(*key))
                for key in ((dataset, model, method) for method in _methods(options))
            ),
        )
        for dataset, model in options.pairs
    ]
    table = Table(
        f"Micro F1 after 100 edges were forgotten ({options.how.chosen})",
        ("data set", "model", *(shown(method) for method in _methods(options))),
        tuple(table_rows),
        MARKS,
    )
    series = {shown(method): (method,) for method in _methods(options)}
    known, out = standing(found)
    return Summary(
        rows,
        [table],
        [
            *same_conclusions(_judged(options, before), _judged(options, found)),
            *f1_as_before(before, known, left_out=out),
        ],
        lambda: draw_f1(options, series, found, paper.EDGE_UTILITY.get),
        runs=run_rows(found, columns),
    )


register(
    Experiment(
        "edge-utility",
        "F1 after edges were forgotten",
        "table:edge_unlearning_utility_optimal",
        "as utility",
        cells,
        summarise,
    )
)
