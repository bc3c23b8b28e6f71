"""The audit in one picture: how well each attack guesses, against the toss of a coin."""

from __future__ import annotations

from collections.abc import Sequence

from grapheraser.reports.figures.drawing import WIDTH, Drawing

# What an attack was up against: (words, AUC with its interval, whether the run is at stake).
Mark = tuple[str, dict[str, float], bool]

_ROW, _TOP = 38.0, 26.0


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
        drawing.line(x, _TOP, x, bottom, "chance" if tick == 0.5 else "grid")
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
