"""An audit as one HTML page for the person who answers for the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from string import Template
from typing import Any

from grapheraser.errors import MissingExtraError
from grapheraser.reports.figures.audit import Mark, draw_attacks
from grapheraser.reports.figures.canvas import as_img

_PAGE = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Audit of $graph</title>
<style>
  body { font: 16px/1.55 system-ui, sans-serif; color: #1f2933; background: #fff;
         max-width: 60rem; margin: 2.5rem auto; padding: 0 1.2rem; }
  h1 { font-size: 1.7rem; margin-bottom: .2rem; }
  h2 { font-size: 1.25rem; margin: 2.4rem 0 .5rem; }
  h3 { font-size: 1rem; margin: 1.4rem 0 .2rem; }
  img { max-width: 100%; height: auto; display: block; }
  p { margin: .3rem 0 .6rem; }
  .verdict { padding: .8rem 1.1rem; border-radius: .5rem; color: #fff; background: $colour;
             font-weight: 600; margin: 1.2rem 0; }
  .finding { border-left: .3rem solid #cbd2d9; padding: .1rem 0 .1rem 1rem; margin: 1.3rem 0; }
  .passed { border-color: #2b8a3e; } .failed { border-color: #c92a2a; }
  .leak { border-color: #e8590c; } .noted { border-color: #1f6feb; }
  .tag { display: inline-block; font-size: .78rem; font-weight: 600; padding: .05rem .5rem;
         border-radius: .3rem; color: #fff; margin-right: .5rem; vertical-align: .1rem; }
  .tag.passed { background: #2b8a3e; } .tag.failed { background: #c92a2a; }
  .tag.leak { background: #c2410c; } .tag.noted { background: #1f6feb; }
  .tag.skipped { background: #616e7c; }
  .scroll { overflow-x: auto; }
  table { border-collapse: collapse; }
  td, th { padding: .25rem 1.2rem .25rem 0; text-align: left; font-variant-numeric: tabular-nums;
           vertical-align: top; }
  th { font-weight: 600; border-bottom: 1px solid #cbd2d9; }
  code { background: #f0f4f8; padding: .1rem .3rem; border-radius: .2rem; overflow-wrap: anywhere; }
  .quiet { color: #616e7c; }
  @media print { body { margin: 0; max-width: none; } }
</style>
<h1>Audit of a model that forgets</h1>
<p class="quiet">$subtitle</p>
<p class="verdict">$verdict</p>

<h2>What was asked</h2>
<p>People, or ties between them, were or may be removed from the data that this model was trained
on. Is the model then what it would have been without them? Is anything of them left? And can
somebody find out who they were?</p>

<h2>What was done</h2>
<p>$done</p>
<table>$facts</table>

<h2>What was measured, and what it means</h2>
<p>Attacks are judged by one number: how often the attacker is right when shown one person who was
in the data and one who was not. <b>0.5 is a coin toss, 1.0 is always right.</b> In brackets is the
range that the true figure lies in with 95&nbsp;% confidence.</p>
$picture
$findings

<h2>Saying less</h2>
$mitigations

<h2>The figures</h2>
$tables

<h2>What this does not show</h2>
<ul>
<li>An attack that fails shows that <em>this</em> attack fails, with this much time
($minutes minutes were allowed). A cleverer or better-informed one may do better.</li>
<li>The attackers here know a lot: the whole graph, the settings, the labels. Most real ones know
less. They do not know the weights, except where the proof is concerned.</li>
<li>Attacks were made with records drawn at random from the current data. An unusual record, such
as the only one of its kind, can be more visible than the average.</li>
<li>Only this run's folder was searched: no backups, no free disk space, no logs kept elsewhere, no
copies or answers that others have kept, no models trained from this one.</li>
<li>That a person is <em>no longer</em> in the data is not a secret that a model can keep: a service
that answers by name must say that it does not know the name.</li>
<li>What other people's data say about a person stays: the model may guess right about somebody it
has never seen.</li>
<li>$partition_note</li>
</ul>
<p class="quiet">$footer</p>
</html>
""")

_LEVELS = {
    "passed": "passed",
    "failed": "failed",
    "leak": "can be seen",
    "noted": "measured",
    "skipped": "not done",
}


