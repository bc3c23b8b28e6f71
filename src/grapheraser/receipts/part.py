"""One person, one receipt: a part of a change, which can be checked alone and offline.

A change may carry out the requests of many. Its receipt names the root of a tree (RFC 9162) over
the parts, each hidden by a nonce; a part shows one of them, and nothing of the others:

    leaf   SHA-256(0, nonce, what was asked as canonical JSON), in the order of the leaves

With it comes the place of the receipt in the log, and for a node the opening of its slot in the
register. The operator keeps none of this. Standard library alone, but for the signatures.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from grapheraser.canonical import canonical_json
from grapheraser.errors import VerificationError
from grapheraser.kinds import ADD, FORGET, KINDS, SET, node_forgotten
from grapheraser.receipts.envelope import PAYLOAD, RESHARD, check_about, check_signed, is_forgotten
from grapheraser.receipts.keys import Checkpoint, PublicKey
from grapheraser.receipts.receipt import Receipt
from grapheraser.receipts.register import Opening
from grapheraser.receipts.tree import check_inclusion, inclusion_proof, leaf_hash, root_of
from grapheraser.untrusted import parse_json

FORMAT = "grapheraser-part-1"
_MAX_CHARACTERS = 10_000_000

About: TypeAlias = dict[str, Any]


def part_leaf(nonce: bytes, about: About) -> bytes:
    """The hash of a part in the tree of its request."""
    return leaf_hash(nonce + canonical_json(about).encode())


def id_of_name(name: str) -> int:
    """The id of a node that has a name; as in `graph.ids`."""
    return int.from_bytes(hashlib.sha256(str(name).encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True)
class Place:
    """The place of an entry in a tree."""

    index: int  # from 0
    size: int  # of the tree
    proof: tuple[bytes, ...]  # of inclusion

    def check(self, leaf: bytes, root: bytes) -> None:
        """Raise `VerificationError` unless the leaf is there."""
        check_inclusion(leaf, self.index, self.size, self.proof, root)

    def to_dict(self) -> dict[str, Any]:
        return {
            "index": self.index,
            "size": self.size,
            "proof": [digest.hex() for digest in self.proof],
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Place:
        place = cls(
            found["index"], found["size"], tuple(bytes.fromhex(text) for text in found["proof"])
        )
        if type(place.index) is not int or type(place.size) is not int:
            raise TypeError("a place is two numbers")
        if len(place.proof) > 64 or any(len(digest) != 32 for digest in place.proof):
            raise ValueError("a proof is digests")
        return place


@dataclass(frozen=True)
class Part:
    """The receipt of one person, or of two about their edge.

    Attributes:
        receipt: of the change that the part belongs to.
        about: what was asked, e.g. ``{"forget": "node", "ids": ["12"]}``; ids as text, and
            ``names`` where nodes have them.
        nonce: what hides it in the receipt.
        place: in the tree of the request.
        log: the place of the receipt in the run's log.
        checkpoint: of the log with that size; None where nothing is signed.
        opening: of the node's slot, where a node was forgotten.
    """

    receipt: Receipt
    about: About
    nonce: bytes
    place: Place
    log: Place
    checkpoint: str | None
    opening: Opening | None = None

    def check(self, verifier: PublicKey | None, checkpoint: str | None = None) -> None:
        """Raise `VerificationError` unless all that it says is so.

        Args:
            verifier: the operator's public key; None to check an unsigned receipt for what it is.
            checkpoint: one of the run's log that was kept elsewhere.
        """
        receipt = self.receipt
        check_about(self.about)
        if verifier is not None:
            check_signed(PAYLOAD, receipt.payload, receipt.signatures, verifier)
        self._check_log(verifier, checkpoint)
        try:
            self.place.check(part_leaf(self.nonce, self.about), bytes.fromhex(receipt.request))
        except VerificationError:
            raise VerificationError("the receipt does not answer this request.") from None
        for at, name in enumerate(self._names_of_nodes()):
            if int(self.about["ids"][at]) not in self._ids_of(at, name):
                raise VerificationError(f"the part is not about {name!r}.")
        if self.place.size != receipt.requests:
            raise VerificationError("the receipt answers another number of requests.")
        node = self._forgotten_node()
        if self.opening is None:
            if node is not None:
                raise VerificationError("the part does not show that the node is gone.")
            return
        if node != self.opening.node:
            raise VerificationError("the part opens the slot of another node.")
        self.opening.check(receipt.register_before, receipt.register_after)

    @property
    def in_words(self) -> str:
        """The request in words, e.g. ``forget node 12``."""
        verb = next(name for name in (FORGET, ADD, SET, RESHARD) if name in self.about)
        ends = self.about.get("names") or self.about.get("ids", ())
        words = f"{verb} {self.about[verb]} {'-'.join(ends)}".strip()
        return f"{words} ({self.about['called']})" if "called" in self.about else words

    @property
    def shows_absence(self) -> bool:
        """False where something is said to be gone, and no slot shows it: it is no node."""
        return self.opening is not None or not is_forgotten(self.about)

    def _forgotten_node(self) -> int | None:
        try:
            return node_forgotten(self.about)
        except (KeyError, TypeError, ValueError, IndexError):
            raise VerificationError("the part does not say what it is about.") from None

    def _ids_of(self, at: int, name: str) -> tuple[int, ...]:
        """Ids that a node of this name can have; see `graph.types` for those with a type."""
        if "types" not in self.about:
            return (id_of_name(name),)
        shift, number = min(self.about["shift"], 63), name.rpartition("/")[2]
        bits = [id_of_name(name) >> (63 - shift)]
        bits += [int(number)] if re.fullmatch("[0-9]{1,19}", number) else []
        return tuple((self.about["types"][at] << shift) + each for each in bits)

    def _names_of_nodes(self) -> list[str]:
        """Names of the nodes that the part is about: users and items are called by their side."""
        noun = next((self.about[verb] for verb in (FORGET, ADD, SET) if verb in self.about), None)
        kind = next((kind for kind in KINDS.values() if kind.noun == noun), None)
        ends = [KINDS[name] for name in kind.sides] if kind is not None else []
        names = [str(name) for name in self.about.get("names", ())]
        if kind is None or len(ends) not in (0, len(names)):
            return names
        return [
            end.called(name) for end, name in zip(ends or [kind] * len(names), names, strict=True)
        ]

    def _check_log(self, verifier: PublicKey | None, kept: str | None) -> None:
        receipt, place = self.receipt, self.log
        if place.index != receipt.sequence - 1:
            raise VerificationError("the receipt is at another place of the log than it says.")
        if self.checkpoint is None:
            if verifier is not None:
                raise VerificationError("the receipt comes without a checkpoint of the log.")
            return
        own = _opened(self.checkpoint, verifier, receipt.run)
        if own.size != place.size:
            raise VerificationError("the checkpoint is of a log of another size.")
        place.check(receipt.leaf, own.root)
        if kept is None:
            return
        other = _opened(kept, verifier, receipt.run)
        if other.size != own.size:
            raise VerificationError(
                f"the checkpoint is of a log of {other.size} receipts, the proof of one of "
                f"{own.size}.",
                hint="ask for a later checkpoint, or for `grapheraser receipts RUN --prove FILE`.",
            )
        if other.root != own.root:
            raise VerificationError("the log was rewritten: it is not that of the checkpoint.")

    def proved_in(self, receipts: Sequence[Receipt], checkpoint: str | None) -> Part:
        """Return the part with its place in a log that has grown.

        Args:
            receipts: all of the run.
            checkpoint: of the log with all of them.
        """
        index = self.receipt.sequence - 1
        if index >= len(receipts) or receipts[index] != self.receipt:
            raise VerificationError("the receipt is not in the log of this run.")
        return self.placed([receipt.leaf for receipt in receipts], checkpoint)

    def placed(self, leaves: Sequence[bytes], checkpoint: str | None) -> Part:
        """Return the part with its place in a log.

        Args:
            leaves: the hashes of all entries.
            checkpoint: of the log with all of them.
        """
        index = self.receipt.sequence - 1
        place = Place(index, len(leaves), tuple(inclusion_proof(leaves, index)))
        place.check(self.receipt.leaf, root_of(leaves))
        return replace(self, log=place, checkpoint=checkpoint)

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "envelope": parse_json(self.receipt.to_json()),
            "request": {
                "about": dict(self.about),
                "nonce": self.nonce.hex(),
                **self.place.to_dict(),
            },
            "log": {**self.log.to_dict(), "checkpoint": self.checkpoint},
            "register": None if self.opening is None else self.opening.to_dict(),
        }

    def to_json(self) -> str:
        """The file to hand over: canonical JSON."""
        return canonical_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Part:
        """Read a part back; anything else, or another spelling, is a `VerificationError`."""
        if len(text) > _MAX_CHARACTERS:
            raise VerificationError("not a receipt: the file is too long.")
        try:
            found = parse_json(text)
            if found["format"] != FORMAT:
                raise VerificationError(f"not a receipt of this version ({found['format']!r}).")
            request, log, register = found["request"], found["log"], found["register"]
            part = cls(
                receipt=Receipt.from_json(canonical_json(found["envelope"])),
                about=dict(request["about"]),
                nonce=bytes.fromhex(request["nonce"]),
                place=Place.from_dict(request),
                log=Place.from_dict(log),
                checkpoint=log["checkpoint"],
                opening=None if register is None else Opening.from_dict(register),
            )
            check_about(part.about)
            is_canonical = part.to_json() == text.removesuffix("\n")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise VerificationError("not a readable receipt, or a truncated one.") from error
        if not is_canonical or not isinstance(part.checkpoint, str | None):
            raise VerificationError("the receipt is not spelled canonically.")
        return part


def read_parts(text: str) -> list[Part]:
    """Read a file that was handed out: one part, or a bundle with all parts of a request.

    A bundle is ``{"request": ID, "parts": [...]}``, as the service and its dashboard hand it out;
    how it is spelled doesn't matter.
    """
    try:
        found = parse_json(text)
        parts = found["parts"] if isinstance(found, dict) and "format" not in found else None
        spelled = [canonical_json(part) for part in parts] if parts else [text]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise VerificationError("not a readable receipt, or a truncated one.") from error
    return [Part.from_json(one) for one in spelled]


def _opened(note: str, verifier: PublicKey | None, run: str) -> Checkpoint:
    found = Checkpoint.read(note) if verifier is None else Checkpoint.opened(note, verifier)
    if found.origin != run:
        raise VerificationError(f"the checkpoint is of another run ({found.origin}, not {run}).")
    return found
