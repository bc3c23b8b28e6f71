"""Time of the balanced partition methods (table:baseline_efficiency)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grapheraser.reports.tables import Entry, Table
from grapheraser.reports.wording import duration, three_figures
from grapheraser_lab.figures.bars import draw_bars
from grapheraser_lab.figures.curves import Curves, draw_curves
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import SWEEP_RUNS, Summary, experiment, no_models
from grapheraser_lab.framework.f1_curves import bars_of
from grapheraser_lab.framework.means import Mean, mean_of
from grapheraser_lab.framework.noise import paired, spread_of
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import Case, Finding, rule
from grapheraser_lab.framework.shared_cells import partition_cell

METHODS = ("blpa", "blpa-lp", "bekm", "bekm-hungarian", "metis")
MUCH_HIGHER, STEEP = 10.0, 2.0

# Seconds by data set and method.
Seconds = Mapping[tuple[str, str], Mean]


def _slower(found: Seconds, slow: str, fast: str, times: float = 1.0) -> Finding:
    """On how many data sets one method takes so many times as long as another."""
    cases, told = [], []
    for d in dict.fromkeys(key[0] for key in found):
        one, other = found.get((d, slow)), found.get((d, fast))
        if one is None or other is None:
            continue
        gap = paired(one, scaled(other, times))
        cases.append(Case(shown(d), gap.positive))
        published = paper.SECONDS.get((d, slow)), paper.SECONDS.get((d, fast))
        words = f"{shown(d)} {three_figures(one.mean / other.mean)}x"
        if published[0] is not None and published[1] is not None:
            words += f" (paper {three_figures(published[0] / published[1])}x)"
        told.append(words)
    return Finding(cases, f"Times as long: {', '.join(told)}.")


def scaled(mean: Mean, factor: float) -> Mean:
    """Return the figure times a number."""
    std = None if mean.std is None else mean.std * factor
    by_run = tuple((run, value * factor) for run, value in mean.by_run)
    return Mean(mean.mean * factor, std, mean.runs, mean.tested, by_run)


@rule(
    "partition-cost/blpa-lp",
    "GraphEraser-BLPA is more efficient than BLPA-LP.",
    "Every data set: BLPA-LP takes longer, beyond noise.",
    noun="data set",
)
def blpa_faster(found: Seconds) -> Finding:
    """Run by run."""
    return _slower(found, "blpa-lp", "blpa")


SIZES, PLACES = (240, 480, 960, 1920), 20
# Seconds of one reassignment by number of nodes: greedy, and by Kuhn and Munkres.
Assigned = Mapping[int, tuple[Mean, Mean]]


@rule(
    "partition-cost/hungarian",
    "The computational complexity of BEKM-Hungarian is much higher than that of GraphEraser-BEKM.",
    "One reassignment of nodes of Cora, by Kuhn and Munkres on costs of n by n as in the paper's "
    f"comparison: from {SIZES[1]} nodes on it takes more than {MUCH_HIGHER:g} times as long as "
    "BEKM's, beyond noise.",
    noun="size",
)
def hungarian_slower(found: Assigned) -> Finding:
    """Run by run, by size."""
    cases, told = [], []
    for n, (greedy, munkres) in found.items():
        gap = paired(munkres, scaled(greedy, MUCH_HIGHER))
        told.append(f"{n} nodes {three_figures(munkres.mean / greedy.mean)}x")
        if n >= SIZES[1]:
            cases.append(Case(f"{n} nodes", gap.positive))
    return Finding(cases, f"Times as long: {', '.join(told)}.")


@rule(
    "partition-cost/hungarian-scales",
    "We also observe that BEKM-Hungarian is not scalable to large graphs.",
    f"The time of Kuhn and Munkres grows with the number of nodes to the power of at least "
    f"{STEEP:g} (the paper names n cubed).",
)
def hungarian_does_not_scale(found: Assigned) -> Finding:
    """The slope of the logarithms."""
    if len(found) < 3:
        return Finding([], "")
    seconds = {n: munkres.mean for n, (_, munkres) in found.items()}
    x, y = np.log(np.array(list(seconds.items()), dtype=np.float64)).T
    power = float(np.polyfit(x, y, 1)[0])
    physics = seconds[max(seconds)] * (paper.GRAPHS["physics"][0] * 0.8 / max(seconds)) ** power
    told = (
        f"Its time grows with the power {power:.2f} of the nodes; by that one of up to 30 "
        f"reassignments of Physics would take {duration(physics)}. The package's own "
        "BEKM-Hungarian solves the same assignment as a transport problem with as many sinks as "
        "shards, in seconds (the table)."
    )
    return Finding([Case("power", power >= STEEP)], told)


def _assignment_cells(options: Options) -> dict[int, list[Cell]]:
    data = options.data("cora", 0)
    return {
        n: [
            Cell.of("assignment", **{**data, "seed": run}, nodes=n, num_shards=PLACES)
            for run in range(min(3, options.runs))
        ]
        for n in SIZES
        if "cora" in options.datasets
    }


def _assigned(options: Options, results: Results) -> dict[int, tuple[Mean, Mean]]:
    found = {}
    for n, cells in _assignment_cells(options).items():
        values = results.by_run(cells)
        pair = [
            mean_of({r: v[f"{w}_seconds"] for r, v in values.items()})
            for w in ("greedy", "munkres")
        ]
        if pair[0] is not None and pair[1] is not None:
            found[n] = pair[0], pair[1]
    return found


@rule(
    "partition-cost/metis",
    "BLPA is as fast as METIS, or faster.",
    "Every data set: METIS takes longer, beyond noise.",
    noun="data set",
    ours=True,
)
def metis_slower(found: Seconds) -> Finding:
    """The paper's table says so on four of five, its text does not."""
    return _slower(found, "metis", "blpa")


