"""The paper's guideline for choosing a method, followed on every data set and GNN (our own)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import Experiment, Summary, register
from grapheraser.experiments.framework.means import Mean
from grapheraser.experiments.framework.noise import Difference, paired
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import named, shown
from grapheraser.experiments.framework.rules import Case, Finding, by_reading, rule
from grapheraser.experiments.framework.shared_cells import (
    AS_WRITTEN,
    SCRATCH,
    every_cell,
    f1_means,
    standing,
    utility_cells,
)
from grapheraser.experiments.paper import utility
from grapheraser.experiments.paper.utility import LABEL_FREE, as_read
from grapheraser.reports.tables import Table

# A gap between GNN and MLP that calls for structure; F1 that a choice may cost.
GAP, REGRET = 0.03, 0.02
METHODS = ("random", "blpa", "bekm")

# By data set, model and partition, with the chosen aggregation; scratch and the MLP from scratch.
Found = Mapping[tuple[str, str, str], Mean]


def advice(model: str, gap: float) -> str:
    """What the paper advises, from the lead of the GNN over the MLP."""
    if gap < GAP:
        return "random"
    return "blpa" if model.split(":", maxsplit=1)[0] == "gcn" else "bekm"


def regrets(found: Found) -> dict[tuple[str, str], tuple[float, str, str, Difference]]:
    """The gap, the advice, the best method, and how much better that one is."""
    out = {}
    for (d, m, p), scratch in found.items():
        mlp = found.get((d, "mlp", SCRATCH))
        there = {name: found[d, m, name] for name in METHODS if (d, m, name) in found}
        if p != SCRATCH or m == "mlp" or mlp is None or not there:
            continue
        gap = scratch.mean - mlp.mean
        advised = advice(m, gap)
        if advised in there:
            best = max(there, key=lambda name: there[name].mean)
            out[d, m] = (gap, advised, best, paired(there[best], there[advised]))
    return out


@rule(
    "guideline/advice",
    "If the gap in the F1 score between MLP and GNN is small, the Random method can be a good "
    "choice; otherwise, GraphEraser-BLPA and GraphEraser-BEKM are better choices.",
    f"Every data set and GNN: the method that the guideline names (random below a gap of {GAP}, "
    f"else BLPA for GCN and BEKM for the others) is at most {REGRET} below the best of the three.",
)
def good_advice(found: Found) -> Finding:
    """The regret of following it."""
    known = regrets(found)
    cases = [Case(named(*key), cost.at_most(REGRET)) for key, (_, _, _, cost) in known.items()]
    worst = max((cost for _, _, _, cost in known.values()), key=lambda c: c.mean, default=None)
    return Finding(cases, f"The largest regret: {worst}.")


def cells(options: Options) -> list[Cell]:
    """Shared with `utility` and `mlp`."""
    return [*every_cell(utility.groups(options)), *every_cell(_mlp(options))]


def _mlp(options: Options) -> dict[str, list[Cell]]:
    return {d: utility_cells(options, d, "mlp", SCRATCH) for d in options.datasets}


def summarise(options: Options, results: Results) -> Summary:
    """What would have been chosen, and what it would have cost."""
    label = options.how.chosen
    all_found = utility.means(options, results)
    mlp = {(d, "mlp", SCRATCH): mean for d, mean in f1_means(results, _mlp(options)).items()}
    readings = {AS_WRITTEN: False, LABEL_FREE: True} if options.how.free else {AS_WRITTEN: False}
    claims, rows, lines = {}, list[dict[str, Any]](), []
    for name, free in readings.items():
        read = as_read(all_found, free=free)
        chosen = {
            key[:3]: mean
            for key, mean in read.items()
            if key[3] == ("mean" if key[2] == SCRATCH else label)
        }
        known, out = standing({**chosen, **mlp})
        claims[name] = good_advice(known, left_out=out)
        for (d, m), (gap, advised, best, cost) in regrets(known).items():
            rows.append(
                {
                    "dataset": shown(d),
                    "model": shown(m),
                    "reading": name,
                    "gap": gap,
                    "advised": advised,
                    "best": best,
                    "regret": cost.mean,
                    "low": cost.low,
                    "high": cost.high,
                }
            )
            lines.append((shown(d), shown(m), name, f"{gap:+.3f}", advised, best, str(cost)))
    table = Table(
        f"The guideline followed ({label})",
        ("data set", "model", "reading", "GNN - MLP", "advised", "best", "best - advised"),
        tuple(lines),
        "In brackets the 95 % interval over the runs. Collapsed cells are no candidates.",
    )
    return Summary(rows, [table], by_reading(claims))


register(
    Experiment(
        "guideline",
        "The guideline for choosing a method",
        "",
        "nothing beside utility and mlp",
        cells,
        summarise,
    )
)
