"""Ways to read the paper, and how far each is from its tables (our own).

The text leaves choices open. Every combination of them is measured on Cora and Citeseer; the one
that comes nearest to the published F1 on half of the cells is protocol `paper`, and its distance is
told on the other half. Nothing beyond what the text leaves open is chosen here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from grapheraser.reports.tables import Table
from grapheraser.reports.wording import plural
from grapheraser_lab.experiments.collapse import AGGREGATIONS, RELEASED
from grapheraser_lab.figures.bars import Bars, draw_bars
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import Summary, experiment
from grapheraser_lab.framework.means import Mean, signed
from grapheraser_lab.framework.options import NO_DROPOUT, Options
from grapheraser_lab.framework.resolve import shown
from grapheraser_lab.framework.shared_cells import SCRATCH, f1_means, utility_cells, utility_groups

# Each choice with its values by name; the first is the word of the text, or our first choice.
CHOICES: dict[str, dict[str, str]] = {
    "features": {"as they are": "", "rows divided by their sums": "rows"},
    "dropout": {"of the code, in all epochs": "", "none": NO_DROPOUT},
    "prediction": {"on the whole graph": "", "on the shard and the test nodes": "@shard"},
    "BEKM's embedding": {
        "hidden units, labels": "bekm(embedding=sage)",
        "first layer, no labels": "bekm(embedding=layer1)",
        "second layer, no labels": "bekm(embedding=layer2)",
        "fourth layer, no labels": "bekm(embedding=layer4)",
    },
    "LBAggr": {
        "steps with a softmax of the scores": "lbaggr(reading=steps)",
        "minimum of the objective": "lbaggr",
        "softmax of the posteriors in the loss": "lbaggr(reading=softmax)",
    },
}
PARTITIONS = ("random", "blpa", "bekm")
# The readings are searched on these; the closest one is then told on all of the paper's graphs.
SEARCHED = ("cora", "citeseer")
# Of the grid; a distance is a mean over 80 cells, which says enough.
RUNS = 3
# What is asked of the closest reading, by partition on the graphs of the search, and over all.
BARS = {SCRATCH: 0.10, "random": 0.10, "blpa": 0.13, "bekm": 0.14}
BAR = 0.09
# The released code's settings, all at once: its rates, its capacity, its clusters, its average.
_CODE = {"gcn": ", lr=0.05, weight_decay=0.0001", "gin": ", weight_decay=0.0001"}
CAPACITY = 0.005
# Taken out of the training graph by the released code's default, for one of its experiments.
MISSING_EDGES = 0.9
MISSING = "closest, 90 % of the training edges missing"
FIVE = "closest, five data sets"

Reading = tuple[str, ...]
# F1 by data set, model and the paper's column (``scratch``, ``blpa/mean``).
Figures = dict[tuple[str, str, str], Mean]


@dataclass(frozen=True)
class Distance:
    """Mean |F1 - published| by partition and over all cells; above, the mean with its sign."""

    parts: Mapping[str, float]
    every: float
    cells: int
    above: float


def distance(figures: Figures, *, half: int | None = None) -> Distance | None:
    """Over all cells that there are, or over every other pair of data set and model."""
    gaps: dict[str, list[float]] = {}
    for (d, m, column), mean in figures.items():
        told = paper.UTILITY.get(d, m, column)
        if told is not None and half in (None, half_of(d, m)):
            gaps.setdefault(column.split("/")[0], []).append(mean.mean - told.mean)
    every = [gap for some in gaps.values() for gap in some]
    if not every:
        return None
    means = {part: float(np.mean(np.abs(some))) for part, some in gaps.items()}
    return Distance(means, float(np.mean(np.abs(every))), len(every), float(np.mean(every)))


def half_of(dataset: str, model: str) -> int:
    """A chequerboard: each half has every data set, and every model."""
    return (paper.DATASETS.index(dataset) + paper.MODELS.index(model)) % 2


def _cells(
    options: Options,
    d: str,
    m: str,
    method: str,
    texts: list[str],
    *,
    features: str,
    dropout: str,
    view: str = "",
    **special: Any,
) -> list[Cell]:
    preset = f"{m}:paper({dropout})" if dropout else f"{m}:paper"
    given = {"features": features, "view": view, "aggregations": texts, **special}
    return utility_cells(options, d, preset, method, **given)


def _pairs(options: Options, among: Sequence[str] = SEARCHED) -> Iterator[tuple[str, str]]:
    return ((d, m) for d, m in options.pairs if d in among and m in paper.MODELS)


Groups = dict[tuple[str, str, str], list[Cell]]


def _grid(options: Options) -> dict[tuple[str, ...], Groups]:
    """By features, dropout and partition: the cells of every data set and model."""
    first, second, third, fourth, fifth = (tuple(c.values()) for c in CHOICES.values())
    texts = ["learned", *(f"{a}{v}" for a in ("mean", "majority", *fifth) for v in third)]
    return {
        (features, dropout, method): {
            (d, m, method): _cells(options, d, m, method, texts, features=features, dropout=dropout)
            for d, m in _pairs(options)
        }
        for features, dropout in product(first, second)
        for method in (SCRATCH, "random", "blpa", *fourth)
    }


def _released(options: Options) -> Groups:
    """The released code's settings, all at once."""
    texts = ["log-mean", "majority", "released"]
    methods = {**{p: p for p in PARTITIONS[:2]}, "bekm": "bekm(embedding=logits)"}
    return {
        (d, m, label): _cells(
            options,
            d,
            m,
            methods.get(label, label),
            texts,
            features="rows",
            dropout=NO_DROPOUT + _CODE.get(m, ""),
            view="shard",
            gamma=0.0 if label == SCRATCH else CAPACITY,
        )
        for d, m in _pairs(options, paper.DATASETS)
        for label in (SCRATCH, *methods)
    }