def methods(options: Options) -> tuple[str, ...]:
    """The paper's five, and the user's own."""
    return tuple(dict.fromkeys((*METHODS, *options.partitions)))


def partition_groups(
    options: Options, among: Sequence[str] | None = None
) -> dict[tuple[str, str], list[Cell]]:
    """The cells of each data set and method, one for each run."""
    return {
        (dataset, method): [
            partition_cell(options, dataset, method, run) for run in range(options.runs)
        ]
        for dataset in options.datasets
        for method in among or methods(options)
    }


def seconds_of(
    results: Results, groups: Mapping[tuple[str, str], list[Cell]], *, embedding: bool = False
) -> dict[tuple[str, str], Mean]:
    """Seconds of each partition, mean over the runs; with its embedding where that is wanted."""
    found = {}
    for key, group in groups.items():
        mean = mean_of(
            {
                run: value["seconds"] + (value["embedding_seconds"] if embedding else 0.0)
                for run, value in results.by_run(group).items()
            }
        )
        if mean is not None:
            found[key] = mean
    return found


@experiment(
    "partition-cost",
    "Time of the partition methods",
    "table:baseline_efficiency",
    "all five data sets 3 min a run; one process",
    partition_groups,
    _assignment_cells,
    models=no_models,
    most_runs=SWEEP_RUNS,
)
def summarise(options: Options, results: Results) -> Summary:
    """Seconds beside the paper's, and the share of edges that stay inside shards."""
    groups = partition_groups(options)
    found, assigned = seconds_of(results, groups), _assigned(options, results)
    runs: list[dict[str, Any]] = []
    kept: dict[tuple[str, str], Mean] = {}
    for (dataset, method), group in groups.items():
        known = results.by_run(group)
        runs += [_row(dataset, method, run, value) for run, value in known.items()]
        inside = mean_of({run: value["edges_kept"] for run, value in known.items()})
        if inside is not None:
            kept[dataset, method] = inside
    table = Table(
        "Time to partition the graph, and edges that stay inside shards",
        ("data set", *(shown(method) for method in methods(options))),
        tuple(
            (shown(d), *(_entry(found, kept, (d, m)) for m in methods(options)))
            for d in options.datasets
        ),
        "Mean and standard deviation over the runs, one thread, compiled code. The k-means methods "
        "are timed without their embedding, which all of them share; `cost` counts it.",
    )
    munkres = Table(
        "One reassignment: BEKM's, and by Kuhn and Munkres",
        ("nodes", "BEKM", "Kuhn-Munkres"),
        tuple((f"{n:,}", *(duration(mean.mean) for mean in pair)) for n, pair in assigned.items()),
        "Nodes of Cora, 20 shards, processor time, compiled code on both sides.",
    )
    return Summary(
        runs,
        [table, munkres] if assigned else [table],
        [
            *blpa_faster(found),
            *hungarian_slower(assigned),
            *hungarian_does_not_scale(assigned),
            *metis_slower(found),
        ],
        lambda: _figure(options, found),
    )


def _row(dataset: str, method: str, run: int, value: dict[str, Any]) -> dict[str, Any]:
    return {
        "dataset": shown(dataset),
        "method": method,
        "run": run,
        "seconds": value["seconds"],
        "embedding_seconds": value["embedding_seconds"],
        "paper_seconds": paper.SECONDS.get((dataset, method)),
        "edges_kept": value["edges_kept"],
        "largest": max(value["sizes"]),
        "capacity": value["capacity"],
        "iterations": value["iterations"],
    }


