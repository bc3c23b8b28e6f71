"""The folder of a run: what is ours in it, who may write, and what may be overwritten."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.errors import (
    CorruptRunError,
    ParameterError,
    RunBusyError,
    RunExistsError,
    RunNotFoundError,
    StoreError,
)
from grapheraser.store import (
    FoundFile,
    check_target,
    found_files,
    locked,
    read_text,
    stray_files,
    write_file,
)
from grapheraser.store.manifest import VERSION
from tests.store.runs import bits, contents, fitted, marked_graph

HEX = "0123456789abcdef0123"
NOT_OURS = [
    "shards/thesis.csv",
    "graph-notes.txt",
    "graph-final.npz",
    "receipts/2024.json",
    "aggregator-v2.safetensors",
    f"backup/graph-{HEX}.npz",
    f"shards/{HEX}.safetensors.bak",
    f"pages/{HEX}.page",
    "pages/notes.txt",
    "saving.txt",
]
OURS = [
    f"graph-{HEX}.npz",
    f"graph-{HEX}.npy",
    f"shards-{HEX}.npy",
    f"pages/{HEX * 3}0123.page",
    f"pages/{HEX * 3}0123.page.0a1b2c3d.partial",
    "saving.partial",
    f"partition-{HEX}.npz",
    f"aggregator-{HEX}.safetensors",
    f"shards/{HEX}.safetensors",
    f"receipts/000001-{HEX}.json",
    f"receipts/1000001-{HEX}.json",
    f"graph-{HEX}.npz.0a1b2c3d.partial",
    f"shards/{HEX}.safetensors.0a1b2c3d.partial",
    "run.json.0a1b2c3d.partial",
    "run.json.partial",
]


def plant(folder: Path, name: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x")
    return file


@pytest.mark.parametrize("name", NOT_OURS)
def test_other_peoples_files_stay(eraser: ge.GraphEraser, tmp_path: Path, name: str) -> None:
    occupied = plant(tmp_path / "folder", name)
    for replace in (False, True):
        with pytest.raises(StoreError, match="not a run"):
            eraser.save(tmp_path / "folder", replace=replace)
    assert contents(tmp_path / "folder").keys() == {name}
    eraser.save(tmp_path / "run")
    beside = plant(tmp_path / "run", name)
    eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
    eraser.save(tmp_path / "run")
    assert occupied.exists()
    assert stray_files(tmp_path / "run") == [name]
    assert beside.exists()


@pytest.mark.parametrize("name", OURS)
def test_what_a_crash_leaves_is_no_obstacle_and_goes(
    eraser: ge.GraphEraser, tmp_path: Path, name: str
) -> None:
    plant(tmp_path / "run", name)
    eraser.save(tmp_path / "run")
    assert stray_files(tmp_path / "run") == []
    plant(tmp_path / "run", name)
    assert stray_files(tmp_path / "run") == [name], "looking changes nothing"
    with locked(tmp_path / "run"):
        assert not (tmp_path / "run" / name).exists()


def test_nothing_is_cleared_away_where_the_manifest_names_a_missing_file(saved: Path) -> None:
    """A flipped letter in a name must not cost the file that it named."""
    manifest = (saved / "run.json").read_text()
    name = json.loads(manifest)["graph"]["file"]
    (saved / "run.json").write_text(manifest.replace(name, f"graph-{HEX}.npy"))
    with locked(saved):
        pass
    assert (saved / name).exists()


def test_files_of_a_save_that_is_under_way_are_no_strays(saved: Path) -> None:
    plant(saved, OURS[0])
    with locked(saved):
        plant(saved, OURS[0])
        with pytest.raises(RunBusyError):
            stray_files(saved)


@pytest.mark.parametrize("name", ["../outside.npz", "/etc/hostname", "graph-notes.txt"])
def test_a_manifest_leads_to_no_file_but_the_runs(saved: Path, name: str) -> None:
    manifest = json.loads((saved / "run.json").read_text())
    manifest["graph"]["file"] = name
    (saved / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(CorruptRunError, match="is no file of a run"):
        ge.GraphEraser.load(saved)


@pytest.mark.parametrize(
    "part",
    [
        *("graph-*", "pages/*", "partition-*", "register-*", "shards-*"),
        *("aggregator-*", "shards/*", "receipts/*"),
    ],
)
@pytest.mark.parametrize("damage", [lambda f: f.unlink(), lambda f: f.write_bytes(b"?")])
def test_saving_heals_a_damaged_file(
    eraser: ge.GraphEraser, saved: Path, part: str, damage: Any
) -> None:
    before = contents(saved)
    damage(sorted(saved.glob(part))[0])
    eraser.save(saved)
    assert contents(saved) == before


@pytest.mark.parametrize("change", [{"version": 1}, {"version": VERSION + 1}, "torn"])
def test_another_version_or_a_torn_manifest_is_overwritten_only_on_request(
    eraser: ge.GraphEraser, saved: Path, change: Any
) -> None:
    text = (saved / "run.json").read_text()
    torn = text[:99] if change == "torn" else json.dumps({**json.loads(text), **change})
    (saved / "run.json").write_text(torn)
    with pytest.raises(StoreError, match=r"version|not readable") as caught:
        eraser.save(saved)
    assert "--replace" in str(caught.value.hint)
    assert (saved / "run.json").read_text() == torn
    eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
    eraser.save(saved, replace=True)
    assert bits(ge.GraphEraser.load(saved)) == bits(eraser)
    assert not stray_files(saved)


@pytest.mark.parametrize("manifest", ["[]", '{"format": "other"}'])
def test_a_manifest_of_something_else_is_never_overwritten(
    eraser: ge.GraphEraser, tmp_path: Path, manifest: str
) -> None:
    (tmp_path / "run.json").write_text(manifest)
    with pytest.raises(StoreError, match="not a run"):
        eraser.save(tmp_path, replace=True)
    assert (tmp_path / "run.json").read_text() == manifest


def test_a_bad_target_is_found_before_anything_is_made(tmp_path: Path) -> None:
    plant(tmp_path, "file")
    for bad in (tmp_path / "file", tmp_path / "file" / "run", tmp_path):
        with pytest.raises(StoreError):
            check_target(bad)
    check_target(tmp_path / "new" / "run")
    check_target(Path("new"))
    assert contents(tmp_path).keys() == {"file"}


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_can_not_be_written_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(StoreError, match="can't write to"):
        check_target(tmp_path / "closed" / "run")


# -- locks ----------------------------------------------------------------------------------------


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


def test_a_lock_is_good_for_its_own_run_and_while_it_is_held(
    eraser: ge.GraphEraser, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = saved.with_name("other")
    eraser.save(other)
    with locked(saved) as lock:
        with locked(other), pytest.raises(StoreError, match="lock"):
            eraser.save(other, lock=lock)
        with pytest.raises(StoreError, match="lock"):
            eraser.save(saved.with_name("new"), lock=lock)
        monkeypatch.chdir(saved.parent)
        eraser.save("run", lock=lock)
    with pytest.raises(StoreError, match="no longer held"):
        eraser.save(saved, lock=lock)
    assert not saved.with_name("new").exists()


def test_there_is_no_lock_without_a_run(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("nothing", "empty"):
        with pytest.raises(RunNotFoundError), locked(tmp_path / name):
            pass
    assert not list((tmp_path / "empty").iterdir())


def test_a_lock_that_another_process_holds_is_busy_until_that_process_ends(saved: Path) -> None:
    code = "import sys; from pathlib import Path; from grapheraser.store import locked\n"
    code += "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(saved)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(ge.__file__).parents[1])},
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(RunBusyError), locked(saved):
            pass
        other.kill()
        other.wait()
    with locked(saved):
        pass


def test_the_lock_follows_no_link_and_empties_no_file(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear")
    lock = saved / ".lock"
    lock.unlink()
    lock.symlink_to(tmp_path / "letter")
    with pytest.raises(StoreError, match="not a plain file"), locked(saved):
        pass
    lock.unlink()
    lock.symlink_to(tmp_path / "new")
    with pytest.raises(StoreError, match="not a plain file"), locked(saved):
        pass
    lock.unlink()
    lock.mkdir()
    with pytest.raises(StoreError, match="not a plain file"), locked(saved):
        pass
    lock.rmdir()
    lock.write_text("of somebody")
    with locked(saved):
        pass
    assert lock.read_text() == "of somebody"
    assert (tmp_path / "letter").read_text() == "dear"
    assert not (tmp_path / "new").exists()


# -- everything in a folder -----------------------------------------------------------------------


def test_every_file_of_a_folder_is_read_and_no_link_is_followed(saved: Path) -> None:
    plant(saved, ".hidden/stray")
    (saved / "link").symlink_to(saved / "run.json")
    found = {file.name: file for file in found_files(saved)}
    assert list(found) == sorted(found)
    assert found.pop("link") == FoundFile("link", "link")
    del found[".lock"]
    assert {name: file.content for name, file in found.items()} == {
        name: content for name, content in contents(saved).items() if name != "link"
    }
    assert found[".hidden/stray"] == FoundFile(".hidden/stray", "file", b"x")


# -- single files ---------------------------------------------------------------------------------


def test_two_writers_of_one_file_do_not_stop_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "page.html"
    replace = os.replace

    def replace_late(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "replace", replace)
        write_file(file, b"second")
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_late)
    write_file(file, b"first")
    assert contents(tmp_path) == {"page.html": b"first"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "full")])
def test_a_writer_that_is_stopped_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    def stop(*_: Any) -> None:
        raise error

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises((KeyboardInterrupt, StoreError)):
        write_file(tmp_path / "page.html", b"x")
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("content", [None, b"\xff\xfe\xfa"])
def test_a_file_that_can_not_be_read_as_text_is_named(tmp_path: Path, content: Any) -> None:
    file = tmp_path / "requests.jsonl"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ParameterError, match=r"can't read .*requests\.jsonl"):
        read_text(file)


@pytest.mark.parametrize("name", ["pages", "shards", "receipts"])
def test_a_folder_that_is_a_link_is_refused(saved: Path, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (saved / name).rename(elsewhere)
    (saved / name).symlink_to(elsewhere)
    before = {file.name: file.read_bytes() for file in elsewhere.iterdir()}
    with pytest.raises(CorruptRunError, match="a link, not a folder"):
        ge.GraphEraser.load(saved)
    with pytest.raises(CorruptRunError, match="a link, not a folder"):
        fitted().save(saved, replace=True)
    assert {file.name: file.read_bytes() for file in elsewhere.iterdir()} == before


def test_a_pipe_in_the_place_of_the_manifest_is_not_waited_for(saved: Path) -> None:
    (saved / "run.json").unlink()
    os.mkfifo(saved / "run.json")
    with pytest.raises(CorruptRunError, match="not a plain file"):
        ge.GraphEraser.load(saved)
    fitted().save(saved, replace=True)
    assert ge.GraphEraser.load(saved).receipts_


@pytest.mark.parametrize("content", ["[" * 100_000, "{", "\0"])
def test_a_manifest_that_is_none_can_be_replaced(saved: Path, content: str) -> None:
    (saved / "run.json").write_text(content)
    with pytest.raises(StoreError):
        ge.GraphEraser.load(saved)
    fitted().save(saved, replace=True)
    assert ge.GraphEraser.load(saved).receipts_


def test_a_run_without_receipts_is_not_overwritten_by_another(tmp_path: Path) -> None:
    graph = marked_graph()
    first = ge.GraphEraser(num_shards=2, epochs=1).fit(graph)
    first.save(tmp_path / "run")
    first.save(tmp_path / "run")  # the same run may
    other = ge.GraphEraser(num_shards=2, epochs=1, seed=1).fit(graph)
    with pytest.raises(RunExistsError, match="holds another run"):
        other.save(tmp_path / "run")
    with pytest.raises(RunExistsError):
        check_target(tmp_path / "run")
    first.unlearn(ge.Nodes(graph.train_nodes[:1]))
    first.reshard(3)
    first.save(tmp_path / "run")  # and what became of it
    other.save(tmp_path / "run", replace=True)
    assert ge.GraphEraser.load(tmp_path / "run").seed == 1
