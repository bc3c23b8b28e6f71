"""LBAggr learned from 10 %, 1000 or all training nodes (table:opt_samples)."""

from __future__ import annotations

from collections.abc import Mapping

from grapheraser.reports.tables import Entry, Table
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import Summary, experiment
from grapheraser_lab.framework.f1_curves import draw_f1
from grapheraser_lab.framework.means import Mean, entry, run_rows
from grapheraser_lab.framework.noise import paired
from grapheraser_lab.framework.options import AS_WRITTEN, Options
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import Case, Finding, by_reading, rule
from grapheraser_lab.framework.shared_cells import (
    SAMPLED,
    SAMPLES,
    f1_means,
    sample_texts,
    utility_groups,
)

COMPARABLE = 0.02
# LBAggr that is nearer to the mean than this learned nothing that a sample could change.
NOTHING = 0.005
MEAN, BLPA = "mean", "blpa"

# By data set, model, partition and sample; `MEAN` for the plain mean of the same shards.
Found = Mapping[tuple[str, str, str, str], Mean]


@rule(
    "samples/comparable",
    "Both using 10% of nodes and using a fixed number of 1,000 nodes can achieve comparable model "
    "utility as that of using all nodes.",
    f"BEKM, every data set and GNN where LBAggr from all nodes differs from the mean by at least "
    f"{NOTHING}: F1 from 10 % and from 1,000 nodes is within {COMPARABLE} of F1 from all.",
)
def comparable(found: Found) -> Finding:
    """Cases in which LBAggr learned nothing would hold whatever the sample."""
    cases, vacuous = [], 0
    for (d, m, p, label), mean in found.items():
        whole, plain = found.get((d, m, p, "all")), found.get((d, m, p, MEAN))
        if label not in ("10%", "1000") or whole is None or plain is None:
            continue
        if abs(whole.mean - plain.mean) < NOTHING:
            vacuous += 1
        else:
            cases.append(Case(named(d, m, p, label), paired(mean, whole).within(COMPARABLE)))
    told = f"In {vacuous} more cases LBAggr is the mean, whatever it learns from."
    return Finding(cases, told)


same_for_blpa = rule(
    "samples/blpa",
    "The conclusions are the same for GraphEraser-BLPA.",
    f"The same test on BLPA: F1 from 10 % and from 1,000 nodes is within {COMPARABLE} of F1 from "
    "all.",
)(comparable.find)


def _partitions(options: Options) -> tuple[str, ...]:
    return tuple(p for p in SAMPLED if p in options.main_partitions)


def _groups(options: Options) -> dict[tuple[str, str, str], list[Cell]]:
    return utility_groups(options, _partitions(options))


@experiment(
    "samples",
    "How many nodes LBAggr learns from",
    "table:opt_samples",
    "nothing beside utility",
    _groups,
)
def summarise(options: Options, results: Results) -> Summary:
    """F1 by sample, beside the paper's; under both ways to learn LBAggr."""
    groups = _groups(options)
    plain = {(*key, MEAN): mean for key, mean in f1_means(results, groups).items()}
    found: dict[str, dict[tuple[str, str, str, str], Mean]] = {}
    for (reading, label), text in sample_texts(options).items():
        scores = f1_means(results, groups, text)
        found.setdefault(reading, {}).update({(*k, label): mean for k, mean in scores.items()})
    columns = ("dataset", "model", "partition", "sample")
    rows, claims, same = [], {}, {}
    for reading, some in found.items():
        rows += run_rows(some, columns, solver=reading)
        every = {**some, **plain}
        claims[reading] = comparable({k: v for k, v in every.items() if k[2] != BLPA})
        same[reading] = same_for_blpa({k: v for k, v in every.items() if k[2] == BLPA})
    first = next(iter(found.values()), {})
    shown_partition = next(iter(options.how.bekm.values()))
    return Summary(
        rows,
        [_table(options, some, reading) for reading, some in found.items()],
        [*by_reading(claims), *by_reading(same)],
        lambda: draw_f1(
            options,
            {label: (shown_partition, label) for label in SAMPLES},
            first,
            lambda d, m, p, label: paper.SAMPLES.get((d, m, label)),
        ),
        notes=(
            [f"{AS_WRITTEN}: the scores hardly leave 1/k, so the sample can't matter; see utility."]
            if AS_WRITTEN in found
            else []
        ),
    )


def _published(dataset: str, model: str, partition: str, label: str) -> paper.Published | None:
    return paper.SAMPLES.get((dataset, model, label)) if partition == "bekm" else None


def _table(options: Options, found: Found, reading: str) -> Table:
    rows: list[tuple[Entry | str, ...]] = [
        (
            shown(model),
            partition,
            label,
            *(
                entry(
                    found.get((d, model, partition, label)), _published(d, model, partition, label)
                )
                for d in options.datasets
            ),
        )
        for model in options.models
        for partition in _partitions(options)
        for label in SAMPLES
    ]
    header = ("model", "partition", "nodes", *(shown(dataset) for dataset in options.datasets))
    title = f"Micro F1 by the nodes that LBAggr learns from ({reading})"
    return Table(title, header, tuple(rows), "†, ▲ and ▼ as in utility.")
