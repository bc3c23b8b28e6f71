"""One HTML page with every table, figure and verdict, readable offline."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from string import Template

from grapheraser.experiments.framework.experiment import FAILS, HOLDS, OPEN, PARTLY, Claim
from grapheraser.experiments.framework.options import Options
from grapheraser.reports.tables import Table, to_html, to_markdown

_PAGE = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
  body { font: 16px/1.55 system-ui, sans-serif; color: #1f2430; background: #fff;
         max-width: 74rem; margin: 2.5rem auto; padding: 0 1.2rem; }
  h1 { font-size: 1.8rem; margin-bottom: .2rem; }
  h2 { font-size: 1.35rem; margin: 3.2rem 0 .3rem; padding-top: .6rem;
       border-top: 1px solid #e5e7eb; }
  h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
  img { max-width: 100%; height: auto; display: block; margin: 1rem 0; }
  .scroll { overflow-x: auto; }
  table { border-collapse: collapse; font-size: .83rem; }
  td, th { padding: .22rem .9rem .22rem 0; text-align: left; vertical-align: top;
           white-space: nowrap; font-variant-numeric: tabular-nums; }
  th { font-weight: 600; border-bottom: 1px solid #cbd2d9; }
  tr + tr td { border-top: 1px solid #f1f3f5; }
  table.claims td { white-space: normal; }
  small { color: #6b7280; }
  .quiet { color: #6b7280; font-size: .88rem; }
  .above { color: #1d7a4c; } .below { color: #b3261e; }
  .verdict { display: inline-block; padding: .05rem .55rem; border-radius: .7rem; font-size: .78rem;
             font-weight: 600; color: #fff; white-space: nowrap; }
  .holds { background: #2e9e6b; } .partly { background: #c98a1b; }
  .fails { background: #c0392b; } .open { background: #8a94a3; }
  nav { columns: 3; font-size: .9rem; margin: 1rem 0; }
  nav a { display: block; color: #2f6fdb; text-decoration: none; }
  code { background: #f0f4f8; padding: .1rem .3rem; border-radius: .2rem; }
</style>
<h1>$title</h1>
<p class="quiet">$setting</p>
<p>$about</p>
<p>$reading</p>
<h2>Which conclusions hold</h2>
<p>$count</p>
$claims
<nav>$links</nav>
$sections
<h2>How this was made</h2>
<p class="quiet">$made</p>
$failures
</html>
""")

_CLASSES = {HOLDS: "holds", PARTLY: "partly", FAILS: "fails", OPEN: "open"}


@dataclass(frozen=True)
class Section:
    """One experiment of the report.

    Attributes:
        name, title, label: of the experiment.
        setting: data sets, models and runs, in words.
        tables, claims, notes: see `Summary`.
        png: the figure; None where there is none.
        alt: words for those who can't see it.
    """

    name: str
    title: str
    label: str
    setting: str
    tables: Sequence[Table]
    claims: Sequence[Claim]
    notes: Sequence[str] = ()
    png: bytes | None = None
    alt: str = ""


@dataclass(frozen=True)
class Made:
    """What the results were made with, how many of the cells there are, and what failed."""

    versions: Sequence[str]
    hardware: Sequence[str]
    cells: int
    wanted: int
    seconds: float
    failures: dict[str, str] = field(default_factory=dict)


