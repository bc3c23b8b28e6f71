"""Time of a node or edge request (figure:node_unlearning_efficiency and its edge twin).

Every request is carried out for real, from the call to the receipt, on a copy of the same fitted
model: the shard is retrained and the aggregation relearned. Scratch is the one-shard case on the
same engine, so the ratio says what sharding gives, and nothing about the engine; scratch in plain
PyG stands beside it by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.reports.tables import Entry, Table
from grapheraser.reports.wording import duration, three_figures
from grapheraser_lab.experiments import efficiency_rules as rules
from grapheraser_lab.figures.bars import Bars, draw_bars
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import Experiment, Summary, register
from grapheraser_lab.framework.means import Mean, errors, heights
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.resolve import shown
from grapheraser_lab.framework.rules import Claim
from grapheraser_lab.framework.shared_cells import SCRATCH, measured, pyg_cell, requests_cell

Key = tuple[str, str, str]
Values = dict[Key, dict[str, Any]]
Times = dict[Key, Mean]
SCRATCH_TIMES = Path(__file__).resolve().parents[2] / "results" / "scratch.json"
ONE = {"nodes": "a node", "edges": "an edge"}


def _methods(options: Options) -> tuple[str, ...]:
    return (SCRATCH, *options.main_partitions)


def _cells(options: Options) -> dict[Key, Cell]:
    return {
        (dataset, model, method): requests_cell(options, dataset, model, method)
        for dataset, model in options.pairs
        for method in _methods(options)
    }


def _pyg_cells(options: Options) -> dict[tuple[str, str], Cell]:
    return {pair: pyg_cell(options, *pair) for pair in options.pairs}


def cells(options: Options) -> list[Cell]:
    """One cell gives node and edge requests, predictions and the aggregation's learning."""
    return [*_cells(options).values(), *_pyg_cells(options).values()]


def times_of(seconds: list[float]) -> Mean:
    """Mean and spread over requests."""
    std = float(np.std(seconds, ddof=1)) if len(seconds) > 1 else None
    return Mean(float(np.mean(seconds)), std, len(seconds))


def _requests(values: Values, what: str) -> Values:
    """The requests of one kind; scratch trains everything afresh whichever it is."""
    return {key: value[what] if what in value else value["nodes"] for key, value in values.items()}


def summarise(options: Options, results: Results, what: str) -> Summary:
    """Mean seconds of a request, and how many times faster than scratch."""
    values = measured(results, _cells(options))
    asked = _requests(values, what)
    pyg = {k: float(v["seconds"]) for k, v in measured(results, _pyg_cells(options)).items()}
    found: Times = {key: times_of(value["seconds"]) for key, value in asked.items()}
    nodes = {key: times_of(v["seconds"]) for key, v in _requests(values, "nodes").items()}
    tables = [_table(options, found, pyg, what), _speedups(options, found, pyg, what)]
    if what == "edges":
        tables.append(_split(options, asked))
    claims = _judged(found)
    if what == "edges":
        claims = rules.same_for_edges(_judged(nodes), claims)
    return Summary(
        _rows(asked),
        tables,
        claims,
        lambda: _figure(options, found, pyg, what),
        notes=_notes(options, asked),
    )


def _judged(found: Times) -> list[Claim]:
    judges: tuple[Callable[..., list[Claim]], ...] = rules.RULES
    return [claim for judge in judges for claim in judge(found)]


def _rows(asked: Values) -> list[dict[str, Any]]:
    """Every request, in the order in which they were drawn."""
    return [
        {
            "dataset": shown(dataset),
            "model": shown(model),
            "partition": method,
            "run": 0,
            "request": number,
            "seconds": seconds,
            "training": value["training"][number],
            "aggregation": value["aggregation"][number],
            "shards_retrained": value["retrained"][number],
        }
        for (dataset, model, method), value in asked.items()
        for number, seconds in enumerate(value["seconds"])
    ]


def _notes(options: Options, asked: Values) -> list[str]:
    if not asked:
        return []
    counts: dict[str, set[int]] = {"scratch": set(), "shards": set()}
    for key, value in asked.items():
        counts["scratch" if key[2] == SCRATCH else "shards"].add(len(value["seconds"]))
    told = ", ".join(
        f"{'/'.join(map(str, sorted(some)))} requests of {name}"
        for name, some in counts.items()
        if some
    )
    retrained = [n for key, v in asked.items() if key[2] != SCRATCH for n in v["retrained"]]
    each = f"{np.mean(retrained):.2f}" if retrained else "no"
    return [
        f"Every cell holds {told}; a request retrains {each} shards on average. Times are "
        "processor time on one thread, from the call to the receipt; the "
        f"aggregation ({options.how.chosen}) is relearned every time. Scratch trains "
        "everything afresh whether a node or an edge goes, so its node requests stand for both. "
        "PyG: a few epochs of full-batch training in PyG, scaled to all of them."
    ]


def _table(options: Options, found: Times, pyg: dict[tuple[str, str], float], what: str) -> Table:
    ratios, sparse = rules.ratios(found), _sparse(options)

    def one(key: tuple[str, str, str]) -> Entry | str:
        if key not in found:
            return "-"
        text = duration(found[key].mean)
        told = f"± {duration(found[key].error)}" if found[key].runs > 1 else ""
        return Entry(f"{text} ({three_figures(ratios[key])}x)" if key in ratios else text, told)

    rows = [
        (
            *(shown(dataset), shown(model), one((dataset, model, SCRATCH))),
            *(duration(some.get((dataset, model))) for some in (sparse, pyg)),
            *(one((dataset, model, method)) for method in options.main_partitions),
        )
        for dataset, model in options.pairs
    ]
    header = ("scratch, same engine", "scratch, sparse PyTorch", "scratch, PyG")
    return Table(
        f"Time to forget {ONE[what]}, and how many times less than scratch with the same engine",
        ("data set", "model", *header, *options.main_partitions),
        tuple(rows),
        "Mean over the requests; below, its standard error. Sparse PyTorch: `bench scratch`.",
    )