def audit_page(report: Mapping[str, Any]) -> str:
    """The page, from the report as plain values; without ``plots`` it has no picture."""
    run, sections = report["run"], report["sections"]
    return _PAGE.substitute(
        graph=escape(run["graph"]),
        subtitle=escape(_subtitle(run)),
        colour=_colour(report),
        verdict=escape(_verdict(report)),
        done=escape(_done(run)),
        facts=_facts(run),
        picture=_picture(sections),
        findings="\n".join(_finding(finding) for finding in report["findings"]),
        mitigations=_mitigations(sections.get("mitigations")),
        tables="\n".join(_tables(sections)),
        minutes=f"{report['minutes']:g}",
        partition_note=escape(_partition_note(run)),
        footer=escape(f"Audited in {report['seconds']:.0f} s. {run['eraser']}"),
    )


def _subtitle(run: Mapping[str, Any]) -> str:
    return (
        f"{run['graph']}: {run['nodes']:,} nodes, {run['edges']:,} ties; {run['shards']} shards "
        f"cut by {run['partition']}"
    )


def _verdict(report: Mapping[str, Any]) -> str:
    failed = [f["question"] for f in report["findings"] if f["level"] == "failed"]
    if failed:
        return "A proof failed: " + " ".join(failed)
    leaks = report["leaks"]
    if leaks:
        noun = "thing" if leaks == 1 else "things"
        return (
            f"Forgetting holds: every proof passed. But {leaks} {noun} can be seen by an attacker; "
            "see below."
        )
    return "Forgetting holds: every proof passed, and no attack did better than chance."


def _colour(report: Mapping[str, Any]) -> str:
    if not report["passed"]:
        return "#c92a2a"
    return "#b45309" if report["leaks"] else "#2b8a3e"


def _done(run: Mapping[str, Any]) -> str:
    if not run["requests"]:
        return (
            "Nothing has been forgotten in this run yet. What follows was tried on copies of it, "
            "in memory; the run itself is unchanged."
        )
    gone = run["forgotten"]
    listed = ", ".join(
        f"{count} {noun if count == 1 else plural}"
        for count, noun, plural in (
            (gone["nodes"], "node", "nodes"),
            (gone["edges"], "tie", "ties"),
            (gone["features"], "feature row", "feature rows"),
        )
        if count
    )
    asked = "1 request has" if run["requests"] == 1 else f"{run['requests']} requests have"
    return (
        f"{asked} been carried out in this run so far: {listed} forgotten. "
        f"The last receipt says: {run['statement']}. {run['reason']} The proofs below are about "
        "those requests. The attacks were made with further requests on copies, in memory; the run "
        "itself is unchanged."
    )


def _facts(run: Mapping[str, Any]) -> str:
    f1 = "none" if run["test_f1"] is None else f"{run['test_f1']:.3f}"
    rows = (
        ("trained on", f"{run['train_nodes']:,} nodes, {run['shard_nodes']:.0f} in a shard"),
        ("tested on", f"{run['test_nodes']:,} nodes, micro F1 {f1}"),
        ("graph", f"<code>{escape(run['fingerprint'][:32])}</code>"),
        ("last receipt", f"<code>{escape((run['last_receipt'] or 'none')[:32])}</code>"),
    )
    return "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows)


def _finding(finding: Mapping[str, str]) -> str:
    level = finding["level"]
    return (
        f'<div class="finding {level}"><h3><span class="tag {level}">{_LEVELS[level]}</span>'
        f"{escape(finding['question'])}</h3><p>{escape(finding['measured'])}</p>"
        f"<p><b>{escape(finding['meaning'])}</b></p></div>"
    )


def _marks(sections: Mapping[str, Mapping[str, Any]]) -> Iterator[Mark]:
    forgetting, edges = sections.get("forgetting", {}), sections.get("edges", {})
    if "before" in forgetting:
        yield "trained on, not yet forgotten", forgetting["before"]["auc"], False
        yield "forgotten", forgetting["after"]["kept"]["auc"], True
        yield "everything trained again", forgetting["after"]["recut"]["auc"], False
    scenarios = sections.get("membership", {}).get("scenarios", {})
    words = {
        "kept": "before and after: as this run forgets",
        "kept, batches": "before and after: the same, in batches",
        "recut": "before and after: all again, same seed",
        "kept, reseeded": "before and after: touched shards reseeded",
        "recut, reseeded": "before and after: all again, new seed",
    }
    for how, result in scenarios.items():
        yield words[how], result["rates"]["auc"], how == "kept"
    if "before" in edges:
        yield "a tie, not yet forgotten", edges["before"]["auc"], False
        yield "a tie, forgotten", edges["after"]["auc"], True
        yield "a tie, before and after", edges["drop"]["auc"], True


