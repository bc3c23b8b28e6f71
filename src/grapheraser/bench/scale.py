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

import multiprocessing
import tempfile
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from grapheraser.bench.stages import (
    CLOSED_FORM,
    REAL,
    SIZES,
    Kept,
    import_stage,
    is_generated,
    partition_stage,
    row_stages,
)
from grapheraser.environment import versions
from grapheraser.reports.figures.curves import Curves
from grapheraser.reports.tables import markdown_table
from grapheraser.reports.wording import duration

_REQUESTS = 100


def run(
    datasets: Iterable[str] = (*SIZES, *REAL),
    models: Iterable[str] = ("gcn", CLOSED_FORM),
    *,
    partitions: Iterable[str] = ("hash", "ldg", "blpa"),
    requests: int = _REQUESTS,
    root: str | Path | None = None,
    keep: str | Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure numbers of edges (``1e6``) and named data sets; one row of each with each model.

    Args:
        datasets: see above.
        models: names.
        partitions: of generated graphs, names.
        requests: how many nodes to forget one by one.
        root: the data folder.
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
            imported = kept.result("import") or _apart(import_stage, kept, name, root)
            for model in models:
                progress(f"{name} {model}")
                rows.append(imported | _apart(row_stages, kept, name, model))
            for method in partitions if is_generated(name) else ():
                progress(f"{name} partition by {method}")
                found = kept.result(f"partition-{method}")
                parts.append(found or _apart(partition_stage, kept, name, method))
    report = {"benchmark": "scale", "threads": 1, "versions": versions()}
    return {**report, "rows": rows, "partitions": parts}


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
    names = {
        "import": "import",
        "open": "open",
        "fit": "fit",
        "first_save": "first save",
        "request": "a node forgotten",
        "request_and_save": "and saved",
        "predict": "predict 10,000",
        "load": "load",
        "verify": "verify 20 shards",
    }
    header = ("edges", "nodes", "model", "shards", *names.values(), "same bits", "F1", "memory")
    rows = [
        (
            *(f"{row['edges']:,}", f"{row['nodes']:,}", row["model"], f"{row['shards']:,}"),
            *("" if row[name] is None else duration(row[name][1]) for name in names),
            {True: "yes", False: "no", None: ""}[row["verified"]],
            f"{row['f1']:.3f}",
            f"{row['peak_gb']:.1f} GB",
        )
        for row in report["rows"]
        if is_generated(row["dataset"])
    ]
    return markdown_table(header, rows) if rows else ""


def real(report: dict[str, Any]) -> str:
    """One row per real graph and model; seconds of the processor."""
    names = {
        "fit": "fit",
        "hub": "the hub forgotten and saved",
        "request": "a node",
        "request_and_save": "and saved",
        "verify": "verify",
    }
    header = ("data set", "nodes", "edges", "model", "hub", *names.values())
    rows = [
        (
            *(row["dataset"], f"{row['nodes']:,}", f"{row['edges']:,}", row["model"]),
            f"{row['hub_degree']:,} neighbours",
            *(duration(row[name][1]) for name in names),
            f"{row['forgotten']:,}",
            {True: "yes", False: "no"}[row["verified"]],
        )
        for row in report["rows"]
        if not is_generated(row["dataset"])
    ]
    return markdown_table((*header, "forgotten", "same bits"), rows) if rows else ""


def partitioned(report: dict[str, Any]) -> str:
    """One row per generated graph and partitioner; seconds of the processor."""
    header = ("edges", "partition", "shards", "time", "edge cut", "memory")
    rows = [
        (
            *(f"{row['edges']:,}", row["method"], f"{row['shards']:,}"),
            *(duration(row["partition"][1]), f"{row['cut']:.1%}", f"{row['peak_gb']:.1f} GB"),
        )
        for row in report["partitions"]
    ]
    return markdown_table(header, rows) if rows else ""


def curves(report: dict[str, Any]) -> list[Curves]:
    """Seconds and memory against the number of edges, one panel each."""
    panels = []
    generated = [row for row in report["rows"] if is_generated(row["dataset"])]
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
