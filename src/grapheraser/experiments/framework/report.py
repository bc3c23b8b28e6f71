"""One HTML page with every table, figure and verdict, readable offline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from grapheraser.experiments.framework.experiment import FAILS, HOLDS, OPEN, PARTLY, Claim
from grapheraser.experiments.framework.options import Options
from grapheraser.reports.pages.render import Picture, render
from grapheraser.reports.tables import Table, markdown_table, to_markdown
from grapheraser.reports.wording import duration, plural

# The colour of each verdict.
_TONES = {HOLDS: "good", PARTLY: "fair", FAILS: "bad", OPEN: "off"}
_TITLE = "Graph Unlearning, reproduced: protocol {}"


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


def report_page(options: Options, sections: Sequence[Section], made: Provenance) -> str:
    """The whole page."""
    claims = [claim for section in sections for claim in section.claims]
    count = ", ".join(
        f"{sum(c.verdict == verdict for c in claims if not c.ours)} {words}"
        for verdict, words in ((HOLDS, "hold"), (PARTLY, "hold partly"), (FAILS, "do not hold"))
    )
    return render(
        "experiments",
        title=_TITLE.format(options.protocol),
        setting=f"{_setting(options)} {_complete(made)}".strip(),
        about=options.how.about,
        count=count,
        sections=sections,
        tones=_TONES,
        made=_made(made),
        failures=made.failures,
    )


def report_markdown(options: Options, sections: Sequence[Section], made: Provenance) -> str:
    """The same without pictures, for people who read text: verdicts first, then the tables."""
    claims = [
        (
            claim.verdict,
            f"[{section.name}](#{section.name})",
            claim.statement + (" (ours)" if claim.ours else ""),
            claim.evidence,
        )
        for section in sections
        for claim in section.claims
    ]
    lines = [
        f"# {_TITLE.format(options.protocol)}",
        "",
        f"{options.how.about} {_setting(options)} {_complete(made)}".strip(),
        "",
        markdown_table(("verdict", "experiment", "conclusion", "our figures"), claims),
    ]
    for section in sections:
        paper = f", the paper's `{section.label}`" if section.label else ""
        lines += ["", f"## {section.name}", "", f"{section.title}{paper}."]
        lines += [section.setting, "", to_markdown(section.tables)]
    lines += ["", "## How this was made", "", _made(made), ""]
    return "\n".join(lines)


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
        f"Hardware: {'; '.join(made.hardware)}. Versions: {'; '.join(made.versions)}. "
        "The paper: M. Chen et al., Graph Unlearning, ACM CCS 2022."
    )


def _setting(options: Options) -> str:
    runs, epochs = plural(options.runs, "run"), plural(options.epochs, "epoch")
    return f"Up to {runs}, each with its own 80/20 split and seed; {epochs}."
