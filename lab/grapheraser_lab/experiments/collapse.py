"""Dominance: shards that know one class, and ensembles that answer with it (our own).

Everything is of cells that `utility` measures. It stands first in the report, because half of the
paper's sentences about BEKM can't be judged before it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.reports.tables import Table
from grapheraser_lab.experiments.utility import groups
from grapheraser_lab.figures.points import Points, draw_points
from grapheraser_lab.framework.cell import Results
from grapheraser_lab.framework.experiment import Summary, experiment
from grapheraser_lab.framework.means import COLLAPSED, Mean
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import Case, Finding, rule
from grapheraser_lab.framework.shared_cells import NO_BETTER, ONE_LABEL, SCRATCH, f1_means

Key = tuple[str, str, str]
PURE = 0.5


@dataclass(frozen=True)
class Standing:
    """One cell, mean over its runs.

    Attributes:
        f1: with the chosen aggregation.
        majority: F1 of always answering with the most frequent class.
        one_label: largest share of the test nodes that gets one label.
        entropy: of the labels inside a shard, in bits.
        whole: of all training labels.
    """

    f1: Mean
    majority: float
    one_label: float
    entropy: float
    whole: float


@rule(
    "collapse/pure-shards",
    "Ensembles collapse where shards are nearly pure in their labels, and nowhere else.",
    f"Every data set, GNN and partition whose shards are nearly pure (entropy of labels inside a "
    f"shard less than {PURE:g} of that of all labels) or that has collapsed: it is both.",
    ours=True,
)
def pure_shards(found: dict[Key, Standing]) -> Finding:
    """Entropy against collapse; a cell with neither says nothing."""
    shards = {key: cell for key, cell in found.items() if key[2] != SCRATCH}
    pure = {key for key, cell in shards.items() if cell.entropy < PURE * cell.whole}
    gone = {key for key, cell in shards.items() if cell.f1.collapsed}
    told = f"Of {len(shards)} cells {len(pure)} have nearly pure shards, {len(gone)} have collapsed"
    return Finding(
        [Case(named(*key), key in pure & gone) for key in shards if key in pure | gone],
        f"{told}, {len(pure & gone)} are both.",
    )


def standings(options: Options, results: Results) -> dict[Key, Standing]:
    """Every cell of the main table with the chosen aggregation; scratch has the mean."""
    all_groups = groups(options)
    scratch = {key: group for key, group in all_groups.items() if key[2] == SCRATCH}
    f1 = f1_means(results, scratch) | f1_means(results, all_groups, options.chosen)
    found = {}
    for key, mean in f1.items():
        text = "mean" if key[2] == SCRATCH else options.chosen
        values = [v for cell in all_groups[key] if (v := results.value(cell)) is not None]

        def average(figures: Sequence[float | None]) -> float:
            known = [figure for figure in figures if figure is not None]
            return float(np.mean(known)) if known else float("nan")  # restored without it

        found[key] = Standing(
            mean,
            average([v["majority_f1"] for v in values]),
            average([v["one_label"][text] for v in values]),
            average([v["label_entropy"] for v in values]),
            average([v["label_entropy_whole"] for v in values]),
        )
    return found


@experiment(
    "collapse", "What dominates: shards that know one class", "", "nothing beside utility", groups
)
def summarise(options: Options, results: Results) -> Summary:
    """Each cell beside the most frequent class, the released code's figures, and why."""
    found = standings(options, results)
    ordered = {key: found[key] for key in groups(options) if key in found}
    rows: list[dict[str, Any]] = [
        {
            "dataset": shown(d),
            "model": shown(m),
            "partition": p,
            "run": run,
            "f1": f1,
            "majority_f1": cell.majority,
            "one_label": cell.one_label,
            "label_entropy": cell.entropy,
            "label_entropy_whole": cell.whole,
            "collapsed": cell.f1.collapsed,
        }
        for (d, m, p), cell in ordered.items()
        for run, f1 in cell.f1.by_run
    ]
    tables = [_table(options, ordered)]
    if options.how.of_paper:
        tables.append(_released(options, ordered))
    return Summary(
        rows,
        tables,
        pure_shards(ordered),
        lambda: _figure(options, ordered),
        notes=[_NOTE] if options.how.of_paper else [],
        opening=_opening(options, ordered, results),
    )


def _table(options: Options, found: dict[Key, Standing]) -> Table:
    return Table(
        f"Every cell beside the most frequent class ({options.how.chosen})",
        (
            "data set",
            "model",
            "partition",
            "F1",
            "most frequent class",
            "one label for",
            "label entropy in a shard",
            "of all labels",
        ),
        tuple(
            (
                shown(d),
                shown(m),
                p,
                str(cell.f1),
                f"{cell.majority:.3f}",
                "-" if math.isnan(cell.one_label) else f"{100 * cell.one_label:.0f} %",
                f"{cell.entropy:.2f} bits",
                f"{cell.whole:.2f} bits",
            )
            for (d, m, p), cell in found.items()
        ),
        f"{COLLAPSED} collapsed: one label for at least {100 * ONE_LABEL:.0f} % of the test nodes, "
        f"or F1 less than {NO_BETTER} above the most frequent class. Such cells are marked in all "
        "tables and count as failures.",
    )


