"""Signatures of OpenDSR: RSA or ECDSA with SHA-256 (FIPS 186), under a configured certificate.

They say which processor answered. Receipts have signatures of their own, under another key.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from grapheraser.errors import ParameterError
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
