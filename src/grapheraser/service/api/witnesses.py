"""Ask witnesses to cosign the log (C2SP tlog-witness), beside all work: nothing waits for them.

A checkpoint is sent once its version is published, so that a witness never sees a log that a crash
takes back. Cosigned checkpoints are kept in the database; a receipt that is collected carries the
latest one that it is in, with the proof that it is.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urlsplit

import sqlalchemy as sa

from grapheraser.errors import GraphEraserError, ParameterError, VerificationError
from grapheraser.receipts.keys import Checkpoint, signature_line, signatures_of, text_of
from grapheraser.receipts.part import Part
from grapheraser.receipts.tree import consistency_proof, root_of
from grapheraser.receipts.witness import WitnessKey, request_body
from grapheraser.service.api.opendsr.outgoing import Rules, exchange
from grapheraser.service.database.tables import COSIGNED

if TYPE_CHECKING:
    from grapheraser.service.api.parts import Log
    from grapheraser.service.queue.queue import Queue
    from grapheraser.service.served.serving import Served

_LOG = logging.getLogger("grapheraser.service")
_MAX_ANSWER = 65_536
_FIRST_REST, _MAX_REST = 1.0, 300.0  # seconds, after a witness could not be reached
_STOP_SECONDS = 25.0


class RefusedError(GraphEraserError):
    """A witness does not cosign: it has seen another log, or does not know this one."""


class Remote:
    """A witness to ask, by ``URL`` or ``URL#KEY``; without a key it is asked for its own.

    Attributes:
        size: of the log that it has cosigned, as far as is known here.
    """

    def __init__(self, text: str) -> None:
        self.url, line = urldefrag(text.strip())
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError.of("witness", "the service", "http(s)://HOST[#KEY]", text)
        self.key = WitnessKey.read(line) if line else None
        self.size, self._rules = 0, Rules((parts.hostname,))

    def cosign(self, note: str, leaves: Sequence[bytes]) -> str:
        """Return its line under a checkpoint; raise OSError where it can't be reached."""
        if self.key is None:
            status, text = self._send("/key", None)
            if status != 200:
                raise OSError(f"it does not tell its key ({status})")
            self.key = WitnessKey.read(text)
        status, text = self._asked(note, leaves, self.size)
        if status == 409 and text[:20].strip().isdecimal() and int(text[:20]) != self.size:
            seen = int(text[:20])
            if seen > len(leaves):
                raise RefusedError(f"it has seen {seen} entries, and the log has {len(leaves)}.")
            status, text = self._asked(note, leaves, seen)
        if status in (403, 404, 409, 422):
            raise RefusedError(f"it refuses the checkpoint ({status}: {text.strip()[:200]!r}).")
        found = self.key.found_in(note + text) if status == 200 else None
        if found is None:
            raise OSError(f"it does not cosign ({status})")
        return found[1]

    def _asked(self, note: str, leaves: Sequence[bytes], old: int) -> tuple[int, str]:
        proof = consistency_proof(leaves, old) if 0 < old < len(leaves) else []
        return self._send("/add-checkpoint", request_body(old, proof, note))

    def _send(self, path: str, body: bytes | None) -> tuple[int, str]:
        url, headers = f"{self.url.rstrip('/')}{path}", {"Content-Type": "text/plain"}
        status, text = exchange(url, body, headers, self._rules, most=_MAX_ANSWER)
        return status, text.decode(errors="replace")


