"""Benchmarks of many measurements: their cells go through the runner of the experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from grapheraser.errors import GraphEraserError
from grapheraser.experiments.framework.cell import Cell, Result
from grapheraser.experiments.framework.runner import CPU, run_cells
from grapheraser.reports.wording import plural


def measured_cells(
    cells: Iterable[Cell],
    folder: str | Path,
    *,
    device: str = CPU,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[Cell, Result]:
    """Results of all cells; those in the folder are not measured again.

    Everything runs in this process, on the cores that it was given. Where cells fail, the others
    are kept all the same, and the error names the first.
    """
    wanted = list(cells)
    outcome = run_cells(wanted, Path(folder), workers=0, device=device, say=progress)
    progress(f"{plural(outcome.computed, 'cell')} measured, {len(wanted)} in all")
    for cell, message in outcome.failures.items():
        raise GraphEraserError(
            f"{len(outcome.failures)} of {len(wanted)} cells failed; {cell}: {message}",
            hint="the others are kept; run it again for those that failed.",
        )
    found = {cell: outcome.results.get(cell) for cell in wanted}
    return {cell: result for cell, result in found.items() if result is not None}
