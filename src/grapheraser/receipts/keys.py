"""Ed25519 keys, to sign with and to check; signed notes and checkpoints of a log under them.

Notes and checkpoints are those of C2SP (signed-note, tlog-checkpoint). A checkpoint is the text
``origin, size, root`` under a signature. Whoever keeps one elsewhere can tell later whether the log
was rewritten. Standard library alone, but for the signatures, which need the package
``cryptography`` (extra ``sign``); see `store.keys` for where keys lie.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from grapheraser.errors import MissingExtraError, VerificationError
from grapheraser.receipts.tree import HASH_SIZE

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


_DASH = "\u2014 "
# Types of signatures: of a text, and of a witness under a checkpoint at some time.
ED25519, COSIGNATURE = b"\x01", b"\x04"
_KEY_SIZE, _ID_SIZE = 32, 4
# What anyone needs is far below; a note beyond it is no note.
_MAX_CHARACTERS, _MAX_SIGNATURES = 1_000_000, 100


@dataclass(frozen=True)
class Checkpoint:
    """The size and root of a log at some moment."""

    origin: str  # which log; also the name of the key that signs for it
    size: int  # how many entries it has
    root: bytes  # of the tree over them

    def signed_by(self, signer: SigningKey) -> str:
        """The signed note."""
        _check_name(self.origin)
        root = base64.b64encode(self.root).decode()
        return sign_note(f"{self.origin}\n{self.size}\n{root}\n", self.origin, signer)

    @classmethod
    def opened(cls, note: str, verifier: PublicKey) -> Checkpoint:
        """Read a signed checkpoint; raise `VerificationError` unless the key signed it."""
        checkpoint = cls.read(note)
        check_note(note, checkpoint.origin, verifier)
        return checkpoint

    @classmethod
    def read(cls, note: str) -> Checkpoint:
        """Read a checkpoint, whoever signed it."""
        lines = text_of(note).split("\n")
        if len(lines) < 4 or not all(lines[:-1]):
            raise VerificationError("not a checkpoint: it needs an origin, a size and a root.")
        origin, size, root = lines[:3]
        if not size.isascii() or not size.isdigit() or size != str(int(size[:20])):
            raise VerificationError(f"not a checkpoint: its size is {size[:40]!r}.")
        decoded = _decoded(root)
        if len(decoded) != HASH_SIZE:
            raise VerificationError("not a checkpoint: its root is no SHA-256 hash.")
        return cls(origin, int(size), decoded)


def sign_note(text: str, name: str, signer: SigningKey) -> str:
    """A note: a text that ends with a line break, and one signature.

    Lines have no control characters, and none of them is empty.
    """
    _check_name(name)
    lines = text.split("\n")
    if lines[-1] or not all(lines[:-1]) or any(ord(c) < 32 for line in lines for c in line):
        raise ValueError("a note is lines of printable characters, none of them empty")
    signature = key_id(name, signer.public) + signer.sign(text.encode())
    return f"{text}\n{signature_line(name, signature)}"


def signature_line(name: str, signature: bytes) -> str:
    """The line of a note that holds a signature, which begins with the id of its key."""
    return f"{_DASH}{name} {base64.b64encode(signature).decode()}\n"


def check_note(note: str, name: str, verifier: PublicKey) -> str:
    """The text of a note; raise `VerificationError` unless the key of that name signed it."""
    text, wanted = text_of(note), key_id(name, verifier.public)
    for signer, signature in signatures_of(note):
        if signer == name and signature[:_ID_SIZE] == wanted:
            if verifier.accepts(text.encode(), signature[_ID_SIZE:]):
                return text
            raise VerificationError(f"the signature of {name} does not fit the note.")
    raise VerificationError(f"the note is not signed by {name} with this key.")


def signatures_of(note: str) -> list[tuple[str, bytes]]:
    """The signatures of a note, unchecked: the name of each key, then its id with the signature."""
    lines = note[len(text_of(note)) + 1 :].split("\n")[:-1]
    if len(lines) > _MAX_SIGNATURES:
        raise VerificationError("the note has too many signatures.")
    found = []
    for line in lines:
        signer, _, encoded = line.removeprefix(_DASH).partition(" ")
        if not line.startswith(_DASH) or not signer or not encoded:
            raise VerificationError("the note has a malformed signature.")
        found.append((signer, _decoded(encoded)))
    return found


def key_id(name: str, public: bytes, kind: bytes = ED25519) -> bytes:
    """Four bytes that tell keys, and their kinds of signatures, apart."""
    return hashlib.sha256(name.encode() + b"\n" + kind + public).digest()[:_ID_SIZE]


def verifier_key(name: str, public: bytes, kind: bytes = ED25519) -> str:
    """A public key as one line, ``name+id+key``."""
    _check_name(name)
    encoded = base64.b64encode(kind + public).decode()
    return f"{name}+{key_id(name, public, kind).hex()}+{encoded}"


def read_verifier_key(line: str, kind: bytes = ED25519) -> tuple[str, bytes]:
    """The name and the raw key of such a line."""
    name, _, rest = line.strip().partition("+")
    identity, _, encoded = rest.partition("+")
    key = _decoded(encoded)
    if len(key) != 1 + _KEY_SIZE or key[:1] != kind:
        wanted = "an Ed25519 verifier key" if kind == ED25519 else "the verifier key of a witness"
        raise VerificationError(f"not {wanted}.")
    if key_id(name, key[1:], kind).hex() != identity:
        raise VerificationError("the verifier key is damaged: its id does not fit.")
    return name, key[1:]


def text_of(note: str) -> str:
    """The text of a note, with its last line break, whoever signed it."""
    if len(note) > _MAX_CHARACTERS:
        raise VerificationError("not a signed note: it is too long.")
    at = note.rfind("\n\n")
    if at < 0 or not note.endswith("\n") or any(ord(c) < 32 and c != "\n" for c in note):
        raise VerificationError("not a signed note: it needs a text, an empty line, signatures.")
    return note[: at + 1]


def _check_name(name: str) -> None:
    if not name or "+" in name or any(c.isspace() for c in name):
        raise ValueError(f"not a name for a key: {name!r}")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise VerificationError("not base64.") from error
