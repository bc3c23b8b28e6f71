"""Put figures into plain words: what passed, what leaks, and to whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from grapheraser.reports.wording import listed, plural

PASSED, FAILED, LEAK, NOTED, SKIPPED = "passed", "failed", "leak", "noted", "skipped"
Answer = tuple[str, str, str]  # level, measured, meaning


@dataclass(frozen=True)
class Finding:
    """One question, its answer, and what the answer means."""

    question: str  # as a person would ask it
    level: str  # passed or failed (proofs), leak or noted (measurements), skipped
    measured: str  # the figures, in words
    meaning: str  # what follows from them


def auc_text(figure: Mapping[str, Any]) -> str:
    """Spell an AUC and its interval."""
    interval = figure.get("auc", figure)
    return f"{interval['value']:.2f} ({interval['low']:.2f} to {interval['high']:.2f})"


def _above_chance(figure: Mapping[str, Any]) -> bool:
    return bool(figure["auc"]["low"] > 0.5)


def _clearly_above(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return bool(a["auc"]["low"] > b["auc"]["high"])


def _verification(section: Mapping[str, Any]) -> Answer:
    measured = (
        f"Everything was retrained from the data that is left; {section['values']:,} numbers in "
        f"{plural(section['tensors'], 'table')} were compared, and "
        f"{plural(section['receipts'], 'receipt')} checked. Signatures: "
        f"{section['signatures']['words']}."
    )
    wrong = section["signatures"]["wrong"]
    if section["identical"] and not wrong:
        meaning = "Every bit agrees: nothing that was forgotten has a part in the model."
        return PASSED, measured, meaning
    if section["elsewhere"] and not wrong:
        why = f"Bits depend on what trains: {section['elsewhere']}."
        return SKIPPED, why, "Not known."
    listed = "; ".join([*section["differences"], *wrong][:3])
    words = "Every bit agrees, but not every signature" if section["identical"] else "They differ"
    return FAILED, measured, f"{words}: {listed}."


def _search(section: Mapping[str, Any]) -> Answer:
    sought = section["sought"]
    measured = (
        f"{plural(section['files'], 'file')} ({section['size']:,} bytes) were read in full, "
        "looking for files that the manifest does not name, leftovers, replaced weights and caches"
    )
    if any(sought.values()):
        measured += (
            f", and for {plural(sought['nodes'], 'id')}, {plural(sought['edges'], 'edge')} and "
            f"{plural(sought['rows'], 'feature row')} that were forgotten"
        )
    if section["clean"]:
        meaning = "Nothing was found in the run's folder. Other places were not looked at."
        return PASSED, measured + ".", meaning
    listed = "; ".join(f"{r['kind']} in {r['file']}" for r in section["residues"][:5])
    return FAILED, measured + ".", f"Found: {listed}."


def _planted(section: Mapping[str, Any]) -> Answer:
    measured = (
        f"{plural(section['planted'], 'record')} of a copy were given a class that does not exist. "
        f"The model trained on them predicted it {section['before']} times, after forgetting "
        f"exactly those records {section['after']} times; a model that never saw them predicted "
        f"it {section['never']} times."
    )
    if not section["passed"]:
        return FAILED, measured, "Forgetting is not the same as never having seen."
    meaning = "It is gone, and the weights are bit for bit those of the model that never saw them."
    if section["before"] == 0:
        meaning += " (The class was not learned to begin with, so this shows little.)"
    return PASSED, measured, meaning


def _forgetting(section: Mapping[str, Any]) -> Answer:
    kept, recut = section["after"]["kept"], section["after"]["recut"]
    measured = (
        f"An attacker with {section['runs']} models of their own guesses who was trained on: "
        f"{auc_text(section['before'])} while the {section['forgotten']} records were in, "
        f"{auc_text(kept)} once they were forgotten; {auc_text(recut)} if instead everything is "
        "partitioned and retrained without them."
    )
    if _clearly_above(kept, recut):
        meaning = (
            "The model after forgetting told more than starting over would. Where the proofs above "
            "hold, the kept partition tells it, or chance."
        )
        return LEAK, measured, meaning
    meaning = "Forgetting leaves no more to see than starting over does."
    if not _above_chance(section["before"]):
        meaning += " (There was little to see even before.)"
    return NOTED, measured, meaning


def _membership(section: Mapping[str, Any]) -> Answer:
    scenarios = section["scenarios"]
    kept = scenarios["kept"]["rates"]
    names = {
        "kept": "for forgetting as this run does it",
        "kept, batches": "for the same",
        "kept, reseeded": "with refresh='touched'",
        "refreshed": "with refresh='all'",
        "recut": "if everything is partitioned and retrained from the same seed",
        "recut, reseeded": "if everything is partitioned and retrained from a new seed",
    }
    parts = [
        f"{auc_text(scenarios[how]['rates'])} {words} ({scenarios[how]['nodes_per_request']} at a "
        "time)"
        for how, words in names.items()
        if how in scenarios
    ]
    measured = f"Guessing who was deleted: {'; '.join(parts)}."
    if _above_chance(kept):
        meaning = (
            "Yes, better than chance. Retraining from the same seed makes the proof possible, and "
            "makes the two versions differ by the deleted record alone. Whoever can ask both "
            "versions in detail can see that. Say less: what that gains is measured below; so is "
            "what fresh seeds gain (`refresh`), which is little while closed-form members answer."
        )
        return LEAK, measured, meaning
    return NOTED, measured, "Not better than chance, as far as this many requests can tell."


def _edges(section: Mapping[str, Any]) -> Answer:
    measured = (
        f"Telling edges from other pairs by asking about both ends: {auc_text(section['before'])} "
        f"while the edge is there, {auc_text(section['after'])} once it is forgotten. Telling "
        "which edge was just deleted, from answers before and after: "
        f"{auc_text(section['drop'])}."
    )
    after, before = section["after"], section["before"]
    if _above_chance(after) and after["auc"]["value"] >= before["auc"]["low"]:
        meaning = (
            "A forgotten edge was still told from a pair that never had one. Where the proofs "
            "above hold, the kept partition tells it, or chance."
        )
        return LEAK, measured, meaning
    meaning = "The current model shows no trace of a forgotten edge."
    if _above_chance(section["drop"]):
        meaning += " Whoever kept answers from before can see which edge went."
        return LEAK, measured, meaning
    return NOTED, measured, meaning


def _inversion(section: Mapping[str, Any]) -> Answer:
    cheats = "; ".join(f"{auc_text(r)} of one who {who}" for who, r in section["cheats"].items())
    same = "the same answers, bit for bit" if section["same"] else "other answers"
    measured = (
        f"Telling {plural(section['candidates'], 'forgotten edge')} from pairs that never had one "
        f"by likeness, confidence and its trend: {auc_text(section['after'])} by the answers of "
        f"this run, {auc_text(section['never'])} by those of a run that was fitted without them, "
        f"which gave {same}; by those of providers who only pretend, {cheats}."
    )
    if not section["same"] and _clearly_above(section["after"], section["never"]):
        meaning = "Yes, more than from a run that never had them: the kept partition tells it."
        return LEAK, measured, meaning
    meaning = (
        "No more than from a run that never had them. Neighbours are alike, so a likely edge can "
        "be guessed, forgotten or not."
    )
    return NOTED, measured, meaning


def _reconstruction(section: Mapping[str, Any]) -> Answer:
    parts = [
        f"for nodes {name}, its links {auc_text(section['links'][name])} and its features "
        f"{auc_text(section['features'][name])}"
        for name in section["links"]
    ]
    measured = f"By how far answers about others moved: {'; '.join(parts)}."
    figures = [*section["links"].values(), *section["features"].values()]
    if any(figure["low"] > 0.5 for figure in figures):
        meaning = (
            "Yes, better than chance: where only one node has left, only what it had moves. "
            "Neither version shows it alone. Don't let anyone ask both in detail."
        )
        return LEAK, measured, meaning
    return NOTED, measured, "Not better than chance, as far as this many requests can tell."


def _challenge(section: Mapping[str, Any]) -> Answer:
    own = section["providers"]["honest"]
    cheats = "; ".join(
        f"one who {who} leaves {seen['planted']:.0%}"
        for who, seen in section["providers"].items()
        if who != "honest"
    )
    bits = "the very bits from before" if own["same"] else "other bits than before"
    measured = (
        f"{plural(section['edges'], 'edge')} planted at {plural(section['tokens'], 'token')} and "
        f"forgotten: this run leaves {own['planted']:.0%} of the tokens turned, with {bits}; "
        f"{cheats}."
    )
    if section["data_free"] and not own["same"]:
        return FAILED, measured, "Planted and forgotten is not what it was before."
    missed = [who for who, caught in section["caught"].items() if not caught]
    if missed:
        meaning = f"Not every pretender is caught this way: not one who {listed(missed)}."
        return NOTED, measured, meaning
    return PASSED, measured, "Yes: every pretender is caught, and this run returns to where it was."


def _partition(section: Mapping[str, Any]) -> Answer:
    own = section["methods"][section["own"]]
    measured = (
        f"Guessing deleted edges from who shares a shard: {auc_text(own['edge'])} with the kept "
        f"partition ({own['method']}), {auc_text(own['edge_recut'])} with one made without them."
    )
    if own["node"] is not None:
        measured += f" Recognising a deleted node by partitioning again: {auc_text(own['node'])}."
    if not own["inputs"]:
        meaning = "No: the partition follows from ids and a key alone; a new one would be the same."
        return PASSED, measured, meaning
    meaning = (
        f"The partition was computed from {listed(own['inputs'])}, the deleted data included, "
        "and is kept. Therefore receipts of this run claim no more than 'exact given "
        "partition'. It gives something away only to those who can see it; the method 'hash' has "
        "nothing to remember."
    )
    leaks = _above_chance(own["edge"]) and _clearly_above(own["edge"], own["edge_recut"])
    node = own["node"] is not None and _above_chance(own["node"])
    return LEAK if leaks or node else NOTED, measured, meaning


def _links(section: Mapping[str, Any]) -> Answer:
    same = "the same answers, bit for bit" if section["same"] else "other answers"
    measured = (
        f"Telling {plural(section['candidates'], 'edge')} from pairs with as many common "
        f"neighbours: {auc_text(section['before'])} while they are there, "
        f"{auc_text(section['after'])} once they are forgotten; {auc_text(section['never'])} by a "
        f"model fitted without them, which gave {same}. Telling which edge was just forgotten, "
        f"from answers before and after: {auc_text(section['pair'])} by the pair itself, "
        f"{auc_text(section['around'])} by pairs around it."
    )
    wrong = "A forgotten edge scores otherwise than if it had never been there."
    no = (
        "No: a forgotten edge scores as one that was never there. It may still be suggested, "
        "where what is left makes it likely."
    )
    seen = " Whoever kept answers from before can see where an edge went."
    is_seen = _above_chance(section["pair"]) or _above_chance(section["around"])
    return _against_never(section, measured, wrong, no, seen if is_seen else "")


def _against_never(
    section: Mapping[str, Any], measured: str, wrong: str, no: str, seen: str
) -> Answer:
    """Compare a run that has forgotten with one that never saw; ``seen`` is told from before."""
    if section["data_free"] and not section["same"]:
        return FAILED, measured, wrong
    if _clearly_above(section["after"], section["never"]):
        meaning = "Yes, more than a model that never saw them: the kept partition tells it."
        return LEAK, measured, meaning
    return LEAK if seen else NOTED, measured, no + seen


def _graphs(section: Mapping[str, Any]) -> Answer:
    same = "the same answers, bit for bit" if section["same"] else "other answers"
    measured = (
        f"Telling {plural(section['candidates'], 'graph')} from test graphs by how well their "
        f"labels are told: {auc_text(section['before'])} while they are there, "
        f"{auc_text(section['after'])} once they are forgotten; {auc_text(section['never'])} by a "
        f"model fitted without them, which gave {same}. Telling which of six graphs was just "
        f"forgotten, from answers before and after: {auc_text(section['moved'])}."
    )
    wrong = "A forgotten graph is judged otherwise than if it had never been there."
    no = "No: a forgotten graph is judged as one that was never there."
    seen = " Whoever kept answers about it from before can see that it went."
    is_seen = _above_chance(section["moved"])
    return _against_never(section, measured, wrong, no, seen if is_seen else "")


# By the name of a section, in the order of the report.
_QUESTIONS: dict[str, tuple[str, Callable[[Mapping[str, Any]], Answer]]] = {
    "verification": ("Is the model what training without the forgotten data gives?", _verification),
    "search": ("Is anything of the forgotten data left in the run's files?", _search),
    "planted": (
        "If the model is taught something wrong and then forgets it, is it gone?",
        _planted,
    ),
    "forgetting": ("Can the model as it is now be used to tell who was forgotten?", _forgetting),
    "membership": (
        "Can someone who kept answers from before a deletion tell who was deleted?",
        _membership,
    ),
    "edges": ("Can they tell the same about edges?", _edges),
    "inversion": (
        "Can forgotten edges be recovered from the answers of the model as it is now?",
        _inversion,
    ),
    "reconstruction": (
        "Can someone who sees both versions reconstruct a forgotten node?",
        _reconstruction,
    ),
    "challenge": (
        "Can a client tell this provider from one who only pretends to forget?",
        _challenge,
    ),
    "partition": ("Does the partition into shards remember what was deleted?", _partition),
    "links": ("Does the model still suggest edges because it once saw them?", _links),
    "graphs": ("Does the model still know graphs because it once saw them?", _graphs),
}


def findings(sections: Mapping[str, Mapping[str, Any]]) -> tuple[Finding, ...]:
    """Return one finding for each section, in the order of the questions."""
    return tuple(
        Finding(question, SKIPPED, str(section["skipped"]), "Not known.")
        if "skipped" in section
        else Finding(question, *judge(section))
        for name, (question, judge) in _QUESTIONS.items()
        if (section := sections.get(name)) is not None
    )
