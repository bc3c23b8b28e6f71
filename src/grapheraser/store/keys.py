"""The operator's signing keys, in a folder outside all runs.

The folder holds ``ID.key`` (PEM, encrypted where there is a passphrase), ``ID.pub`` (PEM) and
``current``, which names the key that signs. A key that was replaced stays, so that what it signed
can be checked; it signs no more. Beside them are the secrets of the service, ``NAME.secret``, and
what is noted under one of them, ``NAME.log``, which stays when the secret is destroyed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grapheraser.errors import ParameterError, StoreError
from grapheraser.receipts.keys import PublicKey, SigningKey, is_available, needs_cryptography
from grapheraser.store.appended import append_line, read_lines

FOLDER_VARIABLE, PASSPHRASE_VARIABLE = "GRAPHERASER_KEYS", "GRAPHERASER_KEY_PASSPHRASE"
_CURRENT = "current"
_SECRET_SIZE = 32


# Keys that were read in this process, by folder and id: an encrypted one takes a while to open.
_opened: dict[tuple[Path, str], SigningKey] = {}


def current_signer() -> SigningKey | None:
    """The operator's key; None without the extra ``sign``, or where ``GRAPHERASER_KEYS`` is empty.

    Then receipts say that they are unsigned.
    """
    if not is_available() or os.environ.get(FOLDER_VARIABLE) == "":
        return None
    return KeyFolder().signing_key()


def known_keys() -> list[PublicKey]:
    """The public keys that are here, the current one first; none without the extra ``sign``."""
    if not is_available() or os.environ.get(FOLDER_VARIABLE) == "":
        return []
    return KeyFolder().public_keys()


@dataclass(frozen=True)
class KeyRecord:
    """A key of the folder.

    Attributes:
        id: its id.
        path: where its public half lies.
        is_current: whether it signs.
        is_encrypted: whether its private half is.
    """

    id: str
    path: Path
    is_current: bool
    is_encrypted: bool


class KeyFolder:
    """A folder of keys.

    Args:
        path: None for ``GRAPHERASER_KEYS``, else a folder in the user's configuration.
        passphrase: of the private halves; None for ``GRAPHERASER_KEY_PASSPHRASE``, else none.
    """

    def __init__(self, path: str | Path | None = None, passphrase: str | None = None) -> None:
        self.path = Path(path) if path is not None else default_folder()
        self._passphrase = passphrase or os.environ.get(PASSPHRASE_VARIABLE) or None

    def signing_key(self) -> SigningKey:
        """The key that signs; made on first use."""
        needs_cryptography()
        try:
            name = (self.path / _CURRENT).read_text().strip()
        except FileNotFoundError:
            return self._made()
        if (self.path, name) not in _opened:
            _opened[self.path, name] = self._read(self._current())
        return _opened[self.path, name]

    def rotate(self) -> SigningKey:
        """Make a new key; from now on it signs."""
        needs_cryptography()
        return self._made()

    def records(self) -> list[KeyRecord]:
        """All keys, the current one first."""
        current = self._current() if self._has_current() else None
        found = [
            KeyRecord(path.stem, path, path.stem == current, self._is_encrypted(path.stem))
            for path in sorted(self.path.glob("*.pub"))
        ]
        return sorted(found, key=lambda record: not record.is_current)

    def public_keys(self) -> list[PublicKey]:
        """The public halves, the current one first."""
        return [PublicKey.read(record.path.read_text()) for record in self.records()]

    def secret(self, name: str) -> bytes:
        """32 random bytes under a name; made on first use, by one process alone."""
        path = self._secret_file(name)
        if not path.exists():
            partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
            try:
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
                _write_new(partial, secrets.token_hex(_SECRET_SIZE).encode(), 0o600)
                with contextlib.suppress(FileExistsError):  # another process was first
                    os.link(partial, path)
                partial.unlink()
            except OSError as error:
                raise self._unwritable("a secret", error) from error
        _check_private(path)
        try:
            found = bytes.fromhex(path.read_text())
        except (OSError, ValueError) as error:
            raise StoreError(f"{path}: not a readable secret.") from error
        if len(found) != _SECRET_SIZE:
            raise StoreError(f"{path}: not a secret of {_SECRET_SIZE} bytes.")
        return found

    def has_secret(self, name: str) -> bool:
        """Whether there is a secret of this name."""
        return self._secret_file(name).is_file()

    def secret_names(self) -> list[str]:
        """The names of all secrets."""
        return sorted(path.stem for path in self.path.glob("*.secret"))

    def destroy_secret(self, name: str) -> None:
        """Overwrite and remove a secret; what was hidden under it stays hidden for good."""
        path = self._secret_file(name)
        with contextlib.suppress(FileNotFoundError):
            with open(path, "r+b") as file:
                file.write(bytes(2 * _SECRET_SIZE))
                file.flush()
                os.fsync(file.fileno())
            path.unlink()

    def note(self, name: str, line: str) -> None:
        """Add a line to what is noted under a secret; it is on the disk when this returns."""
        append_line(self.path / f"{name}.log", line)

    def notes(self, prefix: str) -> Iterator[tuple[str, str]]:
        """All lines that are noted under secrets whose names begin so, each with the name."""
        for path in sorted(self.path.glob(f"{prefix}*.log")):
            yield from ((path.stem, line) for line in read_lines(path))

    def _secret_file(self, name: str) -> Path:
        return self.path / f"{name}.secret"

    def _unwritable(self, what: str, error: OSError) -> StoreError:
        return StoreError(
            f"{self.path}: can't keep {what} there ({error.strerror}).",
            hint=f"set {FOLDER_VARIABLE} to a folder that can be written.",
        )

    def _has_current(self) -> bool:
        return (self.path / _CURRENT).is_file()

    def _current(self) -> str:
        name = (self.path / _CURRENT).read_text().strip()
        if not name or not name.isalnum() or not (self.path / f"{name}.key").is_file():
            raise StoreError(f"{self.path / _CURRENT}: names no key of this folder.")
        return name

    def _is_encrypted(self, name: str) -> bool:
        path = self.path / f"{name}.key"
        return path.is_file() and "ENCRYPTED" in path.read_text().partition("\n")[0]

    def _read(self, name: str) -> SigningKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        path = self.path / f"{name}.key"
        _check_private(path)
        encrypted = self._is_encrypted(name)
        if encrypted and self._passphrase is None:
            raise ParameterError(
                f"{path}: the key is encrypted, and there is no passphrase.",
                hint=f"set {PASSPHRASE_VARIABLE}.",
            )
        secret = self._passphrase.encode() if encrypted and self._passphrase else None
        try:
            key = load_pem_private_key(path.read_bytes(), secret)
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
            _write(self.path / f"{key.id}.pub", PublicKey(key.public).to_pem().encode(), 0o644)
            _write(self.path / _CURRENT, f"{key.id}\n".encode(), 0o644)
        except OSError as error:
            raise self._unwritable("a signing key", error) from error
        return key


def read_private(path: Path) -> bytes:
    """Read a private key that the caller named, and that nobody else can read."""
    try:
        _check_private(path)
        return path.read_bytes()
    except OSError as error:
        raise ParameterError(f"can't read {path}: {error.strerror}.") from error


def default_folder() -> Path:
    """Where keys lie unless told otherwise."""
    if FOLDER_VARIABLE in os.environ:
        return Path(os.environ[FOLDER_VARIABLE])
    home = os.environ.get("XDG_CONFIG_HOME")
    try:
        return (Path(home) if home else Path.home() / ".config") / "grapheraser" / "keys"
    except RuntimeError:
        raise StoreError(
            "there is no place for the signing key: the user has no home folder.",
            hint=f"set {FOLDER_VARIABLE} to a folder that can be written, or to nothing to leave "
            "receipts unsigned.",
        ) from None


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write a file whole; nobody else can read it while it is written."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    _write_new(partial, content, mode)
    os.replace(partial, path)


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that does not exist yet."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _check_private(path: Path) -> None:
    if os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise StoreError(
            f"{path}: others can read this private key.", hint=f"chmod 600 '{path}', or rotate it."
        )