@cache
def closest(options: Options) -> Reading:
    """The reading that protocol `paper` is, as values of `CHOICES`."""
    how = replace(options, protocol="paper").how
    dropout = next(iter(how.model_options.values()))
    learned = how.aggregations["learned"]
    return (how.features, dropout, f"@{how.view}", how.partitions["bekm"], learned)


def _missing(options: Options) -> Groups:
    """The closest reading without most training edges, which no text admits."""
    features, dropout, view, bekm, learned = closest(options)
    texts = ["mean", "majority", learned]
    methods = {SCRATCH: SCRATCH, "random": "random", "blpa": "blpa", "bekm": bekm}
    given = {"features": features, "dropout": dropout, "view": view.removeprefix("@")}
    return {
        (d, m, label): _cells(options, d, m, method, texts, drop_edges=MISSING_EDGES, **given)
        for d, m in _pairs(options)
        for label, method in methods.items()
    }


def _closest(options: Options) -> Groups:
    """The main table of protocol paper, which is the closest reading, on all data sets."""
    here = replace(options, protocol="paper")
    return {
        (d, m, p): utility_cells(here, d, m, p)
        for d, m in _pairs(options, paper.DATASETS)
        for p in (SCRATCH, *PARTITIONS)
    }


def _literal(options: Options) -> Groups:
    """The main table of protocol literal, on all data sets; none without a published figure."""
    if not any(_pairs(options, paper.DATASETS)):
        return {}
    other = Options(protocol="literal", runs=paper.RUNS, epochs=options.epochs)
    return utility_groups(other, (SCRATCH, *other.main_partitions))


def _figures(results: Results, groups: Mapping[str, Groups], texts: Mapping[str, str]) -> Figures:
    """By the paper's columns, from the cells of each partition and the aggregations' names."""
    found: Figures = {}
    for label, group in groups.items():
        for column, text in {"mean": "mean"}.items() if label == SCRATCH else texts.items():
            name = SCRATCH if label == SCRATCH else f"{label}/{column}"
            for (d, m, _), mean in f1_means(results, group, text).items():
                found[d, m, name] = mean
    return found


