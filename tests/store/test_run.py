"""A run as a folder: what was saved comes back, damage is refused, a crash costs nothing."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
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
    RunBusyError,
    RunNotFoundError,
    RunVersionError,
    StoreError,
)
from grapheraser.store import locked
from grapheraser.store import run as store
from grapheraser.store.files import write_atomic
from tests.strategies import TwoHops, small_graph

MARK = np.float32(1234.5678)
Contents = dict[str, bytes]


def marked_graph() -> ge.Graph:
    """A graph with one feature value that can be found again among bytes."""
    graph = small_graph()
    x = graph.x.toarray()
    x[np.flatnonzero(graph.role == 1)[0], 0] = MARK
    return ge.Graph.from_arrays(
        x, graph.edges.T, graph.y, ids=graph.ids, test=graph.test_nodes, each_edge_once=True
    )


@pytest.fixture
def eraser() -> ge.GraphEraser:
    fitted = ge.GraphEraser(num_shards=3, epochs=2, partition="hash").fit(marked_graph())
    fitted.unlearn(ge.Nodes(fitted.graph_.train_nodes[-1:]))
    return fitted


@pytest.fixture
def saved(eraser: ge.GraphEraser, tmp_path: Path) -> Path:
    eraser.save(tmp_path / "run")
    return tmp_path / "run"


def contents(folder: Path) -> Contents:
    """Every file of the run, byte for byte; the lock is no part of it."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != ".lock"
    }


def bits(eraser: ge.GraphEraser) -> dict[str, bytes]:
    tensors = {name: array.tobytes() for name, array in eraser._state.tensors().items()}
    return {**tensors, "posteriors": eraser.predict_proba(eraser.graph_.ids).tobytes()}


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
        {"model": "gin", "engine": "pyg"},
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


def test_a_users_own_module_comes_back_with_its_factory(tmp_path: Path, small: ge.Graph) -> None:
    eraser = ge.GraphEraser(model=TwoHops, num_shards=2, epochs=1).fit(small)
    eraser.save(tmp_path / "run")
    assert bits(ge.GraphEraser.load(tmp_path / "run", model=TwoHops)) == bits(eraser)
    with pytest.raises(ParameterError, match="TwoHops") as caught:
        ge.GraphEraser.load(tmp_path / "run")
    assert "model=factory" in str(caught.value.hint)


def test_the_folder_holds_json_npz_and_safetensors_and_no_pickle(saved: Path) -> None:
    assert {Path(name).suffix for name in contents(saved)} == {".json", ".npz", ".safetensors"}
    for name, content in contents(saved).items():
        if name.endswith(".npz"):
            with np.load(saved / name, allow_pickle=False) as z:
                assert all(z[key].dtype != object for key in z.files)
        elif name.endswith(".json"):
            json.loads(content)
        else:
            safetensors.numpy.load(content)


def test_the_manifest_names_every_file_with_its_digest(saved: Path) -> None:
    found = contents(saved)
    manifest = json.loads(found.pop("run.json"))
    entries = [manifest["graph"], manifest["partition"], manifest["aggregator"]]
    entries += [*manifest["shards"].values(), *manifest["receipts"]]
    assert {entry["file"] for entry in entries} == set(found)
    for entry in entries:
        assert hashlib.sha256(found[entry["file"]]).hexdigest() == entry["sha256"]


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
    old = json.loads(before["run.json"])
    assert {old["graph"]["file"], old["shards"][str(shard)]["file"]} <= gone
    kept = {entry["file"] for key, entry in old["shards"].items() if key != str(shard)}
    assert kept <= after.keys()
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


PARTS = ["graph-*.npz", "partition-*.npz", "aggregator-*.safetensors", "shards/*", "receipts/*"]


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
    old = file.read_bytes()
    new = damage(old)
    file.write_bytes(new)
    manifest = (saved / "run.json").read_text()
    before, after = (hashlib.sha256(content).hexdigest() for content in (old, new))
    (saved / "run.json").write_text(manifest.replace(before, after))
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


@pytest.mark.parametrize("version", [0, 1, 3, "2", None])
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


# -- crashes, full disks, two at once -------------------------------------------------------------


class Crash(BaseException):
    """Nothing may catch it, as nothing catches a power cut."""


