"""The result of the arena: one table, one page, one line for each measurement.

`markdown` reads what ``arena run --json`` prints, for `grapheraser_lab.publish`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.reports.pages.render import environment
from grapheraser.reports.tables import Table
from grapheraser.reports.wording import duration
from grapheraser.store import write_text
from grapheraser_lab.figures.tables import to_csv, to_markdown
from grapheraser_lab.framework.cell import Cell, Result
from grapheraser_lab.framework.published import UTILITY

_NOTES = (
    "Scores are micro F1 (nodes; embeddings, of a linear probe), AUC (links), accuracy (graphs) or "
    "recall@20 (recommendation); ± is the standard error over seeds. Distance is half the mean L1 "
    "between the answers of the model that forgot a share at once and those of one that was fitted "
    "on what is left; for probabilities the total variation. Same bits: of all answers, and of all "
    "that was learned where the method shows it. A request: processor time, median of single ones. "
    "Drift: the distance after a stream of so many single requests.",
    "Attacks are AUCs, .5 is a guess: versions, what went, seen from before and after; members, "
    "what was in, from one version and shadow models; edges found again, in brackets where all was "
    "retrained. Planted: the score with planted edges, after they were forgotten, and without.",
)
_Values = Sequence[Mapping[str, Any]]
# What Chen et al. publish of a GCN with the same split, before a request: by row, their column.
_PUBLISHED = {
    "retraining": "scratch",
    "literal-blpa": "blpa/learned",
    "literal-bekm": "bekm/learned",
}
_SOURCE = (
    'Published: F1 before a request of GCNs in Chen et al., "Graph Unlearning" (CCS 2022), where '
    "the set-up is the same."
)


def _mean(values: _Values, key: str, digits: int = 3) -> str:
    found = [value[key] for value in values if value.get(key) is not None]
    if not found:
        return ""
    error = f" ± {np.std(found, ddof=1) / len(found) ** 0.5:.{digits}f}" if len(found) > 1 else ""
    return f"{np.mean(found):.{digits}f}{error}"


def _same(values: _Values) -> str:
    values = [look for value in values for look in value.get("points", [value])]
    if not values:
        return ""
    count, claims = sum(value["same"] for value in values), any(v["claims_exact"] for v in values)
    words = "yes" if count == len(values) else "no" if count == 0 else f"{count} of {len(values)}"
    return words + (" (claimed)" if claims else "")


def _time(values: _Values) -> str:
    return duration(float(np.median([value["seconds"] for value in values]))) if values else ""


def _last(values: _Values) -> str:
    ends = [value["points"][-1] for value in values if value["points"]]
    return f"{_mean(ends, 'apart', 4)} after {values[0]['forgotten']:,}" if ends else ""


def _memory(values: _Values) -> str:
    found = [value["batch_bytes"] for value in values if value["batch_bytes"] is not None]
    return f"{np.mean(found) / 2**20:.0f} MB" if found else ""


def _both(values: _Values, one: str, other: str) -> str:
    return f"{_mean(values, one, 2)} ({_mean(values, other, 2)})" if values else ""


# By name of the column: the kind of cells, and what they say; streams tell bits and times as well.
_COLUMNS: dict[str, tuple[str, Callable[[_Values], str]]] = {
    "before": ("utility", lambda v: _mean(v, "before")),
    "after": ("utility", lambda v: _mean(v, "after")),
    "retrained": ("utility", lambda v: _mean(v, "retrained")),
    "distance": ("utility", lambda v: _mean(v, "apart", 4)),
    "parameters": ("utility", lambda v: _mean(v, "parameters", 4)),
    "same bits": ("utility", _same),
    "a request": ("utility", _time),
    "memory": ("utility", _memory),
    "drift": ("stream", _last),
    "at its end": ("stream", lambda v: _mean([one["points"][-1] for one in v], "after")),
    "versions": ("versions", lambda v: _mean(v, "auc", 2)),
    "members": ("members", lambda v: _mean(v, "auc", 2)),
    "edges found": ("edges", lambda v: _both(v, "recovery", "recovery_retrained")),
    "planted": (
        "edges",
        lambda v: " / ".join(_mean(v, k) for k in ("attacked", "healed", "clean") if v),
    ),
}


_OF_STREAMS = ("same bits", "a request")


def table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Return one row for each method, data set and kind of request."""
    groups: dict[tuple[str, str, str], dict[str, list[Mapping[str, Any]]]] = {}
    for one in results:
        row = one["dataset"], one["requests"], one["method"]
        groups.setdefault(row, {}).setdefault(one["kind"].removeprefix("arena-"), []).append(one)
    rows = [
        (
            *(method, dataset, kind, _published(method, dataset) if "utility" in found else ""),
            *(
                say(found.get(of) or (found.get("stream", []) if name in _OF_STREAMS else []))
                for name, (of, say) in _COLUMNS.items()
            ),
        )
        for (dataset, kind, method), found in sorted(groups.items())
    ]
    header = ("method", "data set", "requests", "published", *_COLUMNS)
    used = [at for at in range(len(header)) if any(row[at] for row in rows)]
    return Table(
        "Methods",
        tuple(header[at] for at in used),
        tuple(tuple(row[at] for at in used) for row in rows),
    )


