"""Check the signatures of a run, and a receipt that was handed out, and say what was checked.

With the published run at hand, its weights are checked too: a receipt names the digest of a
document, which the manifest of the run holds for as long as the state is current, and the document
names the files of the weights.

Standard library alone, but for the signatures.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from grapheraser.canonical import BY_BLOCK, digest_by_page, digest_of, digest_of_rows
from grapheraser.errors import VerificationError
from grapheraser.receipts.envelope import PAYLOAD, check_signed
from grapheraser.receipts.keys import Checkpoint, PublicKey
from grapheraser.receipts.part import Part
from grapheraser.receipts.receipt import Receipt
from grapheraser.receipts.witness import WitnessKey, check_cosigned
from grapheraser.untrusted import parse_json


@dataclass(frozen=True)
class Signatures:
    """The result of checking the signatures of a run.

    Attributes:
        verified: how many receipts are signed by one of the keys.
        unsigned: how many receipts are not signed.
        others: how many receipts are signed by other keys alone, so that nothing was checked.
        checkpoint: whether the log's checkpoint is signed by one of the keys.
        keys: ids of the keys that the verified ones are signed with.
        wrong: what is not as it should be, in words.
    """

    verified: int = 0
    unsigned: int = 0
    others: int = 0
    checkpoint: bool = False
    keys: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """``verified``, ``partly verified``, ``not checked``, ``unsigned``, ``none`` or ``wrong``.

        ``none`` where there are no receipts, ``not checked`` where there was no key to check with.
        """
        if self.wrong:
            return "wrong"
        if self.verified:
            return "partly verified" if self.unsigned or self.others else "verified"
        if self.others:
            return "not checked"
        return "unsigned" if self.unsigned else "none"

    @property
    def in_words(self) -> str:
        """The verdict in a line."""
        said = {
            "none": "none, for there are no receipts",
            "unsigned": f"none, {_receipts(self.unsigned)} unsigned",
            "not checked": "NOT CHECKED, for no public key of the operator is here",
            "wrong": "NOT verified",
        }
        if self.verdict in said:
            return said[self.verdict]
        verified = _receipts(self.verified) + " and the checkpoint" * self.checkpoint
        rest = f"; {self.unsigned} unsigned" if self.unsigned else ""
        rest += f"; {self.others} by other keys, not checked" if self.others else ""
        return f"{verified} verified, signed by {', '.join(self.keys)}{rest}"

    def to_dict(self) -> dict[str, Any]:
        lists = {"keys": list(self.keys), "wrong": list(self.wrong)}
        return {"verdict": self.verdict, "words": self.in_words, **self.__dict__, **lists}


def check_signatures(
    receipts: Sequence[Receipt],
    checkpoint: str | None,
    keys: Sequence[PublicKey],
    *,
    required: bool = False,
) -> Signatures:
    """Check the signatures of a log; with no key at all, none is checked.

    One of the operator's keys must have signed the checkpoint of the log as it is now, and every
    receipt too where that is ``required``.
    """
    known = {key.id: key for key in keys}
    used: dict[str, None] = {}
    counts = {"verified": 0, "unsigned": 0, "others": 0}
    wrong = []
    for receipt in receipts:
        signed = [one for one in receipt.signatures if one.key in known]
        number = receipt.sequence
        try:
            for one in signed:
                check_signed(PAYLOAD, receipt.payload, [one], known[one.key])
        except VerificationError:
            wrong.append(f"the signature of receipt {number} does not fit")
            continue
        counts["verified" if signed else "others" if receipt.is_signed else "unsigned"] += 1
        used |= dict.fromkeys(one.key for one in signed)
        if required and not signed:
            theirs = ", ".join(one.key for one in receipt.signatures)
            reason = f"signed by {theirs}, whose key was not given" if theirs else "unsigned"
            wrong.append(f"receipt {number} is {reason}")
    holds = any(is_signed(checkpoint, key) for key in keys)
    if keys and len(receipts) and not holds:
        if checkpoint is not None:
            whose = "that was given" if required else "of this machine"
            wrong.append(f"the checkpoint is not signed by a key {whose}")
        elif required or receipts[-1].is_signed:
            wrong.append("the log has no signed checkpoint")
    return Signatures(**counts, checkpoint=holds, keys=tuple(used), wrong=tuple(wrong))


def is_signed(checkpoint: str | None, key: PublicKey) -> bool:
    """Tell whether a checkpoint is signed by a key."""
    try:
        return checkpoint is not None and bool(Checkpoint.opened(checkpoint, key))
    except VerificationError:
        return False


def _receipts(count: int) -> str:
    return f"{count} receipt{'s' * (count != 1)}"


VALID, SIGNED = "valid", "signed"
UNSHOWN = (
    "that it is gone is the operator's word, for only nodes have a slot in the register; "
    "`verify` of the run shows it"
)


@dataclass(frozen=True)
class Checked:
    """A receipt that holds.

    Attributes:
        part: the receipt.
        key: id of the key that it is signed with.
        lines: what was checked.
        verdict: ``"valid"``, or ``"signed"`` where all holds that it shows, and it does not show
            that what it is about is gone.
    """

    part: Part
    key: str
    lines: tuple[str, ...]

    @property
    def verdict(self) -> str:
        return VALID if self.part.shows_absence else SIGNED

    @property
    def in_words(self) -> str:
        """The verdict in a line."""
        return "valid" if self.verdict == VALID else f"signed; {UNSHOWN}"

    def to_dict(self) -> dict[str, Any]:
        receipt = self.part.receipt
        return {
            "about": dict(self.part.about),
            "verdict": self.verdict,
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
    witnesses: Sequence[WitnessKey] = (),
    quorum: int | None = None,
) -> Checked:
    """Check all that can be checked of a receipt; raise `VerificationError` unless it holds.

    One of the operator's public ``keys`` has to fit. ``checkpoint`` is one of the run's log that
    was kept elsewhere, ``published`` gives the content of a file of the published run by its name,
    and a ``quorum`` of ``witnesses`` (None: all) should have cosigned the log.
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
    if witnesses:
        lines += check_cosigned(part.checkpoint or "", witnesses, quorum)
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