def save_and_crash(eraser: ge.GraphEraser, path: Path, number: int) -> None:
    """Stop dead before the given write of a save, and clean up nothing."""
    count = 0

    def write_or_crash(path: Path, content: bytes) -> None:
        nonlocal count
        if count == number:
            raise Crash
        count += 1
        write_atomic(path, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "write_atomic", write_or_crash)
        patch.setattr(store, "_remove_strangers", lambda *_: None)
        with pytest.raises(Crash):
            eraser.save(path)


@pytest.mark.parametrize("number", range(5))
def test_a_crash_at_any_write_leaves_the_old_run(
    eraser: ge.GraphEraser, saved: Path, number: int
) -> None:
    """A deletion writes a shard, a receipt, the graph, the partition, then the manifest."""
    before, old = contents(saved), bits(eraser)
    eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
    save_and_crash(eraser, saved, number)
    assert before.items() <= contents(saved).items()
    assert bits(ge.GraphEraser.load(saved)) == old
    eraser.save(saved)
    manifest = json.loads((saved / "run.json").read_text())
    named = {"run.json", *store._files_of(manifest)}
    assert contents(saved).keys() == named, "what the crash left behind is gone"
    assert bits(ge.GraphEraser.load(saved)) == bits(eraser)


def test_a_crash_after_the_manifest_leaves_the_new_run_and_the_next_save_cleans_up(
    eraser: ge.GraphEraser, saved: Path
) -> None:
    before = contents(saved)
    eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_remove_strangers", lambda *_: None)
        eraser.save(saved)
    assert bits(ge.GraphEraser.load(saved)) == bits(eraser)
    old_graph = json.loads(before["run.json"])["graph"]["file"]
    assert (saved / old_graph).exists()
    ge.GraphEraser.load(saved).save(saved)
    assert not (saved / old_graph).exists()


@pytest.mark.parametrize("number", [0, 2])
def test_a_first_save_that_crashed_can_be_tried_again(
    eraser: ge.GraphEraser, tmp_path: Path, number: int
) -> None:
    save_and_crash(eraser, tmp_path / "run", number)
    with pytest.raises(RunNotFoundError):
        ge.GraphEraser.load(tmp_path / "run")
    eraser.save(tmp_path / "run")
    assert bits(ge.GraphEraser.load(tmp_path / "run")) == bits(eraser)


def test_another_history_does_not_overwrite_the_old_receipts_before_its_time(
    eraser: ge.GraphEraser, saved: Path
) -> None:
    other = ge.GraphEraser(num_shards=2, epochs=1).fit(small_graph(5))
    other.unlearn(ge.Nodes(other.graph_.train_nodes[:1]))
    save_and_crash(other, saved, 5)  # before the manifest
    assert bits(ge.GraphEraser.load(saved)) == bits(eraser)


FULL = """
import resource, sys
import grapheraser as ge
from grapheraser.errors import StorageFullError
eraser = ge.GraphEraser.load(sys.argv[1])
eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    eraser.save(sys.argv[1])
except StorageFullError as error:
    print(error.message)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits the size of files with setrlimit")
@pytest.mark.parametrize("limit", [100, 3000])
def test_a_full_disk_leaves_the_run_as_it_was(saved: Path, limit: int) -> None:
    before = contents(saved)
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(saved), str(limit)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(ge.__file__).parents[1])},
        check=True,
    )
    assert "the disk is full" in done.stdout
    assert "the run is as it was" in done.stdout
    assert contents(saved) == before


def test_a_run_that_is_being_changed_is_busy(eraser: ge.GraphEraser, saved: Path) -> None:
    before = contents(saved)
    eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
    with locked(saved), pytest.raises(RunBusyError, match="another process"):
        eraser.save(saved)
    assert contents(saved) == before
    with locked(saved) as lock:
        eraser.save(saved, lock=lock)
    assert contents(saved) != before


def test_a_busy_run_can_be_read(eraser: ge.GraphEraser, saved: Path) -> None:
    with locked(saved):
        assert bits(ge.GraphEraser.load(saved)) == bits(eraser)


def test_there_is_no_lock_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(RunNotFoundError), locked(tmp_path / "nothing"):
        pass
