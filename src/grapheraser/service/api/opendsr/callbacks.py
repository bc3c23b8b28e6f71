"""Callbacks of OpenDSR: tell a controller every status of its request.

Callbacks lie in the database until they are taken, so that a crash loses none. One that fails is
tried again after longer and longer rests, and in the end given up and counted.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from grapheraser.errors import GraphEraserError, ParameterError, UnknownRequestError
from grapheraser.service.api.metrics import Metrics
from grapheraser.service.api.opendsr.outgoing import Rules, post
from grapheraser.service.database.tables import CALLBACKS
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.requests import FINAL, Event, State, utc_text
from grapheraser.store import read_text
from grapheraser.store.keys import read_private

_MIN_RSA_BITS = 2048


@dataclass(frozen=True)
class Processor:
    """The processor that answers OpenDSR requests for a domain, and its signing key.

    The certificate is PEM, with those that lead to its authority, if any.
    """

    domain: str
    certificate: str
    _key: Any = field(repr=False)

    @classmethod
    def read(cls, domain: str, certificate: Path, key: Path) -> Processor:
        """Read the certificate and the private key (PEM), and check that they belong together."""
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        text = read_text(certificate)
        try:
            found = x509.load_pem_x509_certificates(text.encode())[0]
            private = load_pem_private_key(read_private(key), None)
        except (ValueError, TypeError, IndexError) as error:
            raise ParameterError(
                "the certificate and the key of OpenDSR must be PEM files; the key without a "
                "passphrase."
            ) from error
        _check_kind(private)
        _check_certificate(found, private, domain)
        return cls(domain, text, private)

    def sign(self, body: bytes) -> str:
        """Sign a body; return the signature in base64."""
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
        from cryptography.hazmat.primitives.hashes import SHA256

        if isinstance(self._key, rsa.RSAPrivateKey):
            made = self._key.sign(body, padding.PKCS1v15(), SHA256())
        else:
            made = self._key.sign(body, ec.ECDSA(SHA256()))
        return base64.b64encode(made).decode()

    def headers(self, body: bytes) -> dict[str, str]:
        """Return the headers that authenticate a body."""
        return {"X-OpenDSR-Processor-Domain": self.domain, "X-OpenDSR-Signature": self.sign(body)}


def _check_kind(key: Any) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if isinstance(key, rsa.RSAPrivateKey) and key.key_size >= _MIN_RSA_BITS:
        return
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.key_size >= 256:
        return
    raise ParameterError(
        f"the key of OpenDSR must be RSA of at least {_MIN_RSA_BITS} bits, or ECDSA of at least "
        "256.",
        hint="receipts are signed with Ed25519; OpenDSR asks for a key of its own.",
    )


def _check_certificate(certificate: Any, key: Any, domain: str) -> None:
    from cryptography import x509

    if certificate.public_key() != key.public_key():
        raise ParameterError("the certificate of OpenDSR is of another key.")
    try:
        names = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        names = []
    if domain not in names:
        raise ParameterError(
            f"the certificate of OpenDSR must be issued for the domain {domain!r} (found "
            f"{', '.join(names) or 'none'})."
        )
    now = datetime.now(UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise ParameterError("the certificate of OpenDSR is not valid today.")


__all__ = ["Callbacks", "Rules", "status_of", "statuses"]

PENDING, IN_PROGRESS, COMPLETED, CANCELLED = "pending", "in_progress", "completed", "cancelled"
_STATUS = {
    State.RECEIVED: PENDING,
    State.FAILED: PENDING,  # waits for the next attempt, and can be cancelled
    State.COMPLETED: COMPLETED,
    State.CANCELLED: CANCELLED,
}
_MAX_REST_SECONDS = 86_400.0  # between two attempts
_CLAIM_SECONDS = 60.0  # for which nobody else tries a callback that is being sent
_STOP_SECONDS = 20.0  # that a callback which is being sent has to end
_MAX_SENT = 100  # callbacks in one round
_log = logging.getLogger("grapheraser.service")

# Sends a body to a URL with headers; raises OSError unless it was taken.
Send = Callable[[str, bytes, dict[str, str]], None]


def status_of(state: State) -> str:
    """Return OpenDSR's name of a state."""
    return _STATUS.get(state, IN_PROGRESS)


