"""One HTML page with every table, figure and verdict, readable offline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from grapheraser.reports.pages.render import Picture, environment
from grapheraser.reports.tables import Table
from grapheraser.reports.wording import duration, plural
from grapheraser_lab.figures.tables import markdown_table, to_markdown
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.rules import (
    FAILS,
    HOLDS,
    MIXED,
    NOISY,
    RULES,
    SPLIT,
    UNTESTED,
    VERDICTS,
    Claim,
)

# The colour of each verdict.
_TONES = {HOLDS: "good", MIXED: "fair", SPLIT: "fair", FAILS: "bad", NOISY: "off", UNTESTED: "off"}
# The section that stands before the verdicts: the first of these that has something to show.
FIRST = ("readings", "utility")
# What the paper's sentences are about, by the first part of a rule's name.
TOPICS = {
    "Time": ("efficiency", "cost", "partition-cost"),
    "F1 of partitions": ("utility", "edges", "mlp", "guideline", "partitioners"),
    "LBAggr": ("lbaggr", "samples", "importance", "tsne"),
    "Shape of shards": ("shard-sizes", "lpa-view", "convergence", "delta"),
    "What moves F1": ("shards", "structure", "robustness", "community", "insertion"),
    "Attack": ("attack",),
}
UNMEASURED = "not measured"
_TITLE = "Graph Unlearning, reproduced: protocol {}"
HOW_JUDGED = (
    "Run r has the same split and seed whatever is measured, so figures are compared run by run: "
    "a difference comes with its standard error over the runs and, by Student's t, with a 95 % "
    "interval. A case is true, or false, where the whole interval says so, and within noise "
    "otherwise. A sentence about many cases holds where it is true in at least 80 % of them (60 % "
    "where the paper says most), and does not where it would be true in less than 40 % (35 %) if "
    "all that is within noise were true. In between, cells disagree; where what is within noise "
    "could still bring it to one of both sides, there were too few runs. Readings disagree where "
    "the text can be read in ways that end in different verdicts. Not tested: figures from here "
    "can't decide it, because the algorithm, the engine or the hardware is another. A collapsed "
    "figure counts as a failure."
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
    """Origin of the results: what made them, how many of the cells there are, and what failed."""

    versions: Sequence[str]
    hardware: Sequence[str]
    cells: int
    wanted: int
    seconds: float
    failures: dict[str, str] = field(default_factory=dict)
    devices: Table | None = None


def report_page(
    options: Options,
    sections: Sequence[Section],
    made: Provenance,
    opening: Sequence[str] = (),
    *,
    whole: bool = False,
) -> str:
    """The whole page; ``whole`` where all experiments were asked for."""
    return (
        environment("grapheraser_lab.framework")
        .get_template("experiments.html.j2")
        .render(
            title=_TITLE.format(options.protocol),
            setting=f"{_setting(options)} {_complete(made)}".strip(),
            about=options.how.about,
            opening=[*in_short(sections, whole=whole), *opening],
            judged=HOW_JUDGED,
            count=counted(sections),
            sections=sections,
            first=[s.name for s in _leading(sections)],
            tones=_TONES,
            made=_made(made),
            devices=made.devices,
            failures=made.failures,
        )
    )


def counted(sections: Sequence[Section]) -> str:
    """How many of the paper's sentences have each verdict, and how many hang on a share."""
    theirs = [claim for s in sections for claim in s.claims if not claim.ours]
    counts = [sum(claim.verdict == verdict for claim in theirs) for verdict in VERDICTS]
    told = ", ".join(f"{verdict} {n}" for verdict, n in zip(VERDICTS, counts, strict=True))
    hang = sum(claim.hangs for claim in theirs)
    return f"{told}. With shares 10 points higher or lower, {hang} of them would be another"


def in_short(sections: Sequence[Section], *, whole: bool = False) -> list[str]:
    """The paper's sentences by topic and verdict, each by the name of its rule: a minute's reading.

    Of a whole report they tell which sentences were not measured.
    """
    verdicts = {c.rule: c.verdict for s in sections for c in s.claims if not c.ours}
    if whole:
        theirs = [key for key in RULES if not RULES.get(key).ours]
        verdicts = dict.fromkeys(theirs, UNMEASURED) | verdicts
    lines = []
    for topic, kinds in TOPICS.items():
        some = {rule: v for rule, v in verdicts.items() if rule.partition("/")[0] in kinds}
        ends = [rule.partition("/")[2] for rule in some]
        short = {r: e if ends.count(e) == 1 else r for r, e in zip(some, ends, strict=True)}
        told = [
            f"{verdict} {len(names)} ({', '.join(names)})"
            for verdict in (*VERDICTS, UNMEASURED)
            if (names := [short[rule] for rule, v in some.items() if v == verdict])
        ]
        lines += [f"{topic}: {'; '.join(told)}."] if told else []
    return lines


def _leading(sections: Sequence[Section]) -> list[Section]:
    there = {section.name: section for section in sections if section.tables}
    return [there[name] for name in FIRST if name in there][:1]


def report_markdown(
    options: Options,
    sections: Sequence[Section],
    made: Provenance,
    opening: Sequence[str] = (),
    *,
    whole: bool = False,
) -> str:
    """Write the report: a minute's reading, verdicts, figures, tables; pictures lie beside it."""
    leading = _leading(sections)
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
        *(f"- {words}" for words in (*in_short(sections, whole=whole), *opening)),
        *(line for section in leading for line in _section_lines(section)),
        "## What was run",
        "",
        f"{options.how.about} {_setting(options)} {_complete(made)}".strip(),
        "",
        "## Which conclusions hold",
        "",
        f"Of the paper's sentences: {counted(sections)}. {HOW_JUDGED}",
        "",
        markdown_table(("verdict", "experiment", "sentence", "judgement"), claims),
    ]
    for section in sections:
        lines += [] if section in leading else _section_lines(section)
    lines += ["", "## How this was made", "", _made(made), ""]
    if made.devices is not None:
        lines.append(to_markdown([made.devices]))
    return "\n".join(lines)


def _section_lines(section: Section) -> list[str]:
    paper = f", the paper's `{section.label}`" if section.label else ""
    lines = ["", f"## {section.name}", "", f"{section.title}{paper}. {section.setting}", ""]
    if section.picture is not None:
        lines += [f"![{section.picture.alt}]({section.name}/figure.png)", ""]
    for claim in section.claims:
        lines += [f"- **{claim.verdict}**: {claim.statement}{' (ours)' if claim.ours else ''}"]
        lines += [f"  - Test: {claim.test}", f"  - Figures: {claim.evidence}"]
        lines += [f"  - {claim.judgement} {claim.choice}".rstrip()]
        lines += [f"  - {r.name}: {r.figures}" for r in claim.readings]
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
