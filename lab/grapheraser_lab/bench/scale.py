"""Every operation against the size of a graph that lies on the disk, and on large real graphs.

Generated graphs of 20 neighbours a node on average, 64 features and ten classes are imported into a
graph store; shards hold about 800 training nodes, GCN trains for 20 epochs. On each, 100 nodes are
forgotten and saved one by one, 10,000 nodes predicted, the run loaded again, and 20 shards drawn at
random retrained and compared bit for bit; `closed-form` has no shards and is fitted again as a
whole up to 10^6 edges. On real graphs 1,000 nodes are forgotten, the largest hub first, and all is
verified. Partitioners read the same stores.

Times are pairs: as a clock on the wall has them, and of the processor, which doesn't count waiting
for the disk or for others. Memory is the peak of anonymous memory, sampled: what is mapped from
files can be read again and is not counted. Every row runs in a process of its own, in stages whose
results are kept: see `bench.stages`.
"""

from __future__ import annotations

import math
import multiprocessing
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.reports.wording import duration
from grapheraser_lab.bench.stages import (
    CLOSED_FORM,
    REAL,
    SIZES,
    Kept,
    import_stage,
    is_generated,
    partition_stage,
    row_stages,
)
from grapheraser_lab.figures.curves import Curves
from grapheraser_lab.figures.tables import filled, markdown_table

_REQUESTS = 100