def _sparse(options: Options) -> dict[tuple[str, str], float]:
    """Seconds from scratch in sparse PyTorch, as `bench scratch` keeps them for all tables."""
    if not SCRATCH_TIMES.is_file():
        return {}
    rows = json.loads(SCRATCH_TIMES.read_text())["rows"]
    known = {(row["dataset"], row["model"]): float(row["sparse"]) for row in rows}
    pairs = {pair: (pair[0], pair[1] + options.how.suffix) for pair in options.pairs}
    return {pair: known[name] for pair, name in pairs.items() if name in known}


def _speedups(
    options: Options, found: Times, pyg: dict[tuple[str, str], float], what: str
) -> Table:
    ratios, sparse = rules.ratios(found), _sparse(options)
    rows = []
    for dataset in options.datasets:
        own = [ratio for key, ratio in ratios.items() if key[0] == dataset]
        plain = [pyg[k[:2]] / found[k].mean for k in ratios if k[0] == dataset and k[:2] in pyg]
        loop = [
            sparse[k[:2]] / found[k].mean for k in ratios if k[0] == dataset and k[:2] in sparse
        ]
        if not own:
            continue
        line = [
            shown(dataset),
            f"{options.shards(dataset)}",
            f"{three_figures(rules.geometric(own))}x",
            f"{three_figures(min(own))}x to {three_figures(max(own))}x",
            f"{three_figures(rules.geometric(loop))}x" if loop else "-",
            f"{three_figures(rules.geometric(plain))}x" if plain else "-",
        ]
        if what == "nodes":
            told = paper.SPEEDUP.get(dataset)
            line.append("-" if told is None else f"{told:.2f}x")
        rows.append(tuple(line))
    header = ["data set", "shards", "scratch, same engine", "from to"]
    header += ["scratch, sparse PyTorch", "scratch, PyG"]
    return Table(
        "How many times less than scratch, geometric mean over GNNs and partitions",
        (*header, "the paper") if what == "nodes" else tuple(header),
        tuple(rows),
        "The paper compares PyG with PyG: like for like, its figure belongs beside the same engine."
        if what == "nodes"
        else "The paper gives no figures for edges.",
    )


def _split(options: Options, asked: Values) -> Table:
    """Edges inside a shard, which retrain it, and edges across, which no shard ever saw."""
    rows = []
    for dataset, model in options.pairs:
        for method in options.main_partitions:
            value = asked.get((dataset, model, method))
            if value is None:
                continue
            retrained = np.array(value["retrained"])
            seconds = np.array(value["seconds"])
            inside, across = seconds[retrained > 0], seconds[retrained == 0]
            rows.append(
                (
                    shown(dataset),
                    shown(model),
                    method,
                    f"{retrained.mean():.2f}",
                    f"{len(inside)}",
                    duration(float(inside.mean()) if len(inside) else None),
                    f"{len(across)}",
                    duration(float(across.mean()) if len(across) else None),
                )
            )
    return Table(
        "Edge requests inside a shard and across",
        (
            "data set",
            "model",
            "method",
            "shards retrained a request",
            "inside",
            "time",
            "across",
            "time",
        ),
        tuple(rows),
        "An edge between two shards was in no shard's graph: nothing is retrained, only the "
        "aggregation is relearned. The mean over all requests therefore says how many edges a "
        "partition loses, more than how fast it forgets.",
    )


def _figure(options: Options, found: Times, pyg: dict[tuple[str, str], float], what: str) -> Any:
    panels = []
    groups = [shown(model).upper() for model in options.models]
    for dataset in options.datasets:
        lines = {
            shown(method): [found.get((dataset, model, method)) for model in options.models]
            for method in _methods(options)
        }
        panels.append(
            Bars(
                f"{shown(dataset)}: seconds",
                groups,
                {
                    "PyG scratch": [pyg.get((dataset, model)) for model in options.models],
                    **{name: heights(line) for name, line in lines.items()},
                },
                {name: errors(line) for name, line in lines.items()},
                log=True,
            )
        )
    ratios = rules.by_part(found, 0, 2)
    names = [shown(dataset) for dataset in options.datasets]
    told = [paper.SPEEDUP.get(dataset) for dataset in options.datasets]
    panels.append(
        Bars(
            "times less than scratch, same engine",
            names,
            {
                shown(method): [ratios.get((d, method)) for d in options.datasets]
                for method in options.main_partitions
            },
            paper={shown(options.main_partitions[0]): told} if what == "nodes" else {},
            log=True,
        )
    )
    return draw_bars(panels, "")


for _name, _what, _label in (
    ("node-efficiency", "nodes", "figure:node_unlearning_efficiency"),
    ("edge-efficiency", "edges", "figure:edge_unlearning_efficiency"),
):
    register(
        Experiment(
            _name,
            f"Time to forget {ONE[_what]}",
            _label,
            "Cora and Citeseer 15 min; on the larger graphs 100 trainings from scratch take hours "
            "(--scratch-requests); both figures share it",
            cells,
            partial(summarise, what=_what),
            most_runs=1,
        )
    )