MANIFEST = "run.json"
_FILE = re.compile(r"(aggregator-|shards/)[0-9a-f]{20}\.safetensors")
_INDEX = re.compile(r"shards-[0-9a-f]{20}\.npy|pages/[0-9a-f]{64}\.page")


def check_published(receipt: Receipt, read: Callable[[str], bytes]) -> int:
    """Raise `VerificationError` unless a run is in the state that the receipt led to.

    ``read`` gives the content of a file of the run, by its name. Returns how many files of weights
    were checked.
    """
    try:
        manifest = parse_json(read(MANIFEST))
        state, aggregator = dict(manifest["state"]), manifest["aggregator"]
        index = manifest["shards"]
        shards = dict(_shards(index["file"], index["sha256"], read, set()))
        named = {f"shards/{sha256[:20]}.safetensors": sha256 for sha256 in shards.values()}
        named[aggregator["file"]] = aggregator["sha256"]
        learned = state.get("aggregator")
        fits = {
            "aggregator": learned == aggregator["sha256"] or learned == _learned(aggregator, read),
            "weights": state.get("shards") == digest_by_page(shards),
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, struct.error) as error:
        raise VerificationError(f"not the manifest of a run ({error!r}).") from error
    if digest_of(state) != receipt.after:
        raise VerificationError("the run is not in the state that the receipt led to.")
    for name, fit in fits.items():
        if not fit:
            raise VerificationError(f"the {name} were swapped: the receipt is about others.")
    for name, sha256 in named.items():
        _check_file(name, sha256, read)
    return len(named)


def _learned(aggregator: dict[str, Any], read: Callable[[str], bytes]) -> str:
    """The digest of what an aggregator learned, from its file; see `store.digests`."""
    _check_file(aggregator["file"], aggregator["sha256"], read)
    content = read(aggregator["file"])
    (length,) = struct.unpack("<Q", content[:8])
    data, header, large = content[8 + length :], [], {}
    parts: list[bytes] = []
    for name, entry in parse_json(content[8 : 8 + length]).items():
        (start, end), shape = entry["data_offsets"], entry["shape"]
        part = data[start:end]
        if name.endswith(BY_BLOCK):
            rows = digest_of_rows(part, len(part) // max(1, shape[0]))
            large[name] = f"{entry['dtype']}{shape} {rows}"
        elif not name.startswith("beside/"):
            at = sum(len(before) for before in parts)
            form = f'"dtype":"{entry["dtype"]}","shape":[{",".join(map(str, shape))}]'
            offsets = f'"data_offsets":[{at},{at + len(part)}]'
            header.append(f"{json.dumps(name, ensure_ascii=False)}:{{{form},{offsets}}}")
            parts.append(part)
    text = f"{{{','.join(header)}}}".encode()
    text += b" " * (-len(text) % 8)
    file = b"".join([len(text).to_bytes(8, "little"), text, *parts])
    found = hashlib.sha256(file).hexdigest()
    return digest_of({"file": found, "by block": large}) if large else found


def _shards(
    name: str, sha256: str, read: Callable[[str], bytes], seen: set[str]
) -> Iterator[tuple[int, str]]:
    """The shards that an index names, and the digests of their files; see `store.indexes`."""
    if not _INDEX.fullmatch(name) or name in seen:
        raise VerificationError(f"not an index of shards ({name[:80]!r}).")
    seen.add(name)
    content = read(name)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise VerificationError(f"the weights were swapped: {name} is not what it was.")
    (length,) = struct.unpack("<H", content[8:10])  # of the head of an npy file
    linked = b"'part'" in content[10 : 10 + length]
    for start, _, digest in struct.iter_unpack("<qq32s", content[10 + length :]):
        if linked:
            yield from _shards(f"pages/{digest.hex()}.page", digest.hex(), read, seen)
        else:
            yield start, digest.hex()


def _check_file(name: Any, sha256: Any, read: Callable[[str], bytes]) -> None:
    if not isinstance(name, str) or not _FILE.fullmatch(name):
        raise VerificationError(f"not a file of weights ({str(name)[:80]!r}).")
    if hashlib.sha256(read(name)).hexdigest() != sha256:
        raise VerificationError(f"the weights were swapped: {name} is not what it was.")
