"""An audit as one HTML page for the person who answers for the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grapheraser.reports.figures.drawing import WIDTH, Drawing
from grapheraser.reports.pages.render import drawn, render

# The colour and the word of each level of a finding.
LEVELS = {
    "passed": ("good", "passed"),
    "failed": ("bad", "failed"),
    "leak": ("fair", "can be seen"),
    "noted": ("note", "measured"),
    "skipped": ("off", "not done"),
}
_SCENARIOS = {
    "kept": "before and after: as this run forgets",
    "kept, batches": "before and after: the same, in batches",
    "recut": "before and after: all retrained, same seed",
    "kept, reseeded": "before and after: refresh='touched'",
    "refreshed": "before and after: refresh='all'",
    "recut, reseeded": "before and after: all retrained, new seed",
}

Sections = Mapping[str, Mapping[str, Any]]
# An attack: (words, AUC with its interval, whether it is on the run itself).
Mark = tuple[str, dict[str, float], bool]
_ROW, _TOP = 38.0, 26.0


def audit_page(report: Mapping[str, Any]) -> str:
    """The page, from the report as plain values."""
    marks = list(_marks(report["sections"]))
    found = report["findings"]
    asked = {name: [f["question"] for f in found if f["level"] == name] for name in LEVELS}
    picture = drawn(draw_attacks(marks)) if marks else None
    return render("audit", **report, asked=asked, picture=picture, levels=LEVELS)


def _marks(sections: Sections) -> Iterator[Mark]:
    forgetting, edges = sections.get("forgetting", {}), sections.get("edges", {})
    if "before" in forgetting:
        yield "trained on, not yet forgotten", forgetting["before"]["auc"], False
        yield "forgotten", forgetting["after"]["kept"]["auc"], True
        yield "everything retrained", forgetting["after"]["recut"]["auc"], False
    for how, result in sections.get("membership", {}).get("scenarios", {}).items():
        yield _SCENARIOS[how], result["rates"]["auc"], how == "kept"
    if "before" in edges:
        yield "an edge, not yet forgotten", edges["before"]["auc"], False
        yield "an edge, forgotten", edges["after"]["auc"], True
        yield "an edge, before and after", edges["drop"]["auc"], True
    inversion = sections.get("inversion", {})
    if "after" in inversion:
        yield "a forgotten edge, recovered", inversion["after"]["auc"], True
        yield "one that was never there", inversion["never"]["auc"], False
    moved = {"pair": "the pair", "around": "pairs around it", "moved": "the graph"}
    for name, what in (("links", "an edge"), ("graphs", "a graph")):
        found = sections.get(name, {})
        if "before" in found:
            yield f"{what}, not yet forgotten", found["before"]["auc"], False
            yield f"{what}, forgotten", found["after"]["auc"], True
            yield f"{what} that was never there", found["never"]["auc"], False
            for part in (part for part in moved if part in found):
                yield f"before and after: {moved[part]}", found[part]["auc"], True


def draw_attacks(marks: Sequence[Mark]) -> Drawing:
    """One row per attack, top down: its AUC as a dot, its interval as a line.

    The dots of attacks on the run itself are full, those to compare them with are hollow.
    """
    words = "; ".join(f"{name}: {auc['value']:.2f}" for name, auc, _ in marks)
    drawing = Drawing(_TOP + len(marks) * _ROW + 40, f"AUC of each attack. {words}.")
    low = min(0.4, *(auc["low"] - 0.02 for _, auc, _ in marks))
    bottom = _TOP + len(marks) * _ROW

    def across(auc: float) -> float:
        return 8 + (auc - low) / (1.0 - low) * (WIDTH - 16)

    drawing.circle(8, 9, 5, "is")
    drawing.text(18, 13, "as this run forgets", "small")
    drawing.circle(158, 9, 5, "was")
    drawing.text(168, 13, "for comparison", "small")
    for tick, name in ((0.5, "coin toss"), (0.75, ""), (1.0, "always right")):
        x = across(tick)
        for row in range(len(marks)):  # beside the dots: the words above them stay clear
            y = _TOP + row * _ROW
            drawing.line(x, y + 18, x, y + 32, "chance" if tick == 0.5 else "grid")
        place, anchor = (WIDTH, "end") if tick == 1 else (x, "middle")
        drawing.text(place, bottom + 16, f"{tick:g}", "small quiet", anchor)
        drawing.text(place, bottom + 31, name, "small quiet", anchor)
    for row, (name, auc, own) in enumerate(marks):
        y = _TOP + row * _ROW
        kind = "is" if own else "was"
        drawing.text(0, y + 13, name, "small")
        drawing.text(WIDTH, y + 13, f"{auc['value']:.2f}", "small strong", "end")
        ends = across(auc["low"]), across(auc["high"])
        drawing.line(ends[0], y + 25, ends[1], y + 25, "move" if own else "span")
        title = f"{auc['value']:.2f}, {auc['low']:.2f} to {auc['high']:.2f}"
        drawing.circle(across(auc["value"]), y + 25, 5, kind, title)
    return drawing