def report_page(options: Options, sections: Sequence[Section], made: Made) -> str:
    """The whole page."""
    claims = [claim for section in sections for claim in section.claims]
    count = ", ".join(
        f"{sum(c.verdict == verdict for c in claims if not c.ours)} {words}"
        for verdict, words in ((HOLDS, "hold"), (PARTLY, "hold partly"), (FAILS, "do not hold"))
    )
    rows = "\n".join(
        f"<tr><td>{_badge(claim)}</td><td><a href='#{section.name}'>{section.name}</a></td>"
        f"<td>{escape(claim.statement)}{' <small>(ours)</small>' if claim.ours else ''}"
        f"<br><small>{escape(claim.evidence)}</small></td></tr>"
        for section in sections
        for claim in section.claims
    )
    failures = ""
    if made.failures:
        items = "".join(
            f"<li>{escape(cell)}: {escape(text)}</li>" for cell, text in made.failures.items()
        )
        failures = f"<h3>Cells that failed</h3><ul>{items}</ul>"
    return _PAGE.substitute(
        title=f"Graph Unlearning, run again: protocol {escape(options.protocol)}",
        setting=escape(f"{_setting(options)} {_complete(made)}".strip()),
        about=escape(options.how.about),
        reading=(
            "The paper's figures stand below ours. Verdicts are given by fixed rules from the "
            "figures: a statement about many cases holds where it is true in at least 80 % of "
            "them, partly from 40 % on (60 % and 35 % where the paper says &ldquo;most&rdquo;). "
            "Nothing was tuned towards the paper's figures."
        ),
        count=f"Of the paper's conclusions that were tested here, {count}.",
        claims=f"<div class='scroll'><table class='claims'>{rows}</table></div>",
        links="".join(f"<a href='#{s.name}'>{escape(s.title)}</a>" for s in sections),
        sections="\n".join(_section(section) for section in sections),
        made=escape(_made(made)),
        failures=failures,
    )


def report_markdown(options: Options, sections: Sequence[Section], made: Made) -> str:
    """The same without pictures, for people who read text: verdicts first, then the tables."""
    lines = [
        f"# Graph Unlearning, run again: protocol {options.protocol}",
        "",
        f"{options.how.about} {_setting(options)} {_complete(made)}".strip(),
        "",
        "| verdict | experiment | conclusion | our figures |",
        "|---|---|---|---|",
    ]
    for section in sections:
        for claim in section.claims:
            ours = " (ours)" if claim.ours else ""
            lines.append(
                f"| {claim.verdict} | [{section.name}](#{section.name}) "
                f"| {claim.statement}{ours} | {claim.evidence} |"
            )
    for section in sections:
        lines += ["", f"## {section.name}", "", f"{section.title}, the paper's `{section.label}`."]
        lines += [section.setting, "", to_markdown(section.tables)]
    lines += ["", "## How this was made", "", _made(made), ""]
    return "\n".join(lines)


def _complete(made: Made) -> str:
    """Said first where something is missing: verdicts on few cases are not the last word."""
    if made.cells == made.wanted:
        return ""
    return (
        f"Not complete: {made.cells} of {made.wanted} measurements were made so far. Each verdict "
        "says on how many cases it rests, each section how many runs there are."
    )


def _made(made: Made) -> str:
    return (
        f"{made.cells} measurements, {made.seconds / 3600:.2f} hours of processor time. "
        f"Hardware: {'; '.join(made.hardware)}. Versions: {'; '.join(made.versions)}. "
        "The paper: M. Chen et al., Graph Unlearning, ACM CCS 2022."
    )


def _setting(options: Options) -> str:
    runs = f"{options.runs} run{'s' if options.runs > 1 else ''}"
    return f"Up to {runs}, each with its own 80/20 split and seed; {options.epochs} epochs."


def _section(section: Section) -> str:
    picture = ""
    if section.png is not None:
        data = base64.b64encode(section.png).decode()
        picture = f'<img alt="{escape(section.alt)}" src="data:image/png;base64,{data}">'
    claims = "".join(
        f"<li>{_badge(c)} {escape(c.statement)} <small>{escape(c.evidence)}</small></li>"
        for c in section.claims
    )
    notes = "".join(f'<p class="quiet">{escape(note)}</p>' for note in section.notes)
    tables = "\n".join(to_html(table) for table in section.tables)
    return (
        f"<h2 id='{section.name}'>{escape(section.title)}</h2>\n"
        f"<p class='quiet'><code>grapheraser experiment {section.name}</code>, the paper's "
        f"<code>{escape(section.label)}</code>. {escape(section.setting)}</p>\n"
        f"<ul>{claims}</ul>\n{picture}\n{tables}\n{notes}"
    )


def _badge(claim: Claim) -> str:
    return f"<span class='verdict {_CLASSES[claim.verdict]}'>{claim.verdict}</span>"
