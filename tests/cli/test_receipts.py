"""The verbs about receipts: list, show, export, check offline, print; and the keys."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import grapheraser as ge
from grapheraser.receipts import Part, Receipt
from grapheraser.receipts.keys import PublicKey
from tests.cli.commands import data, run, snapshot

pytest.importorskip("cryptography", reason="needs the extra 'sign'")


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two receipts, what was handed out, the public key and two checkpoints."""
    folder = tmp_path_factory.mktemp("office")
    graph = ge.load_dataset("demo")
    ge.GraphEraser(num_shards=3, epochs=1).fit(graph).save(folder / "run")
    first, second, third = graph.train_nodes[:3].tolist()
    handed = ("--receipts", folder / "handed")
    data("unlearn", folder / "run", "--nodes", f"{first},{second}", *handed)
    data("receipts", folder / "run", "--checkpoint", "--out", folder / "early")
    done = run("unlearn", folder / "run", "--nodes", third, *handed)
    assert "handed out" in done.stdout
    data("receipts", folder / "run", "--checkpoint", "--out", folder / "late")
    data("keys", "--export", folder / "operator.pub")
    return folder


def files(office: Path) -> list[Path]:
    return sorted((office / "handed").iterdir())


def test_each_person_has_a_file(office: Path) -> None:
    names = [file.name for file in files(office)]
    assert names == [
        "receipt-000001-0001.json",
        "receipt-000001-0002.json",
        "receipt-000002-0001.json",
    ]


def test_receipts_are_listed_shown_and_exported(office: Path, tmp_path: Path) -> None:
    listed = run("receipts", office / "run").stdout
    assert "2 nodes" in listed
    assert "2 entries" in listed
    found = data("receipts", office / "run")
    assert [receipt["sequence"] for receipt in found["receipts"]] == [1, 2]
    assert data("receipts", office / "run", "--show", 2)["receipt"] == {
        name: value for name, value in found["receipts"][1].items() if name != "digest"
    }
    data("receipts", office / "run", "--export", 1, "--out", tmp_path / "envelope.json")
    exported = Receipt.from_json((tmp_path / "envelope.json").read_text())
    assert exported.digest == found["receipts"][0]["digest"]
    assert run("receipts", office / "run", "--export", 1).stdout.strip() == exported.to_json()
    for wrong in (("--show", 3), ("--show", 1, "--export", 1), ("--out", tmp_path / "x")):
        assert run("receipts", office / "run", *wrong).returncode == 1


def test_a_receipt_is_verified_offline(office: Path) -> None:
    first, _, last = files(office)
    key = ("--key", office / "operator.pub")
    done = run("receipt", "verify", first, *key, "--checkpoint", office / "early")
    assert done.returncode == 0
    assert "the node was in the run before and is not after" in done.stdout
    found = data("receipt", "verify", last, *key, "--checkpoint", office / "late")
    assert found["valid"]
    assert [one["statement"] for one in found["receipts"]] == ["exact"]
    assert data("receipt", "verify", last, *key, "--run", office / "run")["valid"]
    wrong = run("receipt", "verify", first, *key, "--run", office / "run")
    assert wrong.returncode == 1
    assert "not in the state that the receipt led to" in wrong.stderr


def test_a_proof_is_brought_up_to_a_later_checkpoint(office: Path, tmp_path: Path) -> None:
    first, key = files(office)[0], ("--key", office / "operator.pub")
    late = ("--checkpoint", office / "late")
    early = run("receipt", "verify", first, *key, *late)
    assert early.returncode == 1
    assert "--prove" in early.stderr
    data("receipts", office / "run", "--prove", first, "--out", tmp_path / "proved.json")
    assert data("receipt", "verify", tmp_path / "proved.json", *key, *late)["valid"]


def bundle(files: Sequence[Path], indent: int | None = None) -> str:
    """All parts of a request in one file, as the service hands them out."""
    parts = [json.loads(file.read_text()) for file in files]
    return json.dumps({"request": "0" * 32, "parts": parts}, indent=indent)


def test_several_files_and_bundles_are_verified_together(office: Path, tmp_path: Path) -> None:
    key = ("--key", office / "operator.pub")
    done = run("receipt", "verify", *files(office), *key)
    assert done.returncode == 0
    assert done.stdout.count("receipt: valid\n") == 3
    assert done.stdout.endswith("receipts: 3 of 3 valid\n")
    for indent in (None, 2):
        (tmp_path / "all.json").write_text(bundle(files(office), indent))
        found = data("receipt", "verify", tmp_path / "all.json", *key)
        told = data("receipt", "verify", *files(office), *key)
        assert [{**one, "file": ""} for one in found["receipts"]] == [
            {**one, "file": ""} for one in told["receipts"]
        ]
    parts = [Part.from_json(file.read_text()) for file in files(office)]
    data("receipt", "page", tmp_path / "all.json", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert all(f"<td>{part.in_words}</td>" in page for part in parts)


def test_one_forged_receipt_among_several_is_named(office: Path, tmp_path: Path) -> None:
    first, second, _ = files(office)
    both = json.loads(bundle([first, second]))
    both["parts"][1]["request"]["about"]["ids"] = ["999999"]
    (tmp_path / "forged.json").write_text(json.dumps(both))
    (tmp_path / "torn.json").write_text(bundle([first])[:-9])
    (tmp_path / "empty.json").write_text('{"parts": []}')
    named = [tmp_path / f"{name}.json" for name in ("forged", "torn", "empty")]
    key = ("--key", office / "operator.pub")
    done = run("receipt", "verify", *named, second, *key)
    assert done.returncode == 1
    assert done.stdout.endswith("receipts: 2 of 5 valid\n")
    assert f"{named[0]}: the receipt does not answer this request." in done.stderr
    for file in named[1:]:
        assert f"{file}: not a readable receipt" in done.stderr
    done = run("receipt", "verify", *named, second, *key, "--json")
    found = json.loads(done.stdout)["receipts"]
    assert [one["valid"] for one in found] == [True, False, False, False, True]


WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "torch_geometric", "numpy", "scipy", "numba"):
            raise ImportError(name)