def _picture(sections: Mapping[str, Mapping[str, Any]]) -> str:
    marks = list(_marks(sections))
    if not marks:
        return ""
    try:
        return as_img(draw_attacks(marks), "how well each attack guesses")
    except MissingExtraError as error:
        return f'<p class="quiet">{escape(error.message)} <code>{escape(error.hint or "")}</code>'


def _mitigations(section: Mapping[str, Any] | None) -> str:
    if section is None or "skipped" in section:
        why = "" if section is None else f": {section['skipped']}"
        return f'<p class="quiet">Not measured{escape(why)}.</p>'
    rows = [(f["name"], _auc(f["auc"]), f"{f['f1']:.3f}") for f in section["figures"]]
    words = (
        "A service need not hand out every decimal. What each way of saying less does to the "
        "attacker who compares answers from before and after, and to the quality of the answers:"
    )
    header = ("what is handed out", "attack", "micro F1")
    named = [("everything" if name == "none" else name, *rest) for name, *rest in rows]
    return f"<p>{words}</p>{_table(header, named)}"


def _tables(sections: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    membership = sections.get("membership", {})
    if "scenarios" in membership:
        yield "<h3>Seeing the model before and after</h3>"
        header = (
            "after a request", "attack", "at 1 % false alarms", "before alone", "surer", "features",
            "attack model",
        )  # fmt: skip
        yield _table(
            header,
            [
                (
                    r["words"],
                    _auc(r["rates"]["auc"]),
                    _percent(r["rates"]["tpr"]["0.01"]),
                    f"{r['classical_auc']:.2f}",
                    f"{r['degradation_count']:.0%} ({r['degradation_rate']:+.3f})",
                    r["features"],
                    r["model"],
                )
                for r in membership["scenarios"].values()
            ],
        )
        yield (
            '<p class="quiet">"Surer": the share of people about whom the second version made the '
            "attacker surer of the truth (50&nbsp;% is no news), and by how much.</p>"
        )
    for name, title in (("forgetting", "Likelihood ratios: people"), ("edges", "Ties")):
        section = sections.get(name, {})
        if "standing" in section:
            yield f"<h3>{title}, with {section['runs']} models of the attacker's own</h3>"
            yield _table(
                ("situation", "attack", "found at 0.1 % false alarms", "found at 1 %"),
                [
                    (words, _auc(r["auc"]), _percent(r["tpr"]["0.001"]), _percent(r["tpr"]["0.01"]))
                    for words, r in _situations(section)
                ],
            )
    partition = sections.get("partition", {})
    if "methods" in partition:
        yield "<h3>The cut into shards</h3>"
        yield _table(
            (
                "method",
                "looks at",
                "same after deletion",
                "deleted ties",
                "ties, cut anew",
                "nodes",
            ),
            [
                (
                    method["method"],
                    ", ".join(method["inputs"]) or "ids and a key",
                    f"{method['agreement']:.2f}",
                    _auc(method["tie"]["auc"]),
                    _auc(method["tie_recut"]["auc"]),
                    "not done" if method["node"] is None else _auc(method["node"]["auc"]),
                )
                for method in partition["methods"].values()
            ],
        )
        yield (
            '<p class="quiet">"Same after deletion": adjusted Rand index between the kept cut and '
            "one made without 5&nbsp;% of the nodes; 1 is the same cut, 0 is chance.</p>"
        )


def _situations(section: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "in the data or not, over all models", section["standing"]
    yield "about to be forgotten", section["before"]
    if "drop" in section:
        yield "forgotten", section["after"]
        yield "which one went, seen before and after", section["drop"]
    else:
        words = {"kept": "forgotten", "recut": "everything cut and trained again"}
        for how, figure in section["after"].items():
            yield words.get(how, how), figure


def _partition_note(run: Mapping[str, Any]) -> str:
    if run["partition"] == "hash":
        return "The cut into shards follows from ids and a key; who knows both knows every shard."
    return (
        f"The cut into shards ({run['partition']}) is part of the run and was made with the data "
        "as it was; the proof is about the model given that cut."
    )


def _auc(interval: Mapping[str, float]) -> str:
    return f"{interval['value']:.2f} ({interval['low']:.2f} to {interval['high']:.2f})"


def _percent(interval: Mapping[str, float]) -> str:
    low, high = interval["low"], interval["high"]
    return f"{interval['value']:.1%} ({low:.1%} to {high:.1%})"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>\n{body}</table></div>'