def _released(options: Options, found: dict[Key, Standing]) -> Table:
    """Beside ours: the same partitions, the chosen aggregation."""
    labelled = "bekm" if "bekm-labels" not in options.main_partitions else "bekm-labels"
    ours = {"scratch": SCRATCH, "random": "random", "blpa": "blpa", "mapped": labelled}
    rows = []
    for dataset, model in options.pairs:
        if (dataset, model, SCRATCH) not in RELEASED:
            continue
        line = [shown(dataset), shown(model)]
        for partition in PARTITIONS:
            line.append(printed(dataset, model, partition))
            if partition in ours:
                key = (dataset, model, ours[partition])
                line.append(str(found[key].f1) if key in found else "-")
        rows.append(tuple(line))
    header = ["data set", "model"]
    for partition in PARTITIONS:
        name = {"shipped": "BEKM as shipped", "mapped": "BEKM, ids mapped back"}.get(
            partition, partition
        )
        header += [f"released: {name}", *(["ours"] if partition in ours else [])]
    return Table(
        "What the paper's released code gives, beside ours",
        tuple(header),
        tuple(rows),
        "Released code: mean / vote / LBAggr, 10 % test nodes, one run, smallest patches that make "
        "it run; one standard error is 0.02 to 0.03. As shipped, its BEKM returns row numbers as "
        "if they were ids: its shards hold arbitrary nodes, and most test nodes are trained on "
        f"with their labels. Ours: {options.how.chosen}.",
    )


def _opening(options: Options, found: dict[Key, Standing], results: Results) -> list[str]:
    if not found:
        return []
    gone = [key for key, cell in found.items() if cell.f1.collapsed]
    if not options.how.of_paper:
        return [
            f"In this protocol {len(gone)} of {len(found)} cells of the main table have collapsed "
            "(answers that say no more than the most frequent class). Shards are asked node by "
            "node and pooled with members that see the whole training graph, so the partition "
            "hardly matters: sentences on the merits of BLPA and BEKM fail for want of a gap."
        ]

    def told(partition: str) -> str:
        some = {key: cell for key, cell in found.items() if key[2] == partition}
        cells = {key: group for key, group in groups(options).items() if key in some}
        texts = [options.how.aggregations[name] for name in AGGREGATIONS]
        bad = [sum(m.collapsed for m in f1_means(results, cells, text).values()) for text in texts]
        pure = np.mean([cell.entropy / cell.whole for cell in some.values()]) if some else 0.0
        return (
            f"{' / '.join(map(str, bad))} of {len(some)} cells, {100 * pure:.0f} % of the entropy "
            "of all labels in a shard"
        )

    by_name = [f"{name} ({label}): {told(label)}" for name, label in options.how.bekm.items()]
    return [
        "What BEKM clusters decides most. An embedding that was trained on labels makes shards of "
        "one or two classes, and each answers everybody with its own. Collapsed, that is hardly "
        "better than the most frequent class, with mean / vote / LBAggr, by reading of BEKM: "
        f"{'; '.join(by_name)}. Such figures are marked with † and count as failures."
    ]


_NOTE = (
    "The released code with its ids mapped back collapses with GAT and GraphSAGE and, on Citeseer, "
    "nearly so with GIN; with GCN its vote does, and its LBAggr on Citeseer, but not its mean. "
    "Weights at the minimum of LBAggr's objective lift collapsed cells a good way, on CS and "
    "Physics above all (convex, in utility)."
)


def _figure(options: Options, found: dict[Key, Standing]) -> Any:
    panels = []
    for dataset in options.datasets:
        some = {k: c for k, c in found.items() if k[0] == dataset and k[2] != SCRATCH}
        if not some:
            continue
        panels.append(
            Points(
                shown(dataset),
                [cell.entropy for cell in some.values()],
                [cell.f1.mean for cell in some.values()],
                colours=[key[2] for key in some],
                line=next(iter(some.values())).majority,
            )
        )
    return draw_points(
        panels,
        "label entropy inside a shard (bits)",
        "micro F1; dashed: most frequent class",
        columns=2,
        limits=(0, 1),
    )


# -- what the paper's released code gives when it is run: figures to print beside ours ----------


_FILE = Path(__file__).resolve().parents[2] / "results" / "released.json"
AGGREGATIONS = ("mean", "majority", "learned")
PARTITIONS = ("scratch", "random", "blpa", "shipped", "mapped")


# By data set, model and partition: one figure for scratch, else one for each of `AGGREGATIONS`.
RELEASED: dict[tuple[str, str, str], tuple[float, ...]] = {
    (row["dataset"], row["model"], row["partition"]): tuple(row["f1"])
    for row in json.loads(_FILE.read_text())["rows"]
}


def printed(dataset: str, model: str, partition: str) -> str:
    """The figures of a cell, or a dash."""
    return " / ".join(f"{f:.3f}" for f in RELEASED.get((dataset, model, partition), ())) or "-"
