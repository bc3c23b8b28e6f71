"""What graphs of other sizes will take: laws that are fitted to what `bench scale` has measured.

Everything is taken to be a fixed part and a part in proportion to the edges, or, where that is far
from what was measured, a power of them; `worst` says how far the laws are from the measurements
that they were made of.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grapheraser.bench.stages import CLOSED_FORM, is_generated
from grapheraser.reports.tables import markdown_table
from grapheraser.reports.wording import duration

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
    rows = [row for row in report["rows"] if is_generated(row["dataset"])]
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
    for row in report["rows"]:
        if is_generated(row["dataset"]):
            for name, law in found[row["model"]].items():
                factor = law.worst([row["edges"]], [_measured(row, name)])
                factors[name] = max(factors.get(name, 1.0), factor)
    return factors


def planning(report: Mapping[str, Any]) -> str:
    """What sizes will take.

    Of a fit, what `closed-form` takes runs in one process; the rest, training, is divided among the
    cores of a cluster.
    """
    found = laws(report)
    largest = max(row["edges"] for row in report["rows"] if is_generated(row["dataset"]))
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
    names = {
        "import": "import",
        "fit": "fit",
        "load": "load",
        "request_and_save": "forget and save",
        "store_gb": "graph store",
        "run_gb": "run",
        "peak_gb": "memory",
    }
    factors = worst(report)
    rows = [tuple(f"{factors[name]:.2f}x" for name in names)]
    return markdown_table(tuple(names.values()), rows)