def _entry(found: Seconds, kept: Mapping[tuple[str, str], Mean], key: tuple[str, str]) -> Entry:
    told = paper.SECONDS.get(key)
    below = "" if told is None else f"paper {duration(told)}"
    mean = found.get(key)
    if mean is None:
        return Entry("-", below)
    text = duration(mean.mean)
    if mean.std is not None:
        text += f" ± {duration(mean.std)}"
    return Entry(f"{text}, {100 * kept[key].mean:.0f} % of edges kept", below)


def _figure(options: Options, found: Seconds) -> Any:
    lines = {shown(m): [found.get((d, m)) for d in options.datasets] for m in methods(options)}
    told = {m: [paper.SECONDS.get((d, m)) for d in options.datasets] for m in METHODS}
    panel = bars_of("partitioning the graph", options.datasets, lines, told)
    return draw_bars([panel], "seconds", log=True)


# -- how many nodes move in each iteration of BLPA and BEKM (figure:convergence) ----------------


ITERATIVE = ("blpa", "bekm")
STILL = 0.01

# Share of moved nodes in each iteration, by data set and method, for each run.
Moved = Mapping[tuple[str, str], Mapping[int, list[float]]]


@rule(
    "convergence/zero",
    "The ratio of moved nodes gradually approximates to zero within 30 iterations for both "
    "algorithms on all five datasets.",
    f"Every data set and method: in the last of at most 30 iterations at most {100 * STILL:.0f} % "
    "of the nodes move, over the runs.",
    noun="partition",
)
def comes_to_rest(moved: Moved) -> Finding:
    """The last iteration."""
    ends = {key: spread_of(shares[-1] for shares in runs.values()) for key, runs in moved.items()}
    cases = [Case(named(*key), end.at_most(STILL)) for key, end in ends.items()]
    worst = max((end.mean for end in ends.values()), default=0.0)
    return Finding(cases, f"At most {100 * worst:.2f} % move at the end.")


def _iterative_groups(options: Options) -> dict[tuple[str, str], list[Cell]]:
    return partition_groups(options, ITERATIVE)


@experiment(
    "convergence",
    "Convergence of BLPA and BEKM",
    "figure:convergence",
    "nothing beside partition-cost",
    _iterative_groups,
    models=no_models,
    most_runs=SWEEP_RUNS,
)
def summarise_convergence(options: Options, results: Results) -> Summary:
    """Share of moved nodes by iteration, and where it ends."""
    moved: dict[tuple[str, str], dict[int, list[float]]] = {}
    for key, group in _iterative_groups(options).items():
        for run, value in results.by_run(group).items():
            if value["moved"]:
                shares = [count / value["nodes"] for count in value["moved"]]
                moved.setdefault(key, {})[run] = shares
    rows: list[dict[str, Any]] = [
        {"dataset": shown(d), "method": m, "run": run, "iteration": i + 1, "moved": share}
        for (d, m), runs in moved.items()
        for run, shares in runs.items()
        for i, share in enumerate(shares)
    ]
    table = Table(
        "Share of nodes that still move",
        ("data set", "method", "iterations", "after 1", "after 5", "after 10", "at the end"),
        tuple(_line(key, list(runs.values())) for key, runs in moved.items()),
        "Means over the runs. At most 30 iterations; fewer where nothing moved any more.",
    )
    return Summary(rows, [table], comes_to_rest(moved), lambda: _moved_figure(moved))


def _line(key: tuple[str, str], runs: list[list[float]]) -> tuple[str, ...]:
    lengths = [len(shares) for shares in runs]
    places = (1, 5, 10, max(lengths))
    means = [np.mean([shares[min(i, len(shares)) - 1] for shares in runs]) for i in places]
    span = (
        f"{min(lengths)}" if min(lengths) == max(lengths) else f"{min(lengths)} to {max(lengths)}"
    )
    return (shown(key[0]), key[1], span, *(f"{100 * mean:.2f} %" for mean in means))


def _moved_figure(moved: Moved) -> Any:
    panels = []
    for method in ITERATIVE:
        series = {}
        for (d, m), runs in moved.items():
            if m != method:
                continue
            longest = max(map(len, runs.values()))
            # A partition that came to rest stays there.
            whole = np.array([s + [0.0] * (longest - len(s)) for s in runs.values()]) * 100
            spread = whole.std(axis=0, ddof=1) if len(whole) > 1 else np.zeros(longest)
            x = list(range(1, longest + 1))
            series[shown(d)] = (x, whole.mean(axis=0).tolist(), spread.tolist())
        panels.append(Curves(method.upper(), series))
    return draw_curves(panels, "iteration", "moved nodes (%)", columns=2, whole_x=True)
