"""grapheraser audit: attack a run and report the findings."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.output import JsonOption, print_json, print_table, say
from grapheraser.cli.own import TrustOption, own_parts
from grapheraser.errors import ParameterError
from grapheraser.reports.wording import duration, plural

NAME = "audit"
# The exit status of an audit that put fewer questions than there are.
INCOMPLETE = 3


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    minutes: Annotated[float, typer.Option(help="Time limit of the attacks.")] = 3.0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the report; default RUN-audit.")
    ] = None,
    forgotten: Annotated[
        Path | None,
        typer.Option(help="File of forgotten nodes, edges and feature rows to search for."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the audit.")] = 0,
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Verify, search and attack a run, and write a report."""
    from grapheraser.audit.report import DATA, audit_run, report_folder
    from grapheraser.audit.residues.forgotten import Forgotten
    from grapheraser.reports.pages.audit import audit_page
    from grapheraser.store import write_text

    folder = report_folder(path) if out is None else out
    if folder.resolve().is_relative_to(path.resolve()):
        raise ParameterError(
            f"{folder} is inside the run, where a report would be a stray file.",
            hint="choose another --out.",
        )
    sought = None if forgotten is None else Forgotten.read(forgotten)
    report = audit_run(
        path, minutes=minutes, forgotten=sought, seed=seed, say=say, own=own_parts(path, trust)
    )
    content = report.to_dict()
    page, data = folder / "index.html", folder / DATA
    write_text(page, audit_page(content))
    write_text(data, jsonlib.dumps(content, indent=1) + "\n")
    if json:
        print_json({**content, "page": str(page)})
    else:
        rows = [(f.level, f.question) for f in report.findings]
        print_table("", ("result", "question"), rows)
        print(f"page      {page}")
        print(f"data      {data}")
        for question in report.not_run:
            print(f"NOT RUN   {question}")
        missing = f"{plural(len(report.not_run), 'question')} NOT RUN; " if report.not_run else ""
        verdict = "every proof holds" if report.passed else "A PROOF FAILED"
        leaks = f"{plural(report.leaks, 'leak')} measured"
        print(f"audited: {missing}{verdict}; {leaks}; in {duration(report.seconds)}")
    if not report.passed:
        raise typer.Exit(1)
    if report.not_run:
        raise typer.Exit(INCOMPLETE)
