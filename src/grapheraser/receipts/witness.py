"""Witnesses of a log (C2SP tlog-witness and tlog-cosignature), with Ed25519.

Whoever keeps no checkpoint can be shown another log than everybody else. A witness is somebody
else who keeps the last checkpoint of a log, and cosigns the next only if the log grew from there:

    key id       SHA-256(name, line break, 4, public key), the first four bytes
    cosignature  under the lines ``cosignature/v1``, ``time SECONDS`` and the checkpoint's text
    its line     the key id, the time as eight bytes, the signature

Standard library alone, but for the signatures.
"""

from __future__ import annotations

import base64
import binascii
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from grapheraser.errors import VerificationError
from grapheraser.receipts.keys import (
    COSIGNATURE,
    Checkpoint,
    PublicKey,
    SigningKey,
    key_id,
    read_verifier_key,
    signature_line,
    signatures_of,
    text_of,
    verifier_key,
)
from grapheraser.receipts.tree import EMPTY_ROOT, HASH_SIZE, check_consistency

SIZE_TYPE, TEXT_TYPE = "text/x.tlog.size", "text/plain; charset=utf-8"
MAX_BODY = 256 * 1024
_MAX_PROOF = 63
_STAMPED = struct.Struct(">4sQ64s")
_MAX_TIME = 253_402_300_799  # the end of the year 9999


def _message(note: str, at: int) -> bytes:
    return f"cosignature/v1\ntime {at}\n{text_of(note)}".encode()


def cosign(note: str, name: str, signer: SigningKey, at: int) -> str:
    """Return the line with which a witness cosigns a checkpoint at some time."""
    identity = key_id(name, signer.public, COSIGNATURE)
    return signature_line(name, _STAMPED.pack(identity, at, signer.sign(_message(note, at))))


@dataclass(frozen=True)
class WitnessKey:
    """The public key of a witness."""

    name: str  # that its lines carry
    key: PublicKey  # the key

    @classmethod
    def read(cls, line: str) -> WitnessKey:
        """Read a verifier key of one line."""
        name, public = read_verifier_key(line, COSIGNATURE)
        return cls(name, PublicKey(public))

    @property
    def line(self) -> str:
        """The verifier key, ``name+id+key``."""
        return verifier_key(self.name, self.key.public, COSIGNATURE)

    def found_in(self, note: str) -> tuple[int, str] | None:
        """Return when the witness cosigned a checkpoint, and its line; None: it did not.

        A line of this key that does not fit is a `VerificationError`.
        """
        wanted = key_id(self.name, self.key.public, COSIGNATURE)
        for name, signature in signatures_of(note):
            if name != self.name or signature[:4] != wanted:
                continue
            if len(signature) == _STAMPED.size:
                _, at, signed = _STAMPED.unpack(signature)
                if at <= _MAX_TIME and self.key.accepts(_message(note, at), signed):
                    return at, signature_line(name, signature)
            raise VerificationError(f"the cosignature of {self.name} does not fit the checkpoint.")
        return None


def check_cosigned(
    note: str, witnesses: Sequence[WitnessKey], quorum: int | None = None
) -> list[str]:
    """Return who cosigned a checkpoint and when; refuse less than the quorum (None: all)."""
    distinct = {(one.name, one.key.public): one for one in witnesses}
    found = [(one, when) for one in distinct.values() if (when := one.found_in(note)) is not None]
    needed = len(distinct) if quorum is None else quorum
    if len({one.key.public for one, _ in found}) < needed:
        raise VerificationError(
            f"{len(found)} of {len(distinct)} witnesses have cosigned the checkpoint, and {needed} "
            "are needed.",
            hint="a witness may have been out of reach: collect the receipt again later.",
        )
    return [
        f"cosigned by {one.name}, {datetime.fromtimestamp(at, UTC).isoformat(timespec='seconds')}"
        for one, (at, _) in found
    ]


@dataclass(frozen=True)
class TrustedLog:
    """A key whose checkpoints a witness cosigns; ``origin`` None: of any log that it signs."""

    key: PublicKey
    origin: str | None = None


