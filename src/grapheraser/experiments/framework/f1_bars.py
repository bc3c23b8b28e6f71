"""Bars of F1: a panel for each data set, a group for each model, the paper's figures as marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from grapheraser.experiments.framework.means import Mean, heights, spreads
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.paper.published import Published
from grapheraser.reports.figures.bars import Bars, draw_bars


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
        told = {name: [published(*key) for key in line] for name, line in keys.items()}
        panels.append(
            Bars(
                shown(dataset),
                [shown(model).upper() for model in options.models],
                {name: heights(line) for name, line in got.items()},
                {name: spreads(line) for name, line in got.items()},
                {name: heights(line) for name, line in told.items() if any(line)},
            )
        )
    return draw_bars(panels, "micro F1", limits=(0, 1))
