"""An auditor's copy of a run on a machine that has none of the operator's private keys."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import grapheraser as ge
from grapheraser.receipts.keys import PublicKey
from grapheraser.store.keys import KeyFolder
from tests.cli.commands import data, run

pytest.importorskip("cryptography", reason="needs the extra 'sign'")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a run with a receipt of each of two keys, its checkpoint and the public keys."""
    folder = tmp_path_factory.mktemp("desk")
    graph = ge.load_dataset("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHERASER_KEYS", str(folder / "private"))
        eraser = ge.GraphEraser(num_shards=3, epochs=1).fit(graph)
        eraser.unlearn(ge.Nodes(graph.train_nodes[:1]))
        data("keys", "--export", folder / "old.pub")
        KeyFolder().rotate()
        eraser.unlearn(ge.Nodes(graph.train_nodes[1:2]))
        data("keys", "--export", folder / "new.pub")
        eraser.save(folder / "run")
        data("receipts", folder / "run", "--checkpoint", "--out", folder / "checkpoint")
    shutil.rmtree(folder / "private")
    return folder


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of keys of another machine; empty."""
    monkeypatch.setenv("GRAPHERASER_KEYS", str(tmp_path / "keys"))
    return tmp_path / "keys"


def both(desk: Path) -> tuple[object, ...]:
    return ("--key", desk / "old.pub", "--key", desk / "new.pub")


def key_ids(desk: Path) -> list[str]:
    return [PublicKey.read((desk / name).read_text()).id for name in ("old.pub", "new.pub")]


def test_another_machine_verifies_a_copy_with_public_keys(desk: Path, tmp_path: Path) -> None:
    arguments = ["verify", desk / "run", "--checkpoint", desk / "checkpoint", *both(desk)]
    done = subprocess.run(
        [sys.executable, "-m", "grapheraser", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "GRAPHERASER_KEYS": str(tmp_path / "keys"),
            "PYTHONPATH": str(Path(ge.__file__).parents[1]),
        },
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == [
        "verified: bit-identical",
        "signatures: 2 receipts and the checkpoint verified, signed by " + ", ".join(key_ids(desk)),
        "checkpoint: the log begins as it did",
    ]
    assert not (tmp_path / "keys").exists(), "whoever checks needs no key of their own"


def test_an_auditor_with_keys_of_their_own_names_the_operators(desk: Path, elsewhere: Path) -> None:
    data("keys", "--rotate")
    assert data("verify", desk / "run", *both(desk))["signatures"]["verdict"] == "verified"
    done = run("verify", desk / "run")
    assert done.returncode == 1
    assert "verified: bit-identical\nsignatures: NOT verified" in done.stdout
    assert "the checkpoint is not signed by a key of this machine" in done.stderr
    assert "--key FILE" in done.stderr
    assert elsewhere.is_dir()


def test_without_any_key_signatures_are_not_checked_and_that_is_said(
    desk: Path, elsewhere: Path
) -> None:
    done = run("verify", desk / "run")
    assert done.returncode == 0
    assert "verified: bit-identical\nsignatures: NOT CHECKED, for no public key" in done.stdout
    assert "hint: give the operator's public key" in done.stderr
    found = data("verify", desk / "run")
    assert found["identical"]
    assert found["signatures"]["verdict"] == "not checked"
    assert (found["signatures"]["verified"], found["signatures"]["others"]) == (0, 2)
    assert not elsewhere.exists()


@pytest.mark.parametrize("given", ["old.pub", "new.pub"])
def test_a_key_that_was_not_given_is_named(desk: Path, elsewhere: Path, given: str) -> None:
    done = run("verify", desk / "run", "--key", desk / given, "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["identical"]
    old, new = key_ids(desk)
    at, missing = (2, new) if given == "old.pub" else (1, old)
    reason = f"receipt {at} is signed by {missing}, whose key was not given"
    assert found["signatures"]["wrong"][0] == reason
    assert (len(found["signatures"]["wrong"]) == 2) is (given == "old.pub"), "and the checkpoint"
    assert elsewhere is not None


def test_a_strangers_key_is_refused(desk: Path, elsewhere: Path, tmp_path: Path) -> None:
    data("keys", "--export", tmp_path / "stranger.pub")
    key = ("--key", tmp_path / "stranger.pub")
    assert run("verify", desk / "run", *key).returncode == 1
    assert run("verify", desk / "run", "--key", desk / "checkpoint").returncode == 1
    assert elsewhere.is_dir()


def test_a_copy_without_its_checkpoint_is_refused(
    desk: Path, elsewhere: Path, tmp_path: Path
) -> None:
    path = shutil.copytree(desk / "run", tmp_path / "run")
    manifest = json.loads((path / "run.json").read_text())
    manifest["configuration"]["history"]["checkpoint"] = None
    (path / "run.json").write_text(json.dumps(manifest))
    done = run("verify", path, *both(desk))
    assert done.returncode == 1
    assert "verified: bit-identical" in done.stdout
    assert "signature: the log has no signed checkpoint" in done.stderr
    assert not elsewhere.exists()


def test_unsigned_receipts_pass_unless_a_key_is_given(
    monkeypatch: pytest.MonkeyPatch, small: ge.Graph, desk: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRAPHERASER_KEYS", "")
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(small)
    eraser.save(tmp_path / "run")
    assert "signatures: none, for there are no receipts" in run("verify", tmp_path / "run").stdout
    eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    eraser.save(tmp_path / "run")
    assert "signatures: none, 1 receipt unsigned" in run("verify", tmp_path / "run").stdout
    done = run("verify", tmp_path / "run", *both(desk))
    assert done.returncode == 1
    assert "signature: receipt 1 is unsigned" in done.stderr
