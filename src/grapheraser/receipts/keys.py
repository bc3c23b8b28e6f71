"""Ed25519 keys, to sign with and to check; see `store.keys` for where they lie.

Needs the package ``cryptography`` (extra ``sign``).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from grapheraser.errors import MissingExtraError, VerificationError
from grapheraser.receipts.notes import read_verifier_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def is_available() -> bool:
    """Tell whether signatures can be made and checked here."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        return False
    return True


def identity(public: bytes) -> str:
    """The id of a key: the beginning of its SHA-256 digest."""
    return hashlib.sha256(public).hexdigest()[:16]


class SigningKey:
    """A private key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @cached_property
    def public(self) -> bytes:
        """The raw public key."""
        return self._key.public_key().public_bytes_raw()

    @property
    def id(self) -> str:
        return identity(self.public)

    def sign(self, message: bytes) -> bytes:
        """An Ed25519 signature."""
        return self._key.sign(message)


@dataclass(frozen=True)
class PublicKey:
    """A public key."""

    public: bytes  # its 32 bytes

    @property
    def id(self) -> str:
        return identity(self.public)

    def accepts(self, message: bytes, signature: bytes) -> bool:
        """Tell whether the signature is one of this key over the message."""
        needs_cryptography()
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def to_pem(self) -> str:
        """The key in the format that other tools read."""
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        return (
            Ed25519PublicKey.from_public_bytes(self.public)
            .public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            .decode()
        )

    @classmethod
    def read(cls, text: str) -> PublicKey:
        """From PEM, or from a verifier key of one line."""
        if "BEGIN" not in text:
            return cls(read_verifier_key(text)[1])
        needs_cryptography()
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        try:
            key = load_pem_public_key(text.encode())
        except (ValueError, UnsupportedAlgorithm) as error:
            raise VerificationError("not a readable public key.") from error
        if not isinstance(key, Ed25519PublicKey):
            raise VerificationError("not an Ed25519 public key.")
        return cls(key.public_bytes_raw())


def needs_cryptography() -> None:
    """Raise an error where the package is missing."""
    if not is_available():
        raise MissingExtraError.of("cryptography", "sign", "signing and checking signatures")
