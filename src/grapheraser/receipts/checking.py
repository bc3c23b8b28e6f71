"""What was checked of a receipt that was handed out, in words: for whoever holds one.

Standard library alone, but for the signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from grapheraser.errors import VerificationError
from grapheraser.receipts.keys import PublicKey
from grapheraser.receipts.part import Part
from grapheraser.receipts.published import check_published


@dataclass(frozen=True)
class Checked:
    """A receipt that holds.

    Attributes:
        part: the receipt.
        key: id of the key that it is signed with.
        lines: what was checked.
    """

    part: Part
    key: str
    lines: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        receipt = self.part.receipt
        return {
            "about": dict(self.part.about),
            "statement": receipt.statement,
            "reason": receipt.exactness["reason"],
            "run": receipt.run,
            "sequence": receipt.sequence,
            "completed_at": receipt.completed_at,
            "key": self.key,
            "checked": list(self.lines),
        }


def check_part(
    part: Part,
    keys: Sequence[PublicKey],
    checkpoint: str | None = None,
    published: Callable[[str], bytes] | None = None,
) -> Checked:
    """Check all that can be checked of a receipt; raise `VerificationError` unless it holds.

    Args:
        part: the receipt.
        keys: public keys of the operator; one of them has to fit.
        checkpoint: one of the run's log that was kept elsewhere.
        published: gives the content of a file of the published run, by its name.
    """
    key = _fitting(part, keys, checkpoint)
    lines = [
        f"signed by {key.id}",
        f"entry {part.log.index + 1} of {part.log.size} in the log",
        "answers this request" + (" alone" if part.place.size == 1 else ""),
    ]
    if part.opening is not None:
        lines.append("the node was in the run before and is not after")
    if checkpoint is not None:
        lines.append("the log is that of the checkpoint")
    if published is not None:
        files = check_published(part.receipt, published)
        lines.append(f"the published run is in that state ({files} files of weights)")
    return Checked(part, key.id, tuple(lines))


def _fitting(part: Part, keys: Sequence[PublicKey], checkpoint: str | None) -> PublicKey:
    """The key that a receipt is signed with, once all is checked."""
    known = {signature.key for signature in part.receipt.signatures}
    if not keys:
        raise VerificationError("there is no public key here to check it with.")
    key = next((key for key in keys if key.id in known), keys[0])
    part.check(key, checkpoint)
    return key
