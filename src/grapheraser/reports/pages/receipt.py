"""The page of a receipt that was handed out, to be printed or kept."""

from __future__ import annotations

from typing import Any

from grapheraser.receipts import Part
from grapheraser.receipts.statement import OUT_OF_SCOPE, SCOPE
from grapheraser.reports.pages.render import render


def receipt_page(part: Part) -> str:
    """One page of HTML; it shows what the receipt says, and does not check it."""
    return render("receipt", **receipt_values(part))


def receipt_values(part: Part) -> dict[str, Any]:
    """What ``receipt_sheet.html.j2`` shows of a receipt."""
    receipt, about = part.receipt, part.in_words
    signed = ", ".join(signature.key for signature in receipt.signatures)
    facts = {
        "Asked": about,
        "Done": receipt.completed_at,
        "Claim": receipt.statement,
        "Run": receipt.run,
        "Receipt": f"{receipt.sequence}, {receipt.digest}",
        "Request": f"{part.place.index + 1} of {part.place.size}",
        "State before": receipt.before,
        "State after": receipt.after,
        "Register before": receipt.register_before,
        "Register after": receipt.register_after,
        "Engine": f"{receipt.engine} on {receipt.device}, seed {receipt.seed}",
        "Versions": ", ".join(f"{name} {value}" for name, value in receipt.versions.items()),
        "Signed by": signed or "nobody: this receipt is unsigned",
    }
    return {
        "about": about,
        "facts": facts,
        "is_signed": receipt.is_signed,
        "reason": receipt.exactness["reason"],
        "scope": SCOPE,
        "out_of_scope": OUT_OF_SCOPE,
        "is_node": part.opening is not None,
        "content": part.to_json(),
    }