sys.meta_path.insert(0, Refuse())
from grapheraser.cli import main
main(sys.argv[1:])
"""


def test_verifying_needs_the_standard_library_and_cryptography(office: Path) -> None:
    arguments = ["receipt", "verify", files(office)[2], "--key", office / "operator.pub"]
    arguments += ["--checkpoint", office / "late", "--run", office / "run", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(ge.__file__).parents[1])},
        check=True,
    )
    assert json.loads(done.stdout)["valid"]


def test_a_forged_file_is_refused_with_a_reason(office: Path, tmp_path: Path) -> None:
    text = files(office)[0].read_text()
    part = json.loads(text)
    part["request"]["about"]["ids"] = ["999999"]
    forged = tmp_path / "forged.json"
    for content, reason in (
        (json.dumps(part, sort_keys=True, separators=(",", ":")), "does not answer this request"),
        (text[: len(text) // 2], "truncated"),
        ("\udcff", "truncated"),
    ):
        forged.write_bytes(content.encode(errors="surrogateescape"))
        done = run("receipt", "verify", forged, "--key", office / "operator.pub", "--json")
        assert done.returncode == 1
        found = json.loads(done.stdout)
        assert not found["valid"]
        assert [reason in one["wrong"] for one in found["receipts"]] == [True]
        assert f"{forged}: " in done.stderr
    keyless = run("receipt", "verify", files(office)[0])
    assert keyless.returncode == 1
    assert "needs --key" in keyless.stderr
    assert "--out" not in keyless.stderr
    assert run("receipt", "verify", tmp_path / "none", "--key", forged).returncode == 1
    assert run("receipt", "verify", files(office)[0], "--key", forged).returncode == 1


def test_a_page_can_be_printed(office: Path, tmp_path: Path) -> None:
    first = files(office)[0]
    data("receipt", "page", first, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    part = Part.from_json(first.read_text())
    assert part.receipt.digest in page
    assert "backups" in page
    assert "<script" not in page
    assert run("receipt", "page", first).returncode == 1
    assert run("receipt", "page", first, "--out", "x", "--key", first).returncode == 1


def test_a_rewritten_run_is_caught_by_a_checkpoint(office: Path, tmp_path: Path) -> None:
    late = ("--checkpoint", office / "late")
    assert data("verify", office / "run", *late)["checkpoint"]["wrong"] is None
    key = ("--key", office / "operator.pub")
    assert "begins as it did" in run("verify", office / "run", *late, *key).stdout
    graph = ge.load_dataset("demo")
    other = ge.GraphEraser(num_shards=3, epochs=1).fit(graph)
    other.unlearn(ge.Nodes(graph.train_nodes[:3]))
    other.save(tmp_path / "run")
    assert other.verify().identical, "on its own it looks well"
    done = run("verify", tmp_path / "run", *late)
    assert done.returncode == 1
    assert "the log is a new one" in done.stdout
    assert "a restore from a backup begins a new log" in done.stderr


@pytest.mark.parametrize(
    "edit",
    [
        ("graph", {"name": "other"}),
        ("graph", {"notes": ["1 self-loop dropped"]}),
        ("partition", {"capacity": 7}),
        ("state", {"versions": {"python": "2.7"}}),
        ("state", {"nonce": "0" * 64}),
    ],
    ids=str,
)
def test_an_edit_of_what_describes_a_run_is_noticed(
    office: Path, tmp_path: Path, edit: tuple[str, dict[str, object]]
) -> None:
    path = shutil.copytree(office / "run", tmp_path / "run")
    manifest = json.loads((path / "run.json").read_text())
    part, changes = edit
    manifest[part] |= changes
    (path / "run.json").write_text(json.dumps(manifest))
    assert run("verify", path).returncode == 1


def test_keys_are_listed_and_rotated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHERASER_KEYS", str(tmp_path / "keys"))
    assert data("keys")["keys"] == []
    first = run("keys", "--export", tmp_path / "one.pub")
    name = PublicKey.read((tmp_path / "one.pub").read_text()).id
    assert f"public key  {tmp_path / 'one.pub'}\nof key      {name}, which signs" in first.stdout
    assert f"note: made the signing key {name} in {tmp_path / 'keys'}" in first.stderr
    assert "note" not in run("keys", "--export", tmp_path / "one.pub").stderr, "it was there"
    found = data("keys", "--rotate", "--export", tmp_path / "two.pub")
    two = PublicKey.read((tmp_path / "two.pub").read_text()).id
    assert found["made"] == [two]
    assert found["exported"] == {"file": str(tmp_path / "two.pub"), "id": two}
    assert [key["signs"] for key in found["keys"]] == [True, False]
    assert (tmp_path / "one.pub").read_text() != (tmp_path / "two.pub").read_text()
    listed = run("keys").stdout
    assert "not encrypted" in listed
    monkeypatch.setenv("GRAPHERASER_KEY_PASSPHRASE", "open sesame")
    assert [key["encrypted"] for key in data("keys", "--rotate")["keys"]] == [True, False, False]


def test_a_dry_run_hands_out_nothing(office: Path, tmp_path: Path) -> None:
    before = snapshot(office / "run")
    asked = ("--nodes", 5, "--dry-run", "--receipts", tmp_path / "handed")
    assert run("unlearn", office / "run", *asked).returncode == 1
    assert not (tmp_path / "handed").exists()
    assert snapshot(office / "run") == before
