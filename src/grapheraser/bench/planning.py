"""What graphs of other sizes will take, from what `bench scale` has measured."""

from __future__ import annotations

from typing import Any

from grapheraser.bench.stages import CLOSED_FORM, is_generated
from grapheraser.reports.tables import markdown_table
from grapheraser.reports.wording import duration

PLANNED = (10**6, 10**7, 10**8, 10**9, 10**10)
CLUSTER, PRICE = 64, 0.05  # cores, and dollars for an hour of one


def planning(report: dict[str, Any]) -> str:
    """What sizes will take, in proportion to the largest graph that was measured.

    Import, fit and disk grow with the edges, forgetting stays. Of a fit, what `closed-form` takes
    runs in one process; the rest, training, is divided among the cores of a cluster.
    """
    rows = [row for row in report["rows"] if is_generated(row["dataset"])]
    largest = {row["model"]: row for row in sorted(rows, key=lambda row: row["edges"])}
    alone = largest.get(CLOSED_FORM)
    one = ("edges", "model", "disk", "import", "fit, one core")
    header = (*one, f"{CLUSTER} cores", "import and fit", "forget and save")
    lines: list[tuple[str, ...]] = []
    for edges in PLANNED:
        for model, row in largest.items():
            times = edges / row["edges"]
            fit = row["fit"][1] * times
            shared = fit if alone is None else min(fit, alone["fit"][1] * edges / alone["edges"])
            spread = shared + (fit - shared) / CLUSTER
            dollars = (row["import"][1] * times + fit) / 3600 * PRICE
            lines.append(
                (
                    f"{edges:,}",
                    model,
                    f"{(row['store_gb'] + row['run_gb']) * times:,.1f} GB",
                    *(duration(row["import"][1] * times), duration(fit), duration(spread)),
                    f"${dollars:,.2f}",
                    duration(row["request_and_save"][1]),
                )
            )
    return markdown_table(header, lines)
