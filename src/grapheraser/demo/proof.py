"""What shows that the model forgot: equal digests, a signed receipt, an empty slot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grapheraser.demo.scene import digests
from grapheraser.eraser import GraphEraser
from grapheraser.eraser.verify import Verification
from grapheraser.receipts import Part
from grapheraser.receipts.keys import PublicKey
from grapheraser.store.keys import known_keys


@dataclass(frozen=True)
class Proof:
    """The evidence.

    Attributes:
        verification: the replay from the remaining data, tensor by tensor.
        unlearned: digest of every shard's weights and of what combines them, as unlearning left
            them, by name.
        afresh: the same of a model that was fitted to the remaining data and never saw more.
        part: the receipt of the node in the pictures, checked.
        key: the public key that its signature was checked with; None where it is unsigned.
    """

    verification: Verification
    unlearned: dict[str, str]
    afresh: dict[str, str]
    part: Part
    key: PublicKey | None

    @property
    def is_identical(self) -> bool:
        """Whether the replay and the digests say so."""
        return self.verification.identical and not self.different

    @property
    def different(self) -> list[str]:
        """What has another digest than in the model that never saw the forgotten."""
        names = sorted(self.unlearned | self.afresh)
        return [name for name in names if self.unlearned.get(name) != self.afresh.get(name)]

    @property
    def slot(self) -> tuple[str, str]:
        """What the node's slot of the register held before and holds after, in words."""
        opening = self.part.opening
        assert opening is not None, "the part is about a node"
        held = [proof.held(opening.slot) for proof in (opening.before, opening.after)]
        before, after = ("empty" if one is None else one.hex() for one in held)
        return before, after

    def to_dict(self) -> dict[str, Any]:
        return {
            "verification": self.verification.to_dict(),
            "digests": len(self.unlearned),
            "different": self.different,
            "signed_by": None if self.key is None else self.key.id,
            "slot": self.slot,
        }


def prove(eraser: GraphEraser, afresh: GraphEraser, part: Part) -> Proof:
    """Collect the evidence; a receipt that doesn't hold is a `VerificationError`.

    Args:
        eraser: after the requests.
        afresh: fitted to what is left.
        part: of the receipt of one node.
    """
    signed = {signature.key for signature in part.receipt.signatures}
    key = next((key for key in known_keys() if key.id in signed), None)
    part.check(key)
    return Proof(eraser.verify(), digests(eraser), digests(afresh), part, key)