def read(results: Results, grid: Mapping[tuple[str, ...], Groups], reading: Reading) -> Figures:
    """The figures of one reading."""
    features, dropout, view, bekm, learned = reading
    methods = {SCRATCH: SCRATCH, "random": "random", "blpa": "blpa", "bekm": bekm}
    groups = {label: grid[features, dropout, m] for label, m in methods.items()}
    texts = {"mean": "mean", "majority": "majority", "learned": learned}
    return _figures(results, groups, {name: text + view for name, text in texts.items()})


def _by_label(groups: Groups) -> dict[str, Groups]:
    found: dict[str, Groups] = {}
    for key, cells in groups.items():
        found.setdefault(key[2], {})[key] = cells
    return found


def _code_itself(bekm: str) -> Figures:
    """Return the figures that the released code gave, one run."""
    found: Figures = {}
    for (d, m, p), figures in RELEASED.items():
        label = {"shipped": "bekm", "mapped": "bekm"}.get(p, p)
        if p in ("shipped", "mapped") and p != bekm:
            continue
        names = [SCRATCH] if p == SCRATCH else [f"{label}/{a}" for a in AGGREGATIONS]
        found |= {(d, m, n): Mean(f, None, 1) for n, f in zip(names, figures, strict=True)}
    return found


@experiment(
    "readings",
    "How far each reading is from the published tables",
    "",
    "Cora and Citeseer 5 min of processor time a run; the other graphs have the cells of utility",
    _grid,
    _closest,
    _released,
    _missing,
    _literal,
    most_runs=RUNS,
    protocols=("paper",),
)
def summarise(options: Options, results: Results) -> Summary:
    """The table of distances, the search, and every choice on its own."""
    grid = _grid(options)
    every = {r: read(results, grid, r) for r in product(*(c.values() for c in CHOICES.values()))}
    most = max(map(len, every.values()))  # readings are compared on the same cells
    known = {r: figures for r, figures in every.items() if figures and len(figures) == most}
    here = closest(options)
    if here not in known:
        return Summary([], [])
    literal = f1_tables(results, _literal(options))
    texts = {"mean": "mean", "majority": "majority", "learned": here[4]}
    five = _figures(results, _by_label(_closest(options)), texts) | known[here]
    released = _figures(
        results,
        _by_label(_released(options)),
        {"mean": "log-mean", "majority": "majority", "learned": "released"},
    )
    rows = {
        "closest: protocol paper": known[here],
        "word by word: protocol literal": every[
            tuple(next(iter(c.values())) for c in CHOICES.values())
        ],
        "the released code's settings, here": {
            key: mean for key, mean in released.items() if key[0] in SEARCHED
        },
        "the released code, ids mapped back, one run": _code_itself("mapped"),
        "the released code as shipped, one run": _code_itself("shipped"),
        MISSING: _figures(results, _by_label(_missing(options)), texts),
        FIVE: five,
        "the released code's settings, five data sets": released,
        "literal, five data sets": literal["as written"],
        "literal, five data sets, BEKM without labels, LBAggr convex": literal["convex"],
    }
    for name in (FIVE, "the released code's settings, five data sets"):
        if all(key[0] in SEARCHED for key in rows[name]):
            del rows[name]
    ranked = sorted(known, key=lambda r: _far(known[r], 0))
    tables = [
        _table(rows),
        _side_by_side([five, literal["as written"], released]),
        _search(ranked, known, here),
        _single(known, here),
        *_sources(five),
        _thinned(options, results),
    ]
    tidy = [
        {"reading": name, "dataset": d, "model": m, "column": c, "run": run, "f1": f1,
         "published": None if (told := paper.UTILITY.get(d, m, c)) is None else told.mean}
        for name, figures in rows.items()
        for (d, m, c), mean in figures.items()
        for run, f1 in mean.by_run or ((0, mean.mean),)
    ]  # fmt: skip
    return Summary(
        tidy,
        tables,
        draw=lambda: _picture(rows),
        opening=_opening(rows, ranked, known, here),
        notes=[
            _where(known[here], here),
            "Choosing half: every other pair of data set and model, as on a chequerboard. The "
            "distance is the mean of |F1 - published| over the cells; scratch has one column, each "
            "partition three. Not varied, because the text gives them: 100 epochs, rate 0.01, "
            "decay 0.001, delta = ceil(n/k), T = 30, k, 32 dimensions, 10 % or 1,000 nodes. Not "
            "varied for want of an engine: batches of sampled neighbourhoods.",
        ],
    )


