"""A run as a folder: what was saved comes back, what was forgotten does not, damage is refused."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import grapheraser as ge
from grapheraser.errors import (
    CorruptRunError,
    ParameterError,
    RunNotFoundError,
    RunVersionError,
    StoreError,
)
from grapheraser.store import named_files
from grapheraser.store.manifest import VERSION
from tests.store.runs import MARK, bits, contents, forge
from tests.strategies import TwoHops


def test_what_was_saved_comes_back_bit_for_bit(eraser: ge.GraphEraser, saved: Path) -> None:
    back = ge.GraphEraser.load(saved)
    assert bits(back) == bits(eraser)
    assert back.graph_ == eraser.graph_
    assert back.graph_.name == eraser.graph_.name
    assert back.receipts_ == eraser.receipts_
    assert back.partition_.inputs == eraser.partition_.inputs
    assert back.engine_ == eraser.engine_
    assert back.verify().identical


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "mlp"},
        {"model": ge.ModelSpec("gcn", hidden=4, dropout=0.25)},
        pytest.param({"model": "gin:paper", "engine": "pyg"}, marks=pytest.mark.gnn),
        {"partition": "random", "gamma": 0.5},
        {"aggregation": "majority", "seed": 7},
        {"num_shards": 1, "delta": 40},
    ],
)
def test_settings_come_back(tmp_path: Path, small: ge.Graph, changes: dict[str, Any]) -> None:
    eraser = ge.GraphEraser(**{"num_shards": 2, "epochs": 1, **changes}).fit(small)
    eraser.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run")
    node = ge.Nodes(small.train_nodes[:1])
    first, second = eraser.unlearn(node), back.unlearn(node)
    assert first.configuration == second.configuration
    assert bits(back) == bits(eraser)


def test_saving_what_was_loaded_changes_no_byte(saved: Path) -> None:
    before = contents(saved)
    ge.GraphEraser.load(saved).save(saved)
    assert contents(saved) == before


@pytest.mark.gnn
def test_a_users_own_module_comes_back_with_its_factory(tmp_path: Path, small: ge.Graph) -> None:
    eraser = ge.GraphEraser(model=TwoHops, num_shards=2, epochs=1).fit(small)
    eraser.save(tmp_path / "run")
    assert bits(ge.GraphEraser.load(tmp_path / "run", model=TwoHops)) == bits(eraser)
    with pytest.raises(ParameterError, match="TwoHops") as caught:
        ge.GraphEraser.load(tmp_path / "run")
    assert "model=factory" in str(caught.value.hint)


def test_the_folder_holds_json_arrays_pages_and_safetensors_and_no_pickle(saved: Path) -> None:
    kinds = {".json", ".npy", ".page", ".safetensors"}
    assert {Path(name).suffix for name in contents(saved)} == kinds
    for name, content in contents(saved).items():
        if name.endswith(".npy"):
            assert not np.load(saved / name, allow_pickle=False).dtype.hasobject
        elif name.endswith(".page"):
            assert content.startswith((b"GE-topo1", b"GE-feat1", b"GE-part1", b"GE-regi1"))
        elif name.endswith(".json"):
            json.loads(content)
        else:
            safetensors.numpy.load(content)


def test_the_manifest_leads_to_every_file_and_its_digest(saved: Path) -> None:
    found = contents(saved)
    manifest = json.loads(found.pop("run.json"))
    entries = [manifest[name] for name in ("graph", "partition", "register", "shards")]
    entries.append(manifest["aggregator"])
    named = {entry["file"]: entry["sha256"] for entry in entries}
    for digest in np.load(saved / manifest["shards"]["file"])["weights"]:
        named[f"shards/{digest.tobytes().hex()[:20]}.safetensors"] = digest.tobytes().hex()
    pages = {"topology": "graph", "features": "graph", "shards": "partition"}
    pages |= {"entries": "register"}
    for kind, part in pages.items():
        for digest in np.load(saved / manifest[part]["file"])[kind]:
            named[f"pages/{digest.tobytes().hex()}.page"] = digest.tobytes().hex()
    head = manifest["receipts"]["head"]
    named[f"receipts/000001-{head[:20]}.json"] = head
    assert manifest["receipts"]["count"] == 1
    assert {name: hashlib.sha256(content).hexdigest() for name, content in found.items()} == named
    assert named_files(saved, manifest) == named


def test_what_was_forgotten_leaves_the_disk(eraser: ge.GraphEraser, saved: Path) -> None:
    before = contents(saved)
    assert any(MARK.tobytes() in content for content in before.values())
    node = int(eraser.graph_.train_nodes[0])
    assert eraser.graph_.x[eraser.graph_.positions([node])].max() == MARK
    (shard,) = eraser.unlearn(ge.Nodes([node])).retrained
    eraser.save(saved)
    after = contents(saved)
    assert not any(MARK.tobytes() in content for content in after.values())
    gone = before.keys() - after.keys()
    assert {name for name in before if name.startswith("pages/")} <= gone, "there is one page"
    old = json.loads(before["run.json"])
    files = {
        int(entry["start"]): f"shards/{entry['weights'].tobytes().hex()[:20]}.safetensors"
        for entry in np.load(io.BytesIO(before[old["shards"]["file"]]))
    }
    assert {old["graph"]["file"], files.pop(shard)} <= gone
    assert set(files.values()) <= after.keys()
    assert len(after) == len(before) + 1, "one more receipt, nothing else"


# -- damaged folders ------------------------------------------------------------------------------


def empty(_: bytes) -> bytes:
    return b""


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def altered(content: bytes) -> bytes:
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def foreign(_: bytes) -> bytes:
    return b"this is no part of any run"


PARTS = [
    *("graph-*", "pages/*", "partition-*", "register-*", "shards-*"),
    *("aggregator-*", "shards/*", "receipts/*"),
]


@pytest.mark.parametrize("damage", [empty, truncated, altered, foreign])
@pytest.mark.parametrize("part", PARTS)
def test_a_damaged_file_is_named(saved: Path, part: str, damage: Callable[[bytes], bytes]) -> None:
    file = sorted(saved.glob(part))[0]
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(CorruptRunError, match=f"{file.name}: truncated or altered"):
        ge.GraphEraser.load(saved)


@pytest.mark.parametrize("part", PARTS)
def test_a_missing_file_is_named(saved: Path, part: str) -> None:
    file = sorted(saved.glob(part))[0]
    file.unlink()
    with pytest.raises(CorruptRunError, match=f"{file.name}: can't be read"):
        ge.GraphEraser.load(saved)


@pytest.mark.parametrize("damage", [empty, truncated, foreign])
@pytest.mark.parametrize("part", PARTS)
def test_a_foreign_file_with_a_forged_digest_is_refused_too(
    saved: Path, part: str, damage: Callable[[bytes], bytes]
) -> None:
    file = sorted(saved.glob(part))[0]
    forge(saved, file, damage(file.read_bytes()))
    with pytest.raises(CorruptRunError):
        ge.GraphEraser.load(saved)


@pytest.mark.parametrize("damage", [empty, truncated, foreign])
def test_an_unreadable_manifest_is_refused(saved: Path, damage: Callable[[bytes], bytes]) -> None:
    file = saved / "run.json"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(CorruptRunError, match=r"run\.json: not readable"):
        ge.GraphEraser.load(saved)


@pytest.mark.parametrize("manifest", [[], 7, {}, {"format": "other"}])
def test_a_foreign_manifest_is_refused(saved: Path, manifest: Any) -> None:
    (saved / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(CorruptRunError, match="not the manifest of a run"):
        ge.GraphEraser.load(saved)


@pytest.mark.parametrize("key", ["graph", "partition", "shards", "configuration", "receipts"])
def test_a_manifest_with_a_part_missing_is_refused(
    eraser: ge.GraphEraser, saved: Path, key: str
) -> None:
    manifest = json.loads((saved / "run.json").read_text())
    del manifest[key]
    (saved / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(CorruptRunError):
        ge.GraphEraser.load(saved)


@pytest.mark.parametrize("version", [0, VERSION - 1, VERSION + 1, str(VERSION), None])
def test_another_version_of_the_format_is_said_so(saved: Path, version: Any) -> None:
    manifest = json.loads((saved / "run.json").read_text())
    (saved / "run.json").write_text(json.dumps({**manifest, "version": version}))
    with pytest.raises(RunVersionError, match=f"version {version} of the format; this is version"):
        ge.GraphEraser.load(saved)


@pytest.mark.parametrize("make", ["nothing", "empty folder", "file"])
def test_no_run_is_said_so(tmp_path: Path, make: str) -> None:
    path = tmp_path / "run"
    if make == "empty folder":
        path.mkdir()
    elif make == "file":
        path.write_text("hello")
    with pytest.raises(RunNotFoundError, match="no run here"):
        ge.GraphEraser.load(path)


def test_a_folder_that_holds_something_else_is_left_alone(
    eraser: ge.GraphEraser, tmp_path: Path
) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(StoreError, match="not a run"):
        eraser.save(tmp_path)
    assert contents(tmp_path) == {"letter.txt": b"dear"}
    with pytest.raises(StoreError):
        eraser.save(tmp_path / "letter.txt")
    with pytest.raises(StoreError, match="can't make the folder"):
        eraser.save(tmp_path / "letter.txt" / "run")
