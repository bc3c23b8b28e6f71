"""F1 along an axis: tables, rows and figures of a growing share or number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grapheraser.reports.tables import Entry, Table
from grapheraser_lab.figures.bars import Bars, draw_bars
from grapheraser_lab.figures.curves import Curves, draw_curves, shared_limits
from grapheraser_lab.framework.means import Mean, entry, heights, run_rows, spreads
from grapheraser_lab.framework.noise import Difference, paired
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.published import Published
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import Case, Finding

# By data set, model, series and place on the axis.
Line = Mapping[tuple[str, str, str, float], Mean]
# A loss of F1 up to here is called hardly any.
DROP = 0.02


def drops(found: Line, start: float, ends: Sequence[float]) -> dict[tuple[Any, ...], Difference]:
    """F1 at the start minus F1 further on, run by run, for each curve and place."""
    return {
        key: paired(found[*key[:3], start], mean)
        for key, mean in found.items()
        if key[3] in ends and (*key[:3], start) in found
    }


def little_lost(
    found: Line, start: float, ends: Sequence[float], tell: Callable[[float], str]
) -> Finding:
    """Tell whether F1 drops by at most `DROP`."""
    lost = drops(found, start, ends)
    cases = [Case(named(*key[:3], tell(key[3])), gap.at_most(DROP)) for key, gap in lost.items()]
    worst = max(lost.values(), key=lambda gap: gap.mean, default=None)
    return Finding(cases, f"The largest drop: {worst}.")


def curve_rows(
    found: Line, axis: str, value: str = "f1", second: str = "model"
) -> list[dict[str, Any]]:
    """Tidy rows, one for each run; ``second`` is what the second part of a key is called."""
    return run_rows(found, ("dataset", second, "series", axis), value)


def curve_table(
    found: Line,
    title: str,
    *,
    tell: Callable[[float], str] = "{:g}".format,
    second: str = "model",
    note: str = "",
) -> Table:
    """A row for each curve, a column for each place."""
    places = sorted({key[3] for key in found})
    lines = dict.fromkeys(key[:3] for key in found)
    rows = []
    for line in lines:
        row: list[Entry | str] = [shown(name) for name in line]
        row += [entry(found.get((*line, x))) for x in places]
        rows.append(tuple(row))
    header = ("data set", second, "method", *(tell(x) for x in places))
    return Table(title, header, tuple(rows), note)


def curve_figure(
    found: Line,
    xlabel: str,
    ylabel: str,
    *,
    titles: Mapping[tuple[str, str], str] | None = None,
    log_x: bool = False,
    scale: float = 1.0,
    limits: tuple[float, float] | None = None,
) -> Any:
    """A panel for each data set and model; all panels share one vertical axis."""
    panels = []
    pairs = list(dict.fromkeys(key[:2] for key in found))
    for dataset, model in pairs:
        series: dict[str, Any] = {}
        for name in dict.fromkeys(key[2] for key in found if key[:2] == (dataset, model)):
            x = sorted(key[3] for key in found if key[:3] == (dataset, model, name))
            values = [found[dataset, model, name, place] for place in x]
            at = [place * scale for place in x]
            series[shown(name)] = (at, heights(values), spreads(values))
        title = (titles or {}).get((dataset, model), f"{shown(dataset)}, {shown(model).upper()}")
        panels.append(Curves(title, series))
    columns = max(1, min(4, len({model for _, model in pairs})))
    shared = shared_limits(panels) if limits is None else limits
    return draw_curves(panels, xlabel, ylabel, columns=columns, log_x=log_x, limits=shared)


def along(found: Line, dataset: str, model: str, series: str) -> list[tuple[float, Mean]]:
    """One curve, in the order of the axis."""
    return sorted(
        (key[3], value) for key, value in found.items() if key[:3] == (dataset, model, series)
    )


def percent(share: float) -> str:
    """``30 %``."""
    return f"{100 * share:.0f} %"


def lines_of(found: Line) -> Sequence[tuple[str, str, str]]:
    """Every curve."""
    return list(dict.fromkeys((d, m, s) for d, m, s, _ in found))


# -- bars of F1: a panel for each data set, a group for each model, the paper's figures as marks


def draw_f1(
    options: Options,
    series: Mapping[str, tuple[str, ...]],
    found: Mapping[Any, Mean | None],
    published: Callable[..., Published | None],
) -> Any:
    """The figure.

    Args:
        options: which data sets and models.
        series: by name, the rest of its keys after data set and model.
        found: our means, by key.
        published: the paper's figure of a key, where it has one.
    """
    panels = []
    for dataset in options.datasets:
        keys = {
            name: [(dataset, model, *rest) for model in options.models]
            for name, rest in series.items()
        }
        got = {name: [found.get(key) for key in line] for name, line in keys.items()}
        told = {n: heights(published(*key) for key in line) for n, line in keys.items()}
        panels.append(bars_of(shown(dataset), upper(options.models), got, told))
    return draw_bars(panels, "micro F1", limits=(0, 1))


def bars_of(
    title: str,
    groups: Sequence[str],
    means: Mapping[str, Sequence[Mean | None]],
    paper: Mapping[str, Sequence[float | None]] = {},
) -> Bars:
    """One panel of means with their standard deviations; series the paper lacks have no marks."""
    return Bars(
        title,
        [shown(group) for group in groups],
        {name: heights(line) for name, line in means.items()},
        {name: spreads(line) for name, line in means.items()},
        {name: line for name, line in paper.items() if any(line)},
    )


def upper(models: Sequence[str]) -> list[str]:
    """Models as charts print them."""
    return [shown(model).upper() for model in models]
