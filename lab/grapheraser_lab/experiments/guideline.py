"""The paper's guideline for choosing a method, followed on every data set and GNN (our own)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grapheraser.reports.tables import Entry, Table
from grapheraser_lab.experiments import utility
from grapheraser_lab.experiments.utility import as_read
from grapheraser_lab.figures.bars import draw_bars
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import Summary, experiment
from grapheraser_lab.framework.f1_curves import bars_of
from grapheraser_lab.framework.means import Mean, entry, heights, run_rows
from grapheraser_lab.framework.noise import Difference, paired
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import Case, Finding, by_reading, rule
from grapheraser_lab.framework.shared_cells import SCRATCH, f1_means, utility_cells

# A gap between GNN and MLP that calls for structure; F1 that a choice may cost.
GAP, REGRET = 0.03, 0.02
METHODS = ("random", "blpa", "bekm")

# By data set, model and partition, with the chosen aggregation; scratch and the MLP from scratch.
Found = Mapping[tuple[str, str, str], Mean]


def advice(model: str, gap: float) -> str:
    """Return the paper's advice, from the lead of the GNN over the MLP."""
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


def _mlp(options: Options) -> dict[str, list[Cell]]:
    return {d: utility_cells(options, d, "mlp", SCRATCH) for d in options.datasets}


@experiment(
    "guideline",
    "The guideline for choosing a method",
    "",
    "nothing beside utility and mlp",
    utility.groups,
    _mlp,
)
def summarise(options: Options, results: Results) -> Summary:
    """Tell what would have been chosen, and at which cost."""
    label = options.how.chosen
    all_found = utility.means(options, results)
    mlp = {(d, "mlp", SCRATCH): mean for d, mean in f1_means(results, _mlp(options)).items()}
    claims, rows, lines = {}, list[dict[str, Any]](), []
    for name in options.how.bekm:
        read = as_read(options, all_found, name)
        chosen = {
            key[:3]: mean
            for key, mean in read.items()
            if key[3] == ("mean" if key[2] == SCRATCH else label)
        }
        known = {**chosen, **mlp}
        claims[name] = good_advice(known)
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
        "In brackets the 95 % interval over the runs.",
    )
    return Summary(rows, [table], by_reading(claims, leads=options.how.leads))


# -- MLP against the GNNs: how much the structure matters (table:mlp) ---------------------------


LARGE, SMALL = 0.03, 0.02
STRUCTURED = ("cora", "citeseer")

# By data set and model.
Scores = Mapping[tuple[str, str], Mean]


def _gaps(found: Scores) -> dict[tuple[str, str], str]:
    return {
        (d, m): str(paired(mean, found[d, "mlp"]))
        for (d, m), mean in found.items()
        if m != "mlp" and (d, "mlp") in found
    }


def _told(found: Scores) -> str:
    told = ", ".join(f"{named(*key)} {gap}" for key, gap in _gaps(found).items())
    return f"GNN minus MLP: {told}."


@rule(
    "mlp/below",
    "For the Cora and Citeseer datasets, the F1 score of the MLP model is significantly lower than "
    "that of the GNN models.",
    f"Cora and Citeseer, every GNN: it is above the MLP by at least {LARGE}, beyond noise.",
)
def mlp_below(found: Scores) -> Finding:
    """Every GNN, not only the best."""
    cases = [
        Case(named(d, m), paired(mean, found[d, "mlp"]).above(LARGE))
        for (d, m), mean in found.items()
        if d in STRUCTURED and m != "mlp" and (d, "mlp") in found
    ]
    return Finding(cases, _told({key: mean for key, mean in found.items() if key[0] in STRUCTURED}))


@rule(
    "mlp/adequate",
    "The MLP model can achieve adequate F1 score compared to the GNN models on Pubmed, CS, and "
    "Physics datasets.",
    f"Pubmed, CS and Physics, every GNN: it is above the MLP by at most {SMALL}.",
)
def mlp_adequate(found: Scores) -> Finding:
    """Every GNN."""
    there = {key: mean for key, mean in found.items() if key[0] in ("pubmed", "cs", "physics")}
    cases = [
        Case(named(d, m), paired(mean, there[d, "mlp"]).at_most(SMALL))
        for (d, m), mean in there.items()
        if m != "mlp" and (d, "mlp") in there
    ]
    return Finding(cases, _told(there))


def _models(options: Options) -> tuple[str, ...]:
    return tuple(dict.fromkeys(("mlp", *options.models)))


def _groups(options: Options) -> dict[tuple[str, str], list[Cell]]:
    return {
        (d, model): utility_cells(options, d, model, SCRATCH)
        for d in options.datasets
        for model in _models(options)
    }


@experiment(
    "mlp",
    "MLP against the GNNs",
    "table:mlp",
    "nothing beside utility but the MLP: seconds to 2 min a run",
    _groups,
    models=_models,
)
def summarise_mlp(options: Options, results: Results) -> Summary:
    """F1 of each model on each data set, and the gap between the best GNN and the MLP."""
    found = f1_means(results, _groups(options))
    table_rows: list[tuple[Entry | str, ...]] = [
        (
            shown(model),
            *(entry(found.get((d, model)), paper.MLP.get((d, model))) for d in options.datasets),
        )
        for model in _models(options)
    ]
    header = ("model", *(shown(dataset) for dataset in options.datasets))
    table = Table("Micro F1 from scratch", header, tuple(table_rows), "▲ and ▼ as in utility.")
    names = {shown(m): [(d, m) for d in options.datasets] for m in _models(options)}
    got = {name: [found.get(key) for key in keys] for name, keys in names.items()}
    told = {name: heights(paper.MLP.get(key) for key in keys) for name, keys in names.items()}
    bars = bars_of("training from scratch", options.datasets, got, told)
    return Summary(
        run_rows(found, ("dataset", "model")),
        [table],
        [*mlp_below(found), *mlp_adequate(found)],
        lambda: draw_bars([bars], "micro F1", limits=(0, 1)),
    )
