"""An audit as one HTML page for the person who answers for the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grapheraser.reports.figures.drawing import WIDTH, Drawing
from grapheraser.reports.pages.render import drawn, render
from grapheraser.reports.tables import Table
from grapheraser.reports.wording import contents, plural

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
    run, sections = report["run"], report["sections"]
    marks = list(_marks(sections))
    return render(
        "audit",
        run=run,
        subtitle=_subtitle(run),
        tone=_tone(report),
        verdict=_verdict(report),
        done=_done(run),
        picture=drawn(draw_attacks(marks)) if marks else None,
        findings=report["findings"],
        levels=LEVELS,
        mitigations=_mitigations(sections.get("mitigations", {"skipped": "it was not attacked"})),
        tables=list(_tables(sections)),
        minutes=report["minutes"],
        seconds=report["seconds"],
        partition_note=_partition_note(run),
    )


def _subtitle(run: Mapping[str, Any]) -> str:
    size = f"{plural(run['nodes'], 'node')}, {plural(run['edges'], 'edge')}"
    if run.get("task") == "graphs":
        size = plural(run["nodes"], "graph")
    shards = plural(run["shards"], "shard")
    if run.get("context_nodes"):
        shards += f" with {plural(run['context_nodes'], 'context node')} among theirs"
    return f"{run['graph']}: {size}; {shards} by the partition method {run['partition']}"


def _tone(report: Mapping[str, Any]) -> str:
    if not report["passed"]:
        return "bad"
    return "fair" if report["leaks"] or _skipped(report) else "good"


def _skipped(report: Mapping[str, Any]) -> list[str]:
    return [f["question"] for f in report["findings"] if f["level"] == "skipped"]


def _verdict(report: Mapping[str, Any]) -> str:
    """Say what the audit comes to, and first what was not run."""
    skipped = _skipped(report)
    missing = f"Not everything was run. Not known: {' '.join(skipped)} " if skipped else ""
    failed = [f["question"] for f in report["findings"] if f["level"] == "failed"]
    if failed:
        return f"{missing}A proof failed: {' '.join(failed)}"
    proofs = "every proof that was run passed" if skipped else "every proof passed"
    if report["leaks"]:
        return (
            f"{missing}Forgetting holds: {proofs}. But an attacker can see "
            f"{plural(report['leaks'], 'thing')}; see below."
        )
    tried = "no attack that was run" if skipped else "no attack"
    return f"{missing}Forgetting holds: {proofs}, and {tried} did better than chance."


def _done(run: Mapping[str, Any]) -> str:
    if not run["requests"]:
        return (
            "This run has not forgotten anything yet. Everything below was tried on copies of it, "
            "in memory; the run itself is unchanged."
        )
    return (
        f"This run has answered {plural(run['requests'], 'request')} so far and forgotten "
        f"{contents(run['forgotten'])}. The last receipt says: {run['statement']}. {run['reason']} "
        "The proofs below are about those requests. The attacks made further requests to copies, "
        "in memory; the run itself is unchanged."
    )


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


def _mitigations(section: Mapping[str, Any]) -> Mapping[str, Any]:
    if "skipped" in section:
        return section
    rows = [
        ("everything" if f["name"] == "none" else f["name"], _auc(f["auc"]), f"{f['f1']:.3f}")
        for f in section["figures"]
    ]
    return {"table": Table("", ("what is handed out", "attack", "micro F1"), tuple(rows))}


def _tables(sections: Sections) -> Iterator[Table]:
    if "scenarios" in sections.get("membership", {}):
        yield _scenarios(sections["membership"]["scenarios"])
    for name, title in (("forgetting", "Likelihood ratios: people"), ("edges", "Edges")):
        section = sections.get(name, {})
        if "standing" in section:
            yield Table(
                f"{title}, with {section['runs']} models of the attacker's own",
                ("situation", "attack", "found at 0.1 % false alarms", "found at 1 %"),
                tuple(
                    (words, _auc(r["auc"]), _percent(r["tpr"]["0.001"]), _percent(r["tpr"]["0.01"]))
                    for words, r in _situations(section)
                ),
            )
    if "methods" in sections.get("partition", {}):
        yield _partitions(sections["partition"]["methods"])


def _scenarios(scenarios: Sections) -> Table:
    header = ("after a request", "attack", "at 1 % false alarms", "before alone", "surer")
    rows = []
    for r in scenarios.values():
        figures = r["words"], _auc(r["rates"]["auc"]), _percent(r["rates"]["tpr"]["0.01"])
        surer = f"{r['degradation_count']:.0%} ({r['degradation_rate']:+.3f})"
        rows.append((*figures, f"{r['classical_auc']:.2f}", surer, r["features"], r["model"]))
    note = (
        '"Surer": the share of people about whom the second version made the attacker surer of '
        "the truth (50 % is no news), and by how much."
    )
    title = "Seeing the model before and after"
    return Table(title, (*header, "features", "attack model"), tuple(rows), note)


def _situations(section: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "in the data or not, over all models", section["standing"]
    yield "about to be forgotten", section["before"]
    if "drop" in section:
        yield "forgotten", section["after"]
        yield "which one went, seen before and after", section["drop"]
    else:
        words = {"kept": "forgotten", "recut": "everything partitioned and retrained"}
        for how, figure in section["after"].items():
            yield words.get(how, how), figure


def _partitions(methods: Sections) -> Table:
    header = ("method", "looks at", "same after deletion", "deleted edges")
    rows = []
    for found in methods.values():
        inputs = ", ".join(found["inputs"]) or "ids and a key"
        edges = _auc(found["edge"]["auc"]), _auc(found["edge_recut"]["auc"])
        node = "not done" if found["node"] is None else _auc(found["node"]["auc"])
        rows.append((found["method"], inputs, f"{found['agreement']:.2f}", *edges, node))
    note = (
        '"Same after deletion": adjusted Rand index between the kept partition and one made '
        "without 5 % of the nodes; 1 is the same partition, 0 is chance."
    )
    columns = (*header, "the same, repartitioned", "nodes")
    return Table("The partition into shards", columns, tuple(rows), note)


def _partition_note(run: Mapping[str, Any]) -> str:
    if run["partition"] == "hash":
        return "The partition follows from ids and a key; whoever knows both knows every shard."
    return (
        f"The partition ({run['partition']}) is part of the run and was made with the data as it "
        "was; the proof is about the model given that partition."
    )


def _auc(interval: Mapping[str, float]) -> str:
    return f"{interval['value']:.2f} ({interval['low']:.2f} to {interval['high']:.2f})"


def _percent(interval: Mapping[str, float]) -> str:
    low, high = interval["low"], interval["high"]
    return f"{interval['value']:.1%} ({low:.1%} to {high:.1%})"


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
