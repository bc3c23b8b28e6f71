"""A save writes what has changed, reads what it must, and lists nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.errors import CorruptRunError, StoreError
from grapheraser.kernels.paged import ROOM
from grapheraser.receipts import Receipts
from grapheraser.store import files, load_run, locked, manifest, save_run, stray_files, writing
from grapheraser.store.digests import file_content
from grapheraser.store.pages import page_file
from grapheraser.store.writing import page_files
from tests.receipts.examples import chain
from tests.store.runs import bits, contents, paged


@dataclass
class Done:
    """What a save did: files written and read by name, tensors serialised."""

    written: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    serialised: int = 0

    def count(self, prefix: str) -> int:
        return sum(name.startswith(prefix) for name in self.written)


@contextmanager
def recorded(path: Path) -> Iterator[Done]:
    """Note what is done to a folder; listing it is an error."""
    done = Done()
    rename, read, serialise = os.replace, files.read_checked, file_content

    def note_replace(source: Path, target: Path) -> None:
        done.written.append(Path(target).relative_to(path).as_posix())
        rename(source, target)

    def note_read(file: str, *rest: Any) -> bytes:
        done.read.append(Path(file).relative_to(path).as_posix())
        return read(file, *rest)

    def note_serialise(*arguments: Any) -> bytes:
        done.serialised += 1
        return serialise(*arguments)

    def only_others(listed: Any) -> Any:
        def call(folder: Any = ".", *rest: Any) -> Any:
            assert not Path(folder).is_relative_to(path), "the folder was listed"
            return listed(folder, *rest)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", note_replace)
        patch.setattr(manifest, "read_checked", note_read)
        patch.setattr(writing, "file_content", note_serialise)
        for name in ("scandir", "listdir", "walk"):
            patch.setattr(os, name, only_others(getattr(os, name)))
        yield done


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("base") / "run"
    paged().save(path)
    return path


@pytest.fixture
def run(base: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(base, tmp_path / "run"))


@pytest.mark.parametrize("again", [False, True])
def test_a_save_after_a_request_writes_what_the_request_touched(run: Path, again: bool) -> None:
    eraser = ge.GraphEraser.load(run)
    if again:
        eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[100:101]))
        eraser.save(run)
    before = eraser.graph_
    node = int(before.train_nodes[0])
    near = before.neighbours(node)
    receipt = eraser.unlearn(ge.Nodes([node]))
    with recorded(run) as done:
        eraser.save(run)
    pages = {int(near_by) // ROOM for near_by in (node, *near.tolist())}  # ids are consecutive
    assert 1 < len(pages) <= 4
    assert done.count("pages/") == len(pages) + 3, "and one of features, partition and register"
    assert done.count("shards/") == len(receipt.retrained) == 1
    assert done.count("receipts/") == 1
    assert done.written[-1] == "run.json"
    others = len(done.written) - done.count("pages/")
    assert others == 8, "shard, receipt, aggregator, four indexes, manifest"
    assert done.serialised == 2
    indexes = ("graph-", "partition-", "register-", "shards-")
    assert len(done.read) == 4
    assert all(name.startswith(indexes) for name in done.read)
    assert not stray_files(run)
    assert bits(ge.GraphEraser.load(run)) == bits(eraser)


def test_a_request_for_an_edge_between_shards_writes_two_pages_at_most(run: Path) -> None:
    eraser = ge.GraphEraser.load(run)
    pairs = eraser.graph_.edges
    known = eraser.partition_.contains(pairs.ravel()).reshape(-1, 2).all(axis=1)
    shards = eraser.partition_.shard_of(pairs[known].ravel()).reshape(-1, 2)
    edge = pairs[known][shards[:, 0] != shards[:, 1]][0]
    assert not eraser.unlearn(ge.Edges([tuple(edge.tolist())])).retrained
    with recorded(run) as done:
        eraser.save(run)
    assert 1 <= done.count("pages/") <= 2
    assert done.count("shards/") == done.count("partition-") == 0


def test_another_folder_gets_everything(base: Path, tmp_path: Path) -> None:
    eraser = ge.GraphEraser.load(base)
    eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
    eraser.save(tmp_path / "other")
    eraser.save(base.parent / "another")
    assert contents(tmp_path / "other") == contents(base.parent / "another")
    assert bits(ge.GraphEraser.load(tmp_path / "other")) == bits(eraser)
    assert ge.GraphEraser.load(tmp_path / "other").receipts_ == eraser.receipts_


def test_a_run_that_is_saved_as_it_is_there_is_checked_and_not_written(run: Path) -> None:
    before = contents(run)
    eraser = ge.GraphEraser.load(run)
    with recorded(run) as done:
        eraser.save(run)
    assert done.written == []
    assert contents(run) == before


def test_what_another_writer_put_there_is_no_obstacle(run: Path) -> None:
    """The folder alone says what it holds, not what this process saved last."""
    one, two = ge.GraphEraser.load(run), ge.GraphEraser.load(run)
    two.save(run.with_name("elsewhere"))
    one.unlearn(ge.Nodes(one.graph_.train_nodes[:1]))
    one.save(run)
    two.unlearn(ge.Nodes(two.graph_.train_nodes[1:2]))
    two.save(run, replace=True)
    assert bits(ge.GraphEraser.load(run)) == bits(two)
    assert not stray_files(run)


def test_altered_weights_are_written_even_in_an_object_that_was_saved(run: Path) -> None:
    eraser = ge.GraphEraser.load(run)
    shard = eraser.shards_[0]
    name, tensor = next(iter(shard.tensors.items()))
    shard.tensors[name] = tensor + 1
    eraser.save(run)
    assert ge.GraphEraser.load(run).shards_[0].digest == shard.digest


# -- receipts -------------------------------------------------------------------------------------


def test_a_save_reads_and_writes_no_receipt_that_is_there(run: Path) -> None:
    kept = load_run(run)
    receipts = chain(40)
    save_run(run, replace(kept, receipts=receipts), replace=True)
    back = load_run(run)
    assert back.receipts == tuple(receipts)
    longer = Receipts.of(load_run(run).receipts).then(chain(41)[-1])
    with recorded(run) as done:
        save_run(run, replace(back, receipts=longer))
    assert done.count("receipts/") == 1
    assert not [name for name in done.read if name.startswith("receipts/")]
    assert load_run(run).receipts == tuple(chain(41))


@pytest.fixture
def several(run: Path) -> Path:
    eraser = ge.GraphEraser.load(run)
    for node in eraser.graph_.train_nodes[:3].tolist():
        eraser.unlearn(ge.Nodes([node]))
    eraser.save(run)
    return run


def test_a_load_reads_the_last_receipt_alone(several: Path) -> None:
    with recorded(several) as done:
        eraser = ge.GraphEraser.load(several)
        assert len(eraser.receipts_) == 4
        assert eraser.receipts_[-1].sequence == 4
    assert sum(name.startswith("receipts/") for name in done.read) == 1


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("damage", ["missing", "altered", "of another"])
def test_verify_notices_a_receipt_that_is_not_what_it_was(
    several: Path, number: int, damage: str
) -> None:
    (file,) = several.glob(f"receipts/{number:06}-*")
    content = file.read_bytes()
    file.unlink()
    if damage == "altered":
        file.write_bytes(content.replace(b"payload", b"payloat"))
    elif damage == "of another":
        (other,) = several.glob(f"receipts/{number % 3 + 1:06}-*")
        file.write_bytes(other.read_bytes())
    eraser = ge.GraphEraser.load(several)
    found = eraser.verify()
    assert not found.identical
    assert any(file.name in difference for difference in found.differences)
    with pytest.raises(CorruptRunError, match=file.name):
        list(eraser.receipts_)


def test_a_surplus_receipt_is_a_stray_and_goes(several: Path) -> None:
    assert stray_files(several) == []
    before = contents(several)
    (real,) = several.glob("receipts/000002-*")
    names = [f"receipts/{number:06}-0123456789abcdef0123.json" for number in (2, 5)]
    for name in names:
        (several / name).write_bytes(real.read_bytes())
    assert stray_files(several) == names
    with locked(several):
        assert contents(several) == before


def test_receipts_are_not_cleared_away_where_one_is_missing(several: Path) -> None:
    (file,) = several.glob("receipts/000002-*")
    stray = several / "receipts" / "000003-0123456789abcdef0123.json"
    file.rename(stray)
    before = contents(several)
    with locked(several):
        assert contents(several) == before


@pytest.mark.parametrize("entry", [[], None, {}, {"count": -1, "head": "x"}, {"count": 2}, 7])
def test_a_manifest_that_does_not_say_which_receipts_there_are_is_refused(
    run: Path, entry: Any
) -> None:
    found = manifest.read_manifest(run)
    (run / "run.json").write_bytes(manifest.manifest_content({**found, "receipts": entry}))
    with pytest.raises(CorruptRunError, match=r"which receipts|receipts(\.\w+)? is missing"):
        ge.GraphEraser.load(run)


# -- the disk -------------------------------------------------------------------------------------


def test_many_files_are_flushed_at_once_before_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    rename = os.replace
    monkeypatch.setattr(files, "_MANY_FILES", 3)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(os, "sync", lambda: log.append("sync"))

    def note(source: Path, target: Path) -> None:
        log.append(Path(target).parent.name)
        rename(source, target)

    monkeypatch.setattr(os, "replace", note)
    paged().save(tmp_path / "run")
    assert log[0] == "sync", "before anything has its name"
    assert log.count("sync") == 3, "new folders, the files, and the folders that hold them now"
    assert log[-1] == "run"
    assert "sync" in log[log.index("pages") :]


def test_leftovers_that_can_not_be_cleared_away_stay_marked(run: Path) -> None:
    """Where a file of the run is missing, nobody can tell which of the others are needed."""
    eraser = ge.GraphEraser.load(run)
    shared = eraser.graph_.pages.pages[-1].features
    eraser.unlearn(ge.Features(eraser.graph_.train_nodes[:1]))
    assert eraser.graph_.pages.pages[-1].features is shared
    (digest,) = page_files.get([shared])
    assert digest is not None
    content = (run / page_file(digest)).read_bytes()
    (run / page_file(digest)).unlink()
    left = run / "shards" / "0123456789abcdef0123.safetensors"
    left.write_bytes(b"old")
    (run / manifest.MARKER).touch()
    eraser.save(run)
    assert left.exists()
    assert (run / manifest.MARKER).exists()
    (run / page_file(digest)).write_bytes(content)
    eraser.save(run)
    assert not stray_files(run)
    assert bits(ge.GraphEraser.load(run)) == bits(eraser)


def test_a_marker_that_is_a_link_is_not_followed(run: Path, tmp_path: Path) -> None:
    eraser = ge.GraphEraser.load(run)
    eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
    (tmp_path / "letter").write_text("dear")
    (run / manifest.MARKER).symlink_to(tmp_path / "letter")
    eraser.save(run)  # removes the link, since a save seems not to have finished
    assert (tmp_path / "letter").read_text() == "dear"
    assert not stray_files(run)


def test_a_disk_that_can_not_be_written_leaves_the_run_as_it_was(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    eraser = ge.GraphEraser.load(run)
    eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
    before = contents(run)

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(StoreError, match="can't write"):
            eraser.save(run)
    with locked(run):
        assert contents(run) == before
    eraser.save(run)
    assert bits(ge.GraphEraser.load(run)) == bits(eraser)