def run(
    datasets: Iterable[str] = (*SIZES, *REAL),
    models: Iterable[str] = ("gcn", CLOSED_FORM),
    *,
    partitions: Iterable[str] = ("hash", "ldg", "blpa"),
    requests: int = _REQUESTS,
    keep: str | Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure numbers of edges (``1e6``) and named data sets; one row of each with each model.

    Args:
        datasets: see above.
        models: names.
        partitions: of generated graphs, names.
        requests: how many nodes to forget one by one.
        keep: where graph stores, runs and the results of finished stages are kept, so that the same
            call goes on after an interruption; default: nowhere.
        progress: is told what comes next.
    """
    rows, parts = [], []
    with tempfile.TemporaryDirectory() if keep is None else nullcontext(keep) as folder:
        for name in datasets:
            kept = Kept(Path(folder) / name, {"requests": requests})
            kept.check()
            progress(f"{name} import")
            imported = kept.result("import") or _apart(import_stage, kept, name)
            for model in models:
                progress(f"{name} {model}")
                rows.append(imported | _apart(row_stages, kept, name, model))
            for method in partitions if is_generated(name) else ():
                progress(f"{name} partition by {method}")
                found = kept.result(f"partition-{method}")
                parts.append(found or _apart(partition_stage, kept, name, method))
    return {"benchmark": "scale", "threads": 1, "rows": rows, "partitions": parts}


def _apart(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Call a function in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


# -- what a person looks at ---------------------------------------------------------------------


def markdown(report: dict[str, Any]) -> str:
    """All tables."""
    tables = by_size(report), real(report), partitioned(report)
    return "\n\n".join(table for table in tables if table)


def by_size(report: dict[str, Any]) -> str:
    """One row per generated graph and model; seconds of the processor."""
    header = (
        "edges | nodes | model | shards | import | open | fit | first save | a node forgotten | "
        "and saved | predict 10,000 | load | verify | same bits | F1 | memory"
    )
    row = (
        "{edges:,} | {nodes:,} | {model} | {shards:,} | {import:spent} | {open:spent} | {fit:spent}"
        " | {first_save:spent} | {request:spent} | {request_and_save:spent} | {predict:spent} | "
        "{load:spent} | {verify:spent} | {compared} | {f1:.3f} | {peak_gb:.1f} GB"
    )
    known = [row | {"compared": _compared(row)} for row in _generated(report)]
    return filled(header, row, known, words={"spent": _spent}) if known else ""


def _generated(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [row for row in report["rows"] if is_generated(row["dataset"])]


def _spent(seconds: Sequence[float] | None) -> str:
    """Processor time, as a cell of a table."""
    return "" if seconds is None else duration(seconds[1])


def _compared(row: dict[str, Any]) -> str:
    """Say which parts of a state were computed again, and whether it has the same bits."""
    what = f"{min(20, row['shards'])} shards" if row["shards"] else "all of it"
    told = {True: f"yes: {what}", False: f"no: {what}", None: "not compared"}
    return told[row["verified"]]


def real(report: dict[str, Any]) -> str:
    """One row per real graph and model; seconds of the processor."""
    header = (
        "data set | nodes | edges | model | hub | fit | the hub forgotten and saved | a node | "
        "and saved | verify | forgotten | same bits"
    )
    row = (
        "{dataset} | {nodes:,} | {edges:,} | {model} | {hub_degree:,} neighbours | {fit:spent} | "
        "{hub:spent} | {request:spent} | {request_and_save:spent} | {verify:spent} | "
        "{forgotten:,} | {verified:yes}"
    )
    known = [row for row in report["rows"] if not is_generated(row["dataset"])]
    return filled(header, row, known, words={"spent": _spent}) if known else ""


def partitioned(report: dict[str, Any]) -> str:
    """One row per generated graph and partitioner; seconds of the processor."""
    header = "edges | partition | shards | time | edge cut | memory"
    row = "{edges:,} | {method} | {shards:,} | {partition:spent} | {cut:.1%} | {peak_gb:.1f} GB"
    known = report["partitions"]
    return filled(header, row, known, words={"spent": _spent}) if known else ""


def curves(report: dict[str, Any]) -> list[Curves]:
    """Seconds and memory against the number of edges, one panel each."""
    panels = []
    generated = _generated(report)
    for name, title in (
        ("request", "forget a node"),
        ("request_and_save", "forget and save"),
        ("fit", "fit"),
        ("peak_gb", "anonymous memory, GB"),
    ):
        series = {}
        for model in dict.fromkeys(row["model"] for row in generated):
            rows = [row for row in generated if row["model"] == model]
            heights = [row[name] if name == "peak_gb" else row[name][1] for row in rows]
            series[model] = ([row["edges"] for row in rows], heights, [0.0] * len(rows))
        panels.append(Curves(title, series, log_y=True))
    return panels


# -- what graphs of other sizes will take: laws that are fitted to what `bench scale` has measure


PLANNED = (10**6, 10**7, 10**8, 10**9, 10**10)
CLUSTER, PRICE = 64, 0.05  # cores, and dollars for an hour of one
_FAR = 1.5  # a factor between a law and what was measured
# What is planned, of a row: seconds of the processor, and gigabytes.
SECONDS = ("import", "fit", "request_and_save", "load")
GIGABYTES = ("store_gb", "run_gb", "peak_gb")


@dataclass(frozen=True)
class Law:
    """A fixed part and a part that grows with a power of the edges; neither is negative.

    A power above 1 is what memory costs that is further away the larger a graph is, one below 1
    what is filled in blocks of a fixed size. Beyond ``until``, the largest size that was measured,
    everything is far away and full: from there on the law is in proportion to the edges.
    """

    fixed: float
    per_edge: float
    power: float = 1.0
    until: float = math.inf

    @classmethod
    def of(cls, edges: Sequence[float], values: Sequence[float]) -> Law:
        """The law that fits best: in proportion, unless a power is closer by far.

        One value alone is in proportion.
        """
        if len(set(edges)) == 1:
            return cls(0.0, float(np.mean(values)) / edges[0])
        straight, curved = cls._straight(edges, values), cls._curved(edges, values)
        far = straight.worst(edges, values)
        return straight if far < _FAR or far <= curved.worst(edges, values) else curved

    @classmethod
    def _straight(cls, edges: Sequence[float], values: Sequence[float]) -> Law:
        """In proportion, with a fixed part: the least squares of relative errors."""
        wanted = np.ones(len(edges))
        columns = np.array([[1.0, x] for x in edges]) / np.array(values)[:, None]
        fixed, per_edge = np.linalg.lstsq(columns, wanted, rcond=None)[0].tolist()
        if fixed >= 0 and per_edge >= 0:
            return cls(fixed, per_edge)
        alone = [float(column @ wanted / (column @ column)) for column in columns.T]
        errors = [((column * a - 1) ** 2).sum() for a, column in zip(alone, columns.T, strict=True)]
        return cls(alone[0], 0.0) if errors[0] < errors[1] else cls(0.0, alone[1])

    @classmethod
    def _curved(cls, edges: Sequence[float], values: Sequence[float]) -> Law:
        """A power alone: the least squares of the errors of logarithms."""
        power, height = np.polyfit(np.log(edges), np.log(values), 1).tolist()
        return cls(0.0, math.exp(height), power, max(edges))

    def __call__(self, edges: float) -> float:
        inside = min(edges, self.until)
        return (self.fixed + self.per_edge * inside**self.power) * (edges / inside)

    def worst(self, edges: Sequence[float], values: Sequence[float]) -> float:
        """The largest factor between the law and some measurements."""
        ratios = [self(x) / value for x, value in zip(edges, values, strict=True)]
        return max(max(ratio, 1 / ratio) if ratio > 0 else math.inf for ratio in ratios)


def _measured(row: Mapping[str, Any], name: str) -> float:
    return float(row[name][1] if name in SECONDS else row[name])


def laws(report: Mapping[str, Any]) -> dict[str, dict[str, Law]]:
    """The laws of each model, by what they tell."""
    rows = _generated(report)
    found: dict[str, dict[str, Law]] = {}
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        found[model] = {
            name: Law.of([row["edges"] for row in own], [_measured(row, name) for row in own])
            for name in (*SECONDS, *GIGABYTES)
        }
    return found


def worst(report: Mapping[str, Any]) -> dict[str, float]:
    """The largest factor between a law and a measurement, by what they tell."""
    found = laws(report)
    factors: dict[str, float] = {}
    for row in _generated(report):
        for name, law in found[row["model"]].items():
            factor = law.worst([row["edges"]], [_measured(row, name)])
            factors[name] = max(factors.get(name, 1.0), factor)
    return factors


def planning(report: Mapping[str, Any]) -> str:
    """Estimate what sizes will take.

    Of a fit, what `closed-form` takes runs in one process; the rest, training, is divided among the
    cores of a cluster.
    """
    found = laws(report)
    largest = max(row["edges"] for row in _generated(report))
    one = ("edges", "model", "disk", "memory", "import", "fit, one core")
    header = (*one, f"{CLUSTER} cores", "import and fit", "load", "forget and save")
    lines: list[tuple[str, ...]] = []
    for edges in PLANNED:
        for model, of in found.items():
            fit, imported = of["fit"](edges), of["import"](edges)
            shared = min(fit, found.get(CLOSED_FORM, of)["fit"](edges))
            spread = shared + (fit - shared) / CLUSTER
            dollars = (imported + fit) / 3600 * PRICE
            lines.append(
                (
                    *(f"{edges:,}", model),
                    f"{of['store_gb'](edges) + of['run_gb'](edges):,.1f} GB",
                    # It fills blocks of a fixed size first: small graphs tell little of large ones.
                    f"{of['peak_gb'](edges):,.1f} GB" if edges < 2 * largest else "",
                    *(duration(imported), duration(fit), duration(spread), f"${dollars:,.2f}"),
                    *(duration(of["load"](edges)), duration(of["request_and_save"](edges))),
                )
            )
    return markdown_table(header, lines)


def deviations(report: Mapping[str, Any]) -> str:
    """How far the laws are from the measurements, at most."""
    names = (*SECONDS, *GIGABYTES)
    row = " | ".join(f"{{{name}:.2f}}x" for name in names)
    header = "import | fit | forget and save | load | graph store | run | memory"
    return filled(header, row, [worst(report)])