def statuses(history: Sequence[Event]) -> list[str]:
    """List the statuses that a request has had, one after the other."""
    found: list[str] = []
    for event in history:
        status = status_of(event.state)
        if found[-1:] != [status]:
            found.append(status)
    return found


class Callbacks:
    """Tells controllers the status of their requests, signed by a processor."""

    def __init__(
        self,
        queue: Queue,
        processor: Processor,
        rules: Rules,
        metrics: Metrics,
        *,
        send: Send | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._queue, self._database = queue, queue.database
        self._processor, self._rules, self._metrics = processor, rules, metrics
        self._send: Send = send or partial(post, rules=rules)
        self._clock = clock
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, request: str, urls: Sequence[str], called: str) -> None:
        """Note the URLs to tell about a request; ``called`` is the controller's own name for it."""
        rows = [
            {
                "request": request,
                "sealed": self._queue.vault.seal({"url": url, "called": called}, request),
                "next_at": self._clock(),
            }
            for url in dict.fromkeys(urls)
        ]
        with self._database.writing() as connection:
            there = sa.select(CALLBACKS.c.number).where(CALLBACKS.c.request == request)
            if rows and connection.execute(there).first() is None:
                connection.execute(sa.insert(CALLBACKS), rows)

    def start(self) -> None:
        """Begin to send in the background."""
        self._thread = threading.Thread(target=self._run, name="callbacks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop sending; what was not sent is sent after the next start."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                sent = self.send_due()
            except GraphEraserError as error:  # the database is away for a moment
                _log.warning("callbacks wait: %s", type(error).__name__)
                sent = 0
            self._stopped.wait(0.05 if sent else 0.5)

    def send_due(self) -> int:
        """Send what is due; returns how many callbacks were tried."""
        now = self._clock()
        query = sa.select(CALLBACKS).where(CALLBACKS.c.next_at <= now)
        rows = self._database.rows(query.order_by(CALLBACKS.c.next_at).limit(_MAX_SENT))
        return sum(self._tell(row) for row in rows)

    def _tell(self, row: Any) -> int:
        """Tell the next status of one request to one URL; return how many callbacks were tried."""
        try:
            request = self._queue.get(row.request)
            known = statuses(self._queue.history(row.request))
        except UnknownRequestError:  # of another run in the same database
            return 0
        if row.told >= len(known):
            return 0
        if not self._claimed(row):
            return 0
        opened = self._queue.vault.unseal(row.sealed, row.request)
        status, is_last = known[row.told], row.told + 1 == len(known) and request.state in FINAL
        told = {
            "controller_id": request.owner or "",
            "expected_completion_time": utc_text(request.deadline),
            "status_callback_url": opened["url"],
            "subject_request_id": opened["called"],
            "request_status": status,
        }
        body = json.dumps(told).encode()
        try:
            self._send(opened["url"], body, self._processor.headers(body))
        except Exception:  # whatever a receiver does is its own failure, and nobody else's
            self._failed(row)
        else:
            self._metrics.callbacks.labels("delivered").inc()
            self._set(row, None if is_last else {"told": row.told + 1, "attempts": 0})
        return 1

    def _claimed(self, row: Any) -> bool:
        """Claim a callback; return False where another process sends it."""
        mine = (CALLBACKS.c.number == row.number) & (CALLBACKS.c.next_at == row.next_at)
        later = sa.update(CALLBACKS).where(mine).values(next_at=self._clock() + _CLAIM_SECONDS)
        return self._database.change(later) == 1

    def _failed(self, row: Any) -> None:
        attempts = row.attempts + 1
        if attempts >= self._rules.attempts:
            self._metrics.callbacks.labels("given up").inc()
            _log.error("a callback about request %s was given up", row.request)
            self._set(row, None)
            return
        self._metrics.callbacks.labels("retried").inc()
        wait = min(_MAX_REST_SECONDS, self._rules.first_delay * 2.0 ** (attempts - 1))
        self._set(row, {"attempts": attempts}, wait)

    def _set(self, row: Any, values: dict[str, int] | None, wait: float = 0.0) -> None:
        """Note the outcome of a callback; None: it is finished."""
        mine = CALLBACKS.c.number == row.number
        if values is None:
            self._database.change(sa.delete(CALLBACKS).where(mine))
        else:
            new = {**values, "next_at": self._clock() + wait}
            self._database.change(sa.update(CALLBACKS).where(mine).values(new))