def f1_tables(results: Results, groups: Groups) -> dict[str, Figures]:
    """The literal figures as written, and with both second readings."""
    found: dict[str, Figures] = {}
    ways = {"as written": ("bekm", "learned(solver=paper)"), "convex": ("bekm-free", "learned")}
    for name, (bekm, learned) in ways.items():
        by_label = _by_label(groups)
        chosen = {label: by_label[label] for label in (SCRATCH, "random", "blpa")}
        texts = {"mean": "mean", "majority": "majority", "learned": learned}
        found[name] = _figures(results, {**chosen, "bekm": by_label[bekm]}, texts)
    return found


def _far(figures: Figures, half: int) -> float:
    found = distance(figures, half=half)
    return float("inf") if found is None else found.every


def _three(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _line(name: str, figures: Figures) -> tuple[str, ...] | None:
    found = distance(figures)
    if found is None:
        return None
    halves = (distance(figures, half=half) for half in (0, 1))
    told = [_three(None if half is None else half.every) for half in halves]
    parts = [_three(found.parts.get(part)) for part in (SCRATCH, *PARTITIONS)]
    return (name, *parts, _three(found.every), signed(found.above), *told, f"{found.cells}")


_HEADER = (SCRATCH, *PARTITIONS, "all", "with its sign", "choosing half", "other half", "cells")


def _table(rows: Mapping[str, Figures]) -> Table:
    lines = [line for name, figures in rows.items() if (line := _line(name, figures))]
    bars = ("asked for", *(f"{bar:.2f}" for bar in BARS.values()), f"{BAR:.2f} of 200", *[""] * 4)
    return Table(
        "Mean |F1 - published|",
        ("reading", *_HEADER),
        (*lines, bars),
        "Cora and Citeseer unless said otherwise; the bars by partition are for these two, that "
        "over all for the 200 cells of five data sets. With its sign: the mean of F1 - published. "
        "The released code as shipped has shards of mixed-up ids that hold test nodes with their "
        "labels; Cora alone for that column.",
    )


def _side_by_side(three: list[Figures]) -> Table:
    """Cell by cell: the closest reading, word by word, the released code's settings, the paper."""
    pairs = list(dict.fromkeys(key[:2] for key in three[0]))

    def cell(d: str, m: str, column: str) -> str:
        found = [figures.get((d, m, column)) for figures in three]
        told = paper.UTILITY.values[d, m, column].mean
        ours = " / ".join("-" if mean is None else f"{mean.mean:.3f}" for mean in found)
        return f"{ours} / **{told:.3f}**"

    return Table(
        "Micro F1: closest / word by word / the released code's settings at once / published",
        ("data set", "model", *paper.UTILITY.columns),
        tuple(
            (shown(d), shown(m), *(cell(d, m, c) for c in paper.UTILITY.columns)) for d, m in pairs
        ),
    )


def words(reading: Reading) -> str:
    """A reading by the names of its choices."""
    names = [
        next(name for name, value in choice.items() if value == part)
        for choice, part in zip(CHOICES.values(), reading, strict=True)
    ]
    return "; ".join(f"{kind}: {name}" for kind, name in zip(CHOICES, names, strict=True))


def _search(ranked: list[Reading], known: Mapping[Reading, Figures], here: Reading) -> Table:
    some = [*ranked[:8], *([here] if here not in ranked[:8] else []), ranked[-1]]
    lines = [_line(words(reading), known[reading]) for reading in some]
    return Table(
        f"The nearest of {len(ranked)} readings by the choosing half, and the farthest",
        ("reading", *_HEADER),
        tuple(line for line in lines if line),
    )


def _single(known: Mapping[Reading, Figures], here: Reading) -> Table:
    """One choice at a time is another."""
    lines = []
    for place, (kind, choice) in enumerate(CHOICES.items()):
        for name, value in choice.items():
            other = (*here[:place], value, *here[place + 1 :])
            if (
                other != here
                and other in known
                and (line := _line(f"{kind}: {name}", known[other]))
            ):
                lines.append(line)
    return Table("Single deviations from the closest reading", ("with", *_HEADER), tuple(lines))


def _sources(figures: Figures) -> list[Table]:
    """Where the distance of the closest reading comes from; none where nothing is compared."""
    gaps = {
        key: mean.mean - told.mean
        for key, mean in figures.items()
        if (told := paper.UTILITY.get(*key)) is not None
    }
    if not gaps:
        return []
    whole = sum(map(abs, gaps.values()))

    def share_of(some: list[float]) -> str:
        far = sum(map(abs, some))
        return f"{far / len(some):.3f} ({signed(float(np.mean(some)))}, {far / whole:.0%})"

    def at(d: str, m: str | None, part: str) -> str:
        some = [
            gap
            for key, gap in gaps.items()
            if key[0] == d and m in (None, key[1]) and key[2].startswith(part)
        ]
        return share_of(some) if some else "-"

    parts = (SCRATCH, *PARTITIONS, "")
    pairs = list(dict.fromkeys(key[:2] for key in gaps))
    lines = [(shown(d), shown(m), *(at(d, m, part) for part in parts)) for d, m in pairs]
    lines += [
        (shown(d), "all", *(at(d, None, part) for part in parts))
        for d in dict.fromkeys(d for d, _ in pairs)
    ]
    farthest = sorted(gaps, key=lambda key: -abs(gaps[key]))[:20]
    share = sum(abs(gaps[key]) for key in farthest) / whole
    return [
        Table(
            "Where the distance of the closest reading comes from",
            ("data set", "model", SCRATCH, *PARTITIONS, "all"),
            tuple(lines),
            "Mean |F1 - published|; in parentheses the mean with its sign, and the share of the "
            f"distance over all {len(gaps)} cells.",
        ),
        Table(
            f"The {len(farthest)} cells that are farthest off: {share:.0%} of the distance",
            ("data set", "model", "cell", "ours", "published", "difference"),
            tuple(
                (
                    *(shown(d), shown(m), c, f"{figures[d, m, c].mean:.3f}"),
                    *(f"{paper.UTILITY.values[d, m, c].mean:.3f}", signed(gaps[d, m, c])),
                )
                for d, m, c in farthest
            ),
        ),
    ]


def _thinned(options: Options, results: Results) -> Table:
    """LBAggr at its minimum from whole neighbourhoods, and from those thinned to 2 a hop."""
    grid = _grid(options)
    lines = []
    for method in ("random", "blpa", CHOICES["BEKM's embedding"]["fourth layer, no labels"]):
        groups = grid["", "", method]
        whole, thin = (f1_means(results, groups, text) for text in ("lbaggr", "learned"))
        lines += [
            (shown(d), shown(m), method.partition("(")[0], str(thin[key]), str(whole[key]))
            for key in whole
            if key in thin and (d := key[0]) and (m := key[1])
        ]
    return Table(
        "LBAggr at its minimum: neighbourhoods thinned to 2 neighbours a hop, and whole",
        ("data set", "model", "partition", "thinned", "whole"),
        tuple(lines),
        "Features as they are, dropout of the code, predictions on the whole graph; bekm without "
        "labels, fourth layer. Protocol literal learns from thinned ones, protocol paper from "
        "whole ones.",
    )


def _told(found: Distance, bars: Mapping[str, float] | None = None) -> str:
    asked = {part: f" of {bar:.2f}" for part, bar in (bars or {}).items()}
    return ", ".join(f"{p} {far:.3f}{asked.get(p, '')}" for p, far in found.parts.items())


def _opening(
    rows: Mapping[str, Figures],
    ranked: list[Reading],
    known: Mapping[Reading, Figures],
    here: Reading,
) -> list[str]:
    near, far = (distance(rows[name]) for name in list(rows)[:2])
    if near is None or far is None:
        return []
    rest, edges = distance(known[here], half=1), distance(rows[MISSING])
    missed = [p for p, bar in BARS.items() if near.parts.get(p, 0.0) > bar]
    every, runs = len(list(product(*CHOICES.values()))), max(m.runs for m in known[here].values())
    lines = [
        f"How near is this to the paper? {len(ranked)} of the {every} readings that its text "
        f"admits were measured ({plural(runs, 'run')} of Cora and Citeseer). The one that is "
        f"nearest on half of the cells is used here: its F1 is {near.every:.3f} from the published "
        f"figures on average, {'-' if rest is None else f'{rest.every:.3f}'} on the other half; "
        f"word by word it is {far.every:.3f}. By partition, of what was asked for at most: "
        f"{_told(near, BARS)}; {'missed with ' + ', '.join(missed) if missed else 'all met'}. "
        f"{_over_all(rows.get(FIVE, known[here]))}"
    ]
    if edges is not None:
        lines.append(
            "What would explain the rest? The released code takes 90 % of the edges out by "
            "default, for one of its experiments. No text admits that; done to the closest "
            f"reading, the distance is {edges.every:.3f} ({_told(edges)})."
        )
    return lines


def _by_model(figures: Figures) -> str:
    some = {m: distance({k: v for k, v in figures.items() if k[1] == m}) for m in paper.MODELS}
    return ", ".join(f"{m} {one.every:.3f}" for m, one in some.items() if one)


def _where(figures: Figures, here: Reading) -> str:
    """Which reading it is, and where it misses."""
    found = distance(figures)
    return (
        f"The closest reading has {words(here)}. By model: {_by_model(figures)}. GCN is farthest, "
        "on Citeseer above all: there its published F1 from scratch, 0.493, is below that of every "
        "reading and of the released code itself. With its sign the distance is "
        f"{'-' if found is None else signed(found.above)}: what is missed is mostly missed upwards."
    )


def _over_all(figures: Figures) -> str:
    """The bar over five data sets, and which model misses it; or that it was not measured."""
    wide = distance(figures)
    if wide is None or wide.cells < len(paper.UTILITY.values):
        told = 0 if wide is None else wide.cells
        return f"Over all 200 cells {BAR:.2f} was asked for: {told} of them were measured."
    word = "met" if wide.every <= BAR else "missed"
    return (
        f"Over all 200 cells it is {wide.every:.3f}; {BAR:.2f} was asked for, and is {word} (by "
        f"model {_by_model(figures)}; by partition {_told(wide)})."
    )


def _picture(rows: Mapping[str, Figures]) -> Any:
    names = [name for name, figures in rows.items() if distance(figures) is not None][:5]
    found = {name: distance(rows[name]) for name in names}
    groups = [SCRATCH, *PARTITIONS]
    lines = {n: [None if d is None else d.parts.get(p) for p in groups] for n, d in found.items()}
    return draw_bars([Bars("mean |F1 - published|, Cora and Citeseer", groups, lines)], "")
