"""The page of a receipt that was handed out, to be printed or kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from grapheraser.kinds import ADD, FEATURES, FORGET, NODES, SET
from grapheraser.receipts import EXACT, NOT_EXACT, Part
from grapheraser.receipts.envelope import OUT_OF_SCOPE, SCOPE
from grapheraser.reports.pages.render import render


def receipt_page(parts: Sequence[Part]) -> str:
    """One page of HTML, a sheet for each part; it shows what they say, and does not check it."""
    return render("receipt", sheets=[receipt_values(part) for part in parts])


def receipt_values(part: Part) -> dict[str, Any]:
    """Return what ``receipt_sheets.html.j2`` shows of a receipt."""
    receipt, about = part.receipt, part.in_words
    signed = ", ".join(signature.key for signature in receipt.signatures)
    facts = {
        "Asked": about,
        "Done": receipt.completed_at,
        "Claim": receipt.statement,
        "Signed by": signed or "nobody: this receipt is unsigned",
    }
    details = {
        "Run": receipt.run,
        "Receipt": f"{receipt.sequence}, {receipt.digest}",
        "Request": f"{part.place.index + 1} of {part.place.size}",
        "State before": receipt.before,
        "State after": receipt.after,
        "Register before": receipt.register_before,
        "Register after": receipt.register_after,
        "Engine": f"{receipt.engine} on {receipt.device}, seed {receipt.seed}",
        "Versions": ", ".join(f"{name} {value}" for name, value in receipt.versions.items()),
    }
    return {
        "about": about,
        "plainly": plainly(part),
        "facts": facts,
        "details": details,
        "is_signed": receipt.is_signed,
        "reason": receipt.exactness["reason"],
        "scope": SCOPE,
        "out_of_scope": OUT_OF_SCOPE,
        "is_node": part.opening is not None,
        "content": part.to_json(),
    }


def plainly(part: Part) -> str:
    """Say what a receipt is about to somebody who knows nothing of models.

    It says no more than the claim: what that rests on is in the receipt's reason, below it.
    """
    receipt = part.receipt
    (verb, noun), ends = next(iter(part.about.items())), part.about.get("names")
    names = [str(end) for end in ends or part.about.get("ids", ())]
    if len(names) == 2:
        what = f"the {noun} between {names[0]} and {names[1]}"
    elif noun == NODES.noun:
        what = f"the record {names[0]}, with all that belongs to it," if names else "a record"
    else:
        what = f"the {noun} of {names[0]}" if names else f"the {noun}"
    done = {FORGET: "removed from", ADD: "added to", SET: "corrected in"}.get(verb, "changed in")
    day = datetime.fromisoformat(receipt.completed_at)
    were = "were" if noun == FEATURES.noun else "was"
    first = f"On {day.day} {day:%B %Y}, {what} {were} {done} this model and the data behind it."
    if verb != FORGET:
        return first
    alike = "The model is now the same as if it had been trained without"
    if receipt.statement == EXACT:
        return f"{first} {alike} it from the start."
    if receipt.statement.startswith(NOT_EXACT):
        return f"{first} The model was retrained without it, and no more than this is claimed."
    return f"{first} {alike} it from the start, given what is named below."
