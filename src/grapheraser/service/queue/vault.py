"""Hides personal data in the database, under a secret that lies outside it.

Everything that names a person or a node is sealed (encrypted and authenticated) or marked (hashed
under a key) before it is written. So a stolen database, its journal and its dead rows tell nothing,
and neither do the remains of deleted rows.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from grapheraser.canonical import canonical_json
from grapheraser.errors import StoreError
from grapheraser.untrusted import MAX_LINES, parse_json

_NONCE = 12
SECRET = "service"


class Vault:
    """Seals and marks values under a secret of 32 bytes that lie outside the database."""

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESGCM(self._derived(secret, "seal"))
        self._marking = self._derived(secret, "mark")

    @staticmethod
    def _derived(secret: bytes, purpose: str) -> bytes:
        return hmac.digest(secret, f"grapheraser service {purpose}".encode(), "sha256")

    def seal(self, value: Any, place: str) -> bytes:
        """Encrypt a JSON value; it opens only with the same place, such as the id of its row."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher.encrypt(nonce, canonical_json(value).encode(), place.encode())

    def unseal(self, sealed: bytes, place: str) -> Any:
        """Decrypt what `seal` gave."""
        try:
            content = self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], place.encode())
        except (InvalidTag, ValueError) as error:
            raise StoreError(
                "the database was written under another secret, or was altered.",
                hint="set GRAPHERASER_KEYS to the folder that it was written with.",
            ) from error
        return parse_json(content, MAX_LINES)

    def mark(self, kind: str, value: Any) -> str:
        """Hash a value under the key: equal for equal values, meaningless without the key."""
        return marked(self._marking, kind, value)


def marked(key: bytes, kind: str, value: Any) -> str:
    """Return the HMAC-SHA-256 of a JSON value under a key, distinct for every kind of value."""
    return hmac.new(key, f"{kind}\0{canonical_json(value)}".encode(), hashlib.sha256).hexdigest()