class Cosigned:
    """The cosigned checkpoints of one run; ``quorum`` cosignatures count as witnessed."""

    def __init__(self, queue: Queue, quorum: int) -> None:
        self._queue, self.quorum = queue, quorum
        self._mine = COSIGNED.c.run == queue.run

    def add(self, note: str, line: str) -> None:
        """Keep a line under a checkpoint; checkpoints before the last witnessed one go."""
        size = Checkpoint.read(note).size
        this = self._mine & (COSIGNED.c.size == size)
        with self._queue.database.writing() as connection:
            row = {"run": self._queue.run, "size": size, "note": note}
            connection.execute(self._queue.insert_new(COSIGNED), [row])
            # Locked: another witness may have cosigned the same checkpoint at the same time.
            query = sa.select(COSIGNED.c.note).where(this).with_for_update()
            whole = _with_line(connection.execute(query).scalar_one(), line)
            connection.execute(sa.update(COSIGNED).where(this).values(note=whole))
            if _count(whole) >= self.quorum:
                connection.execute(sa.delete(COSIGNED).where(self._mine, COSIGNED.c.size < size))

    def best(self, sequence: int) -> str | None:
        """Return the checkpoint with an entry that most witnesses, then the latest, have signed."""
        query = sa.select(COSIGNED.c.note).where(self._mine, COSIGNED.c.size >= sequence)
        rows = self._queue.database.rows(query.order_by(COSIGNED.c.size.desc()))
        notes: list[str] = [row.note for row in rows]
        return max(notes, key=lambda note: min(_count(note), self.quorum), default=None)

    def carried(self, texts: list[str], leaves: Callable[[int], Sequence[bytes]]) -> list[str]:
        """Return parts of one receipt, as JSON, with a cosigned checkpoint where there is one.

        ``leaves`` gives the hashes of the first entries of the log.
        """
        parts = [Part.from_json(text) for text in texts]
        note = self.best(parts[0].receipt.sequence)
        if note is None:
            return texts
        checkpoint = Checkpoint.read(note)
        first = leaves(checkpoint.size)
        if checkpoint.origin != parts[0].receipt.run or root_of(first) != checkpoint.root:
            return texts  # of the log before a restore
        return [part.placed(first, note).to_json() for part in parts]


def _with_line(note: str, line: str) -> str:
    """Return a note with one signature more, in the place of an older one by the same key."""
    text = text_of(note)
    found = {(name, raw[:4]): raw for name, raw in signatures_of(note)}
    found |= {(name, raw[:4]): raw for name, raw in signatures_of(f"{text}\n{line}")}
    lines = [signature_line(name, raw) for (name, _), raw in found.items()]
    return "".join([text, "\n", *lines])


def _count(note: str) -> int:
    """Return the number of cosignatures: all but that of the log itself."""
    return len(signatures_of(note)) - 1


class Witnesses:
    """Sends every checkpoint to all witnesses, each in a thread of its own."""

    def __init__(
        self, remotes: Sequence[Remote], cosigned: Cosigned, log: Log, served: Served
    ) -> None:
        self.remotes = remotes
        self._cosigned, self._log = cosigned, log
        self._stopped = threading.Event()
        self._new = {remote: threading.Event() for remote in remotes}
        self._threads: list[threading.Thread] = []
        self.refused: set[str] = set()  # URLs of witnesses that don't accept the log
        served.watch(lambda old, new: self.wake())

    def wake(self) -> None:
        """Announce a new checkpoint."""
        for event in self._new.values():
            event.set()

    def start(self) -> None:
        """Begin to ask in the background."""
        for remote in self.remotes:
            thread = threading.Thread(target=self._run, args=(remote,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Stop asking; what was not cosigned is asked for after the next start."""
        self._stopped.set()
        self.wake()
        for thread in self._threads:
            thread.join(_STOP_SECONDS)

    def _run(self, remote: Remote) -> None:
        rest = 0.0
        while not self._stopped.is_set():
            self._new[remote].clear()
            try:
                self.ask(remote)
                rest = 0.0
            except Exception as error:  # whatever a witness does, it is asked again
                rest = min(_MAX_REST, 2 * rest or _FIRST_REST)
                _LOG.warning("witness %s: %s", remote.url, error)
            self._new[remote].wait(rest or None)

    def ask(self, remote: Remote) -> None:
        """Let one witness cosign the log as it is now, unless it has done so."""
        ends = self._log.read()[1]
        if ends.checkpoint is None or ends.receipts == remote.size:
            return
        try:
            line = remote.cosign(ends.checkpoint, self._log.leaves(ends.receipts))
        except (RefusedError, VerificationError):
            self.refused.add(remote.url)
            raise
        self.refused.discard(remote.url)
        self._cosigned.add(ends.checkpoint, line)
        remote.size = ends.receipts
