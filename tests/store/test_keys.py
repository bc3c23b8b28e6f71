"""Keys: made on first use, kept to oneself, rotated, listed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grapheraser.errors import ParameterError, StoreError, VerificationError
from grapheraser.receipts.keys import verifier_key

pytest.importorskip("cryptography", reason="needs the extra 'sign'")
from grapheraser.receipts.keys import PublicKey
from grapheraser.receipts.secret import default_folder
from grapheraser.store.keys import KeyFolder


def test_made_on_first_use_and_kept(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path / "keys")
    assert keys.records() == []
    first = keys.signing_key()
    assert KeyFolder(tmp_path / "keys").signing_key().public == first.public
    (record,) = keys.records()
    assert (record.id, record.is_current, record.is_encrypted) == (first.id, True, False)
    assert PublicKey.read(record.path.read_text()).accepts(b"m", first.sign(b"m"))
    assert (tmp_path / "keys" / f"{first.id}.key").stat().st_mode & 0o777 == 0o600


def test_rotation_keeps_the_old_one_for_checking(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path)
    old = keys.signing_key()
    new = keys.rotate()
    assert keys.signing_key().public == new.public != old.public
    assert [key.public for key in keys.public_keys()] == [new.public, old.public]
    assert [record.is_current for record in keys.records()] == [True, False]


def test_encrypted_at_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = KeyFolder(tmp_path, "secret").signing_key()
    (record,) = KeyFolder(tmp_path).records()
    assert record.is_encrypted
    with pytest.raises(ParameterError, match="no passphrase"):
        KeyFolder(tmp_path).signing_key()
    with pytest.raises(StoreError, match="another passphrase"):
        KeyFolder(tmp_path, "wrong").signing_key()
    monkeypatch.setenv("GRAPHERASER_KEY_PASSPHRASE", "secret")
    assert KeyFolder(tmp_path).signing_key().public == made.public


def test_a_private_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    key = KeyFolder(tmp_path).signing_key()
    (tmp_path / f"{key.id}.key").chmod(0o644)
    with pytest.raises(StoreError, match="others can read"):
        KeyFolder(tmp_path).signing_key()


@pytest.mark.parametrize("current", ["", "../x", "0123456789abcdef"])
def test_a_damaged_folder(tmp_path: Path, current: str) -> None:
    KeyFolder(tmp_path).signing_key()
    (tmp_path / "current").write_text(current)
    with pytest.raises(StoreError, match="names no key"):
        KeyFolder(tmp_path).signing_key()


def test_a_truncated_key(tmp_path: Path) -> None:
    key = KeyFolder(tmp_path).signing_key()
    path = tmp_path / f"{key.id}.key"
    path.write_text(path.read_text()[:60])
    with pytest.raises(StoreError, match="not a readable key"):
        KeyFolder(tmp_path).signing_key()


def test_public_keys_are_read_in_two_formats(tmp_path: Path) -> None:
    key = KeyFolder(tmp_path).signing_key()
    assert PublicKey.read(verifier_key("log", key.public)).public == key.public
    for text in ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "nothing"):
        with pytest.raises(VerificationError):
            PublicKey.read(text)


def test_where_keys_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHERASER_KEYS", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("GRAPHERASER_KEYS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert default_folder() == tmp_path / "config" / "grapheraser" / "keys"


def test_a_user_without_a_home_is_told_where_to_put_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("GRAPHERASER_KEYS", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(StoreError, match="no home folder") as caught:
        default_folder()
    assert "GRAPHERASER_KEYS" in str(caught.value.hint)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="can't keep a signing key"):
        KeyFolder(tmp_path / "keys").signing_key()


def test_secrets_are_made_once_and_destroyed(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path / "keys")
    assert keys.secret_names() == []
    first = keys.secret("service")
    assert len(first) == 32
    assert KeyFolder(tmp_path / "keys").secret("service") == first != keys.secret("other")
    assert (tmp_path / "keys" / "service.secret").stat().st_mode & 0o777 == 0o600
    assert keys.secret_names() == ["other", "service"]
    assert keys.records() == []
    keys.destroy_secret("service")
    keys.destroy_secret("service")
    assert not keys.has_secret("service")
    assert keys.secret("service") != first


def test_a_secret_that_others_can_read_or_that_is_damaged_is_refused(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path)
    keys.secret("service")
    file = tmp_path / "service.secret"
    file.chmod(0o644)
    with pytest.raises(StoreError, match="others can read"):
        keys.secret("service")
    file.chmod(0o600)
    for content in ("", "00", "not hexadecimal"):
        file.write_text(content)
        with pytest.raises(StoreError, match="secret"):
            keys.secret("service")


def test_what_is_noted_under_a_secret_can_lie_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = KeyFolder(tmp_path / "keys")
    folder.secret("tombstones-2026-01")
    folder.note("tombstones-2026-01", "before")
    monkeypatch.setenv("GRAPHERASER_TOMBSTONES", str(tmp_path / "elsewhere"))
    folder.note("tombstones-2026-02", "after")
    assert [*folder.notes("tombstones-")] == [
        ("tombstones-2026-02", "after"),
        ("tombstones-2026-01", "before"),
    ]
    assert not (folder.path / "tombstones-2026-02.log").exists()
    assert (tmp_path / "elsewhere" / "tombstones-2026-02.log").stat().st_mode & 0o077 == 0
