"""One HTML page with every table, figure and verdict, readable offline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.rules import FAILS, HOLDS, OPEN, PARTLY, Claim
from grapheraser.reports.pages.render import Picture, render
from grapheraser.reports.tables import Table, markdown_table, to_markdown
from grapheraser.reports.wording import duration, plural

# The colour of each verdict.
_TONES = {HOLDS: "good", PARTLY: "fair", FAILS: "bad", OPEN: "off"}
_TITLE = "Graph Unlearning, reproduced: protocol {}"
HOW_JUDGED = (
    "Run r has the same split and seed whatever is measured, so figures are compared run by run: "
    "a difference comes with its standard error over the runs and, by Student's t, with a 95 % "
    "interval. A case is true, or false, where the whole interval says so, and within noise "
    "otherwise. A sentence about many cases holds where it is true in at least 80 % of them, and "
    "in part from 40 % on (60 % and 35 % where the paper says most); it does not hold where it "
    "would not even hold in part if all that is within noise were true; else it can't be told. "
    "Nothing was tuned towards the paper's figures."
)


@dataclass(frozen=True)
class Section:
    """One experiment of the report.

    Attributes:
        name, title, label: of the experiment.
        setting: data sets, models and runs, in words.
        tables, claims, notes: see `Summary`.
        picture: the figure; None where there is none.
    """

    name: str
    title: str
    label: str
    setting: str
    tables: Sequence[Table]
    claims: Sequence[Claim]
    notes: Sequence[str] = ()
    picture: Picture | None = None


@dataclass(frozen=True)
class Provenance:
    """What the results were made with, how many of the cells there are, and what failed."""

    versions: Sequence[str]
    hardware: Sequence[str]
    cells: int
    wanted: int
    seconds: float
    failures: dict[str, str] = field(default_factory=dict)
    devices: Table | None = None


def report_page(
    options: Options, sections: Sequence[Section], made: Provenance, opening: Sequence[str] = ()
) -> str:
    """The whole page."""
    return render(
        "experiments",
        title=_TITLE.format(options.protocol),
        setting=f"{_setting(options)} {_complete(made)}".strip(),
        about=options.how.about,
        opening=opening,
        judged=HOW_JUDGED,
        count=counted(sections),
        sections=sections,
        tones=_TONES,
        made=_made(made),
        devices=made.devices,
        failures=made.failures,
    )


def counted(sections: Sequence[Section]) -> str:
    """How many of the paper's sentences hold, in part, do not, or can't be told."""
    verdicts = [claim.verdict for s in sections for claim in s.claims if not claim.ours]
    words = {HOLDS: "hold", PARTLY: "hold in part", FAILS: "do not hold", OPEN: "can't be told"}
    return ", ".join(f"{verdicts.count(verdict)} {text}" for verdict, text in words.items())


def report_markdown(
    options: Options, sections: Sequence[Section], made: Provenance, opening: Sequence[str] = ()
) -> str:
    """The same as text: verdicts first, then figures and tables; pictures lie beside it."""
    claims = [
        (
            claim.verdict,
            f"[{section.name}](#{section.name})",
            claim.statement + (" (ours)" if claim.ours else ""),
            f"{claim.judgement} {claim.choice}".strip(),
        )
        for section in sections
        for claim in section.claims
    ]
    lines = [
        f"# {_TITLE.format(options.protocol)}",
        "",
        f"{options.how.about} {_setting(options)} {_complete(made)}".strip(),
        *(line for words in opening for line in ("", words)),
        "",
        "## Which conclusions hold",
        "",
        f"Of the paper's sentences that were tested here, {counted(sections)}. {HOW_JUDGED}",
        "",
        markdown_table(("verdict", "experiment", "sentence", "judgement"), claims),
    ]
    for section in sections:
        lines += _section_lines(section)
    lines += ["", "## How this was made", "", _made(made), ""]
    if made.devices is not None:
        lines.append(to_markdown([made.devices]))
    return "\n".join(lines)


def _section_lines(section: Section) -> list[str]:
    paper = f", the paper's `{section.label}`" if section.label else ""
    lines = ["", f"## {section.name}", "", f"{section.title}{paper}. {section.setting}", ""]
    for claim in section.claims:
        lines += [f"- **{claim.verdict}**: {claim.statement}{' (ours)' if claim.ours else ''}"]
        lines += [f"  - Test: {claim.test}", f"  - Figures: {claim.evidence}"]
        lines += [f"  - {claim.judgement} {claim.choice}".rstrip()]
        lines += [f"  - {r.name}: {r.figures}" for r in claim.readings]
    if section.picture is not None:
        lines += ["", f"![{section.picture.alt}]({section.name}/figure.png)"]
    lines += ["", to_markdown(section.tables)]
    return [*lines, *(line for note in section.notes for line in (note, ""))]


def _complete(made: Provenance) -> str:
    """Said first where something is missing: verdicts on few cases are not the last word."""
    if made.cells == made.wanted:
        return ""
    return (
        f"Not complete: {made.cells} of {made.wanted} measurements were made so far. Each verdict "
        "says on how many cases it rests, each section how many runs there are."
    )


def _made(made: Provenance) -> str:
    return (
        f"{plural(made.cells, 'measurement')}, {duration(made.seconds)} of processor time. "
        f"Versions: {'; '.join(made.versions)}. "
        "The paper: M. Chen et al., Graph Unlearning, ACM CCS 2022."
    )


def _setting(options: Options) -> str:
    runs, epochs = plural(options.runs, "run"), plural(options.epochs, "epoch")
    return f"Up to {runs}, each with its own 80/20 split and seed; {epochs}."