def markdown(report: Mapping[str, Any]) -> str:
    """Return the table of what ``arena run --json`` printed."""
    made = table(report["results"])
    seeds = len({one["seed"] for one in report["results"]})
    words = ", ".join(f"{name} {said}" for name, said in report["versions"].items())
    machine = report["hardware"]["processor"]
    told = f"`{report['command']}`: {seeds} seeds; {words}; {machine}."
    return "\n\n".join([to_markdown([made]).partition("\n")[2].strip(), told])


def _notes(made: Table) -> tuple[str, ...]:
    scores, attacks = _NOTES
    attacked = {"versions", "members", "edges found"} & set(made.header)
    published = (_SOURCE,) if "published" in made.header else ()
    return (scores, *((attacks,) if attacked else ()), *published)


def _published(method: str, dataset: str) -> str:
    found = UTILITY.get(dataset, "gcn", _PUBLISHED.get(method, ""))
    return f"{found.mean:.3f}" if found else ""


def write(
    results: Mapping[Cell, Result], failures: Mapping[Cell, str], out: Path, command: str
) -> dict[str, Any]:
    """Write ``index.html``, ``table.md`` and ``cells.csv`` into a folder; return what they say."""
    values = [{"kind": c.kind, **c.config, **r.value} for c, r in results.items()]
    made = table(values)
    notes = _notes(made)
    cells = [_line(cell, result, command) for cell, result in results.items()]
    rows = tuple(tuple(str(value) for value in line.values()) for line in cells)
    listed = Table("Every measurement", tuple(cells[0]) if cells else (), rows)
    failed = {str(cell): message for cell, message in failures.items()}
    template = environment("grapheraser_lab.framework").get_template("arena.html.j2")
    lines = [f"{cell}: {message}" for cell, message in failed.items()]
    page = out / "index.html"
    write_text(
        page, template.render(table=made, notes=notes, cells=listed, failed=lines, command=command)
    )
    write_text(out / "table.md", "\n\n".join([to_markdown([made]), *notes]) + "\n")
    write_text(out / "cells.csv", to_csv(cells))
    newest = list(results.values())[-1]
    return {
        "command": command,
        "versions": newest.versions,
        "hardware": newest.hardware,
        "page": str(page),
        "results": values,
        "failed": failed,
    }


def _line(cell: Cell, result: Result, command: str) -> dict[str, Any]:
    told = {key: cell[key] for key in ("method", "dataset", "requests", "seed")}
    plain = {k: v for k, v in result.value.items() if isinstance(v, int | float | str | bool)}
    return {
        "kind": cell.kind,
        **told,
        "result": ", ".join(f"{name} {_short(value)}" for name, value in plain.items()),
        "cpu_seconds": result.cpu_seconds,
        "versions": ", ".join(f"{name} {said}" for name, said in result.versions.items()),
        "command": command,
        "digest": cell.digest[:12],
    }


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