class States(Protocol):
    """The last checkpoint that was cosigned of each log; on the disk once ``put`` returns."""

    def get(self, origin: str) -> str | None:
        """Return a checkpoint as it was signed; None: there is none."""

    def put(self, origin: str, note: str) -> None:
        """Keep a checkpoint in the place of the one before."""


@dataclass(frozen=True)
class Answer:
    """The answer of a witness, as HTTP has it."""

    status: int
    body: str
    media_type: str = TEXT_TYPE


class _RefusedError(Exception):
    def __init__(self, status: int, why: str, media_type: str = TEXT_TYPE) -> None:
        super().__init__(why)
        self.answer = Answer(status, f"{why}\n", media_type)


class Witness:
    """Cosigns checkpoints of logs that only grow.

    ``states`` is what it has cosigned so far; the clock returns seconds since 1970.
    """

    def __init__(
        self,
        name: str,
        signer: SigningKey,
        logs: Sequence[TrustedLog],
        states: States,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name, self._signer, self._logs, self._states = name, signer, logs, states
        self._clock, self._lock = clock, threading.Lock()

    @property
    def key(self) -> WitnessKey:
        """The public half of its key."""
        return WitnessKey(self.name, PublicKey(self._signer.public))

    def add_checkpoint(self, body: bytes) -> Answer:
        """Answer a request to cosign: the line, or why not."""
        try:
            old, proof, note = _parsed(body)
            checkpoint = _read(note)
            with self._lock:  # from looking at the last one until the next is on the disk
                return Answer(200, self._cosigned(old, proof, note, checkpoint))
        except _RefusedError as refused:
            return refused.answer

    def _cosigned(self, old: int, proof: Sequence[bytes], note: str, new: Checkpoint) -> str:
        last = self._states.get(new.origin)
        self._check_signed(note, new.origin, is_known=last is not None)
        if old > new.size:
            raise _RefusedError(400, "the old size is larger than that of the checkpoint")
        before = Checkpoint(new.origin, 0, EMPTY_ROOT) if last is None else Checkpoint.read(last)
        if old != before.size or (old == new.size and before.root != new.root):
            raise _RefusedError(409, str(before.size), SIZE_TYPE)
        try:
            check_consistency(old, new.size, proof, before.root, new.root)
        except VerificationError as error:
            raise _RefusedError(422, error.message) from None
        if last is None or old != new.size:
            self._states.put(new.origin, note)
        return cosign(note, self.name, self._signer, int(self._clock()))

    def _check_signed(self, note: str, origin: str, *, is_known: bool) -> None:
        """Refuse a log that nobody told the witness of, and one that is not signed by its key."""
        for log in self._logs:
            is_known = is_known or log.origin == origin
            if log.origin in (None, origin):
                try:
                    Checkpoint.opened(note, log.key)
                except VerificationError:
                    continue
                return
        if is_known:
            raise _RefusedError(403, "no trusted key has signed this checkpoint")
        raise _RefusedError(404, "this log is not known here")


def _read(note: str) -> Checkpoint:
    try:
        return Checkpoint.read(note)
    except VerificationError as error:
        raise _RefusedError(400, error.message) from None


def request_body(old: int, proof: Sequence[bytes], note: str) -> bytes:
    """Return the body of a request to cosign a checkpoint."""
    lines = [f"old {old}", *(base64.b64encode(part).decode() for part in proof), "", note]
    return "\n".join(lines).encode()


def _parsed(body: bytes) -> tuple[int, list[bytes], str]:
    """Read the body of a request: the old size, the proof, and the checkpoint."""
    try:
        head, gap, note = body.decode().partition("\n\n")
        first, *lines = head.split("\n")
        word, _, size = first.partition(" ")
        proof = [base64.b64decode(line, validate=True) for line in lines]
        fits = gap and word == "old" and size.isascii() and size == str(int(size[:20]))
        fits = fits and not size.startswith("-") and len(proof) <= _MAX_PROOF
        if fits and len(body) <= MAX_BODY and all(len(part) == HASH_SIZE for part in proof):
            return int(size), proof, note
    except (UnicodeDecodeError, binascii.Error, ValueError):
        pass
    raise _RefusedError(400, "not a request to cosign: old size, proof, empty line, checkpoint")
