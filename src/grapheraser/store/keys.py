"""The operator's signing keys, in a folder outside all runs.

The folder holds ``ID.key`` (PEM, encrypted where there is a passphrase), ``ID.pub`` (PEM) and
``current``, which names the key that signs. A key that was replaced stays, so that what it signed
can be checked; it signs no more. Beside them are the secrets of the service, ``NAME.secret``, and
what is noted under one of them, ``NAME.log``, which stays when the secret is destroyed. Secret and
log together confirm a guess: ``GRAPHERASER_TOMBSTONES`` names another folder for the logs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grapheraser.errors import GraphEraserError, ParameterError, StoreError
from grapheraser.receipts import secret
from grapheraser.receipts.keys import PublicKey, SigningKey, is_available, needs_cryptography
from grapheraser.receipts.secret import FOLDER_VARIABLE, default_folder
from grapheraser.store.files import append_line, make_folder, read_lines

PASSPHRASE_VARIABLE = "GRAPHERASER_KEY_PASSPHRASE"
LOGS_VARIABLE = "GRAPHERASER_TOMBSTONES"
_CURRENT = "current"


# Keys that were read in this process, by folder and id: an encrypted one takes a while to open.
_opened: dict[tuple[Path, str], SigningKey] = {}


def current_signer() -> SigningKey | None:
    """The operator's key; None without the extra ``sign``, or where ``GRAPHERASER_KEYS`` is empty.

    Then receipts say that they are unsigned.
    """
    if not is_available() or os.environ.get(FOLDER_VARIABLE) == "":
        return None
    return KeyFolder().signing_key()


def signer_at_hand() -> SigningKey | None:
    """The operator's key, made where there is none; None where that, or opening it, fails."""
    try:
        return current_signer()
    except GraphEraserError:
        return None


def known_keys() -> list[PublicKey]:
    """The public keys that are here, the current one first; none without the extra ``sign``."""
    if not is_available() or os.environ.get(FOLDER_VARIABLE) == "":
        return []
    return KeyFolder().public_keys()


@dataclass(frozen=True)
class KeyRecord:
    """A key of the folder."""

    id: str  # its id
    path: Path  # where its public half lies
    is_current: bool  # whether it signs
    is_encrypted: bool  # whether its private half is


class KeyFolder:
    """A folder of keys.

    Without a path that of ``GRAPHERASER_KEYS``, else one in the user's configuration; without a
    passphrase that of ``GRAPHERASER_KEY_PASSPHRASE``, else none.
    """

    def __init__(self, path: str | Path | None = None, passphrase: str | None = None) -> None:
        self.path = Path(path) if path is not None else default_folder()
        self._passphrase = passphrase or os.environ.get(PASSPHRASE_VARIABLE) or None

    @property
    def logs(self) -> Path:
        """The folder of what is noted under secrets."""
        return Path(os.environ.get(LOGS_VARIABLE) or self.path)

    def signing_key(self) -> SigningKey:
        """The key that signs; made on first use."""
        needs_cryptography()
        try:
            name = self._current()
        except FileNotFoundError:
            return self._made()
        if (self.path, name) not in _opened:
            _opened[self.path, name] = self._read(name)
        return _opened[self.path, name]

    def rotate(self) -> SigningKey:
        """Make a new key; from now on it signs."""
        needs_cryptography()
        return self._made()

    def records(self) -> list[KeyRecord]:
        """All keys, the current one first."""
        current = self._current() if (self.path / _CURRENT).is_file() else None
        found = [
            KeyRecord(path.stem, path, path.stem == current, self._is_encrypted(path.stem))
            for path in sorted(self.path.glob("*.pub"))
        ]
        return sorted(found, key=lambda record: not record.is_current)

    def public_keys(self) -> list[PublicKey]:
        """The public halves, the current one first."""
        return [PublicKey.read(_text(record.path)) for record in self.records()]

    def secret(self, name: str) -> bytes:
        """32 random bytes under a name; made on first use, by one process alone."""
        return secret.secret_of(name, self.path)

    def has_secret(self, name: str) -> bool:
        """Tell whether there is a secret of this name."""
        return secret.secret_file(name, self.path).is_file()

    def secret_names(self) -> list[str]:
        """The names of all secrets."""
        return sorted(path.stem for path in self.path.glob("*.secret"))

    def destroy_secret(self, name: str) -> None:
        """Overwrite and remove a secret; what was hidden under it stays hidden for good."""
        path = secret.secret_file(name, self.path)
        with contextlib.suppress(FileNotFoundError):
            with open(path, "r+b") as file:
                file.write(bytes(2 * secret.SIZE))
                file.flush()
                os.fsync(file.fileno())
            path.unlink()

    def note(self, name: str, line: str) -> None:
        """Add a line to what is noted under a secret; it is on the disk when this returns."""
        make_folder(self.logs)
        append_line(self.logs / f"{name}.log", line)

    def notes(self, prefix: str) -> Iterator[tuple[str, str]]:
        """All lines that are noted under secrets whose names begin so, each with the name."""
        for folder in sorted({self.path, self.logs}):  # older ones may lie beside the secrets
            for path in sorted(folder.glob(f"{prefix}*.log")):
                yield from ((path.stem, line) for line in read_lines(path))

    def _current(self) -> str:
        name = _text(self.path / _CURRENT).strip()
        if not name or not name.isalnum() or not (self.path / f"{name}.key").is_file():
            raise StoreError(f"{self.path / _CURRENT}: names no key of this folder.")
        return name

    def _is_encrypted(self, name: str) -> bool:
        path = self.path / f"{name}.key"
        return path.is_file() and "ENCRYPTED" in _text(path).partition("\n")[0]

    def _read(self, name: str) -> SigningKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        path = self.path / f"{name}.key"
        content = secret.read_private(path)
        encrypted = self._is_encrypted(name)
        if encrypted and self._passphrase is None:
            raise ParameterError(
                f"{path}: the key is encrypted, and there is no passphrase.",
                hint=f"set {PASSPHRASE_VARIABLE}.",
            )
        passphrase = self._passphrase.encode() if encrypted and self._passphrase else None
        try:
            key = load_pem_private_key(content, passphrase)
        except ValueError as error:
            reason = "another passphrase, or a damaged file" if encrypted else "a damaged file"
            raise StoreError(f"{path}: not a readable key ({reason}).") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise StoreError(f"{path}: not an Ed25519 key.")
        return SigningKey(key)

    def _made(self) -> SigningKey:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        raw = Ed25519PrivateKey.generate()
        key = SigningKey(raw)
        protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if self._passphrase is not None:
            protection = serialization.BestAvailableEncryption(self._passphrase.encode())
        private = raw.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection
        )
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(self.path / f"{key.id}.key", private, 0o600)
            _write(self.path / f"{key.id}.pub", PublicKey(key.public).to_pem().encode(), 0o600)
            _write(self.path / _CURRENT, f"{key.id}\n".encode(), 0o600)
        except OSError as error:
            raise secret.unwritable(self.path, "a signing key", error) from error
        return key


def read_private(path: Path) -> bytes:
    """Read a private key that the caller named, and that nobody else can read."""
    try:
        return secret.read_private(path)
    except OSError as error:
        raise ParameterError(f"can't read {path}: {error.strerror}.") from error


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write a file whole; nobody else can read it while it is written."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    secret.write_new(partial, content, mode)
    os.replace(partial, path)


def _text(path: Path) -> str:
    return secret.read_key_file(path).decode(errors="replace")
