"""A save that is cut short, watched, or not alone: the folder is the old run or the new one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.errors import (
    CorruptRunError,
    ReceiptLossError,
    RunBusyError,
    RunExistsError,
    RunNotFoundError,
)
from grapheraser.store import files, load_run, locked, save_run, stray_files
from grapheraser.store import manifest as names
from grapheraser.store import run as store
from grapheraser.store.files import read_checked
from grapheraser.store.manifest import MARKER
from tests.store.disk import Interrupt, interrupt, power_cut, watched
from tests.store.runs import MARK, bits, contents, fitted
from tests.strategies import small_graph

# Parts of indexes are written, and cut short, too.
pytestmark = pytest.mark.usefixtures("divided_indexes")


@dataclass
class Case:
    """A save: the folder before, who saves, and what the folder holds afterwards."""

    before: Path | None
    save: Callable[[Path], None]
    after: dict[str, bytes]

    def fresh(self, path: Path) -> Path:
        shutil.rmtree(path, ignore_errors=True)
        if self.before is not None:
            shutil.copytree(self.before, path)
        return path

    @property
    def manifests(self) -> list[bytes | None]:
        old = None if self.before is None else (self.before / "run.json").read_bytes()
        return [old, self.after["run.json"]]


def manifest_of(path: Path) -> bytes | None:
    file = path / "run.json"
    return file.read_bytes() if file.exists() else None


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("base") / "run"
    fitted().save(path)
    return path


@pytest.fixture(scope="module", params=["first", "deletion", "replace"])
def case(request: pytest.FixtureRequest, base: Path) -> Case:
    if request.param == "replace":
        eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(small_graph(5))
        eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
    else:
        eraser = ge.GraphEraser.load(base)
        eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
    save = partial(eraser.save, replace=request.param == "replace")
    result = base.with_name(f"{request.param}-result")
    save(result)
    return Case(None if request.param == "first" else base, save, contents(result))


@pytest.mark.parametrize("stop", [interrupt, pytest.param(power_cut, marks=pytest.mark.long)])
def test_a_save_cut_short_at_any_step_leaves_the_old_run_or_the_new_one(
    case: Case, stop: Callable[[int], Callable[[int], None]], tmp_path: Path
) -> None:
    seen = set()
    for at in count():
        path = case.fresh(tmp_path / "run")
        try:
            with watched(stop(at)):
                case.save(path)
            break
        except Interrupt:
            pass
        found = manifest_of(path)
        seen.add(found)
        assert found in case.manifests, at
        if found is not None:
            load_run(path)
        if stop is interrupt and found == case.manifests[0]:
            assert not path.exists() or not stray_files(path), at
        if found is not None:
            with locked(path):
                pass
            assert not stray_files(path), at
        if found == case.manifests[1]:
            assert not any(MARK.tobytes() in content for content in contents(path).values()), at
        case.save(path)
        assert contents(path) == case.after, at
    assert at > 40
    assert seen == set(case.manifests), "both were seen, so the steps cover the manifest"
    assert contents(path) == case.after


def test_a_run_can_be_read_at_any_step_of_a_save(case: Case, tmp_path: Path) -> None:
    path = case.fresh(tmp_path / "run")
    seen = set()

    def read(_: int) -> None:
        seen.add(manifest_of(path))
        if manifest_of(path) is not None:
            load_run(path)

    with watched(read):
        case.save(path)
    assert seen == set(case.manifests)


def test_a_save_at_any_moment_of_reading_does_not_disturb_the_reader(
    base: Path, tmp_path: Path
) -> None:
    writer = ge.GraphEraser.load(base)
    writer.unlearn(ge.Nodes(writer.graph_.train_nodes[:1]))
    found = []
    for at in count():
        path, reads = Path(shutil.copytree(base, tmp_path / str(at))), count()

        def read(*file: Any, at: int = at, path: Path = path, n: Any = reads) -> bytes:
            if next(n) == at:
                writer.save(path)
            return read_checked(*file)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(names, "read_checked", read)
            found.append(load_run(path).receipts)
        if next(reads) <= at:
            break
    assert len(found) > 5
    assert writer.receipts_ in found
    assert found[-1] == writer.receipts_[:-1], "that one was read before the save"
    assert all(receipts in (found[-1], writer.receipts_) for receipts in found)


def test_a_run_that_never_stays_the_same_is_busy(base: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(base, tmp_path / "run"))
    one, two = (load_run(base) for _ in range(2))
    two.configuration["seed"] = 99
    turns = count()

    def vanish(*_: Any) -> None:
        save_run(path, (two, one)[next(turns) % 2])
        raise CorruptRunError("swept")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "read_graph", vanish)
        with pytest.raises(RunBusyError, match="changes faster"):
            load_run(path)


def test_of_two_writers_one_is_told_and_no_receipt_is_lost(base: Path, tmp_path: Path) -> None:
    first, second = ge.GraphEraser.load(base), ge.GraphEraser.load(base)
    first.unlearn(ge.Nodes(first.graph_.train_nodes[:1]))
    second.unlearn(ge.Nodes(second.graph_.train_nodes[1:2]))
    winners = []
    for at in count():
        path = tmp_path / str(at)
        shutil.copytree(base, path)
        told: list[Exception] = []
        reached = False

        def rush(number: int, at: int = at, path: Path = path, told: Any = told) -> None:
            nonlocal reached
            if number == at:
                reached = True
                try:
                    second.save(path)
                except (RunBusyError, ReceiptLossError) as error:
                    told.append(error)

        winner = first
        with watched(rush):
            try:
                first.save(path)
            except ReceiptLossError as error:
                told.append(error)
                winner = second
        if not reached:
            break
        assert len(told) == 1, at
        winners.append(winner)
        assert load_run(path).receipts == winner.receipts_, at
        assert not stray_files(path), at
    assert {id(winner) for winner in winners} == {id(first), id(second)}


def test_the_second_of_two_requests_on_one_run_does_not_undo_the_first(saved: Path) -> None:
    one, two = ge.GraphEraser.load(saved), ge.GraphEraser.load(saved)
    gone = one.graph_.train_nodes[:1]
    one.unlearn(ge.Nodes(gone))
    one.save(saved)
    after = contents(saved)
    for other in (two, ge.GraphEraser(num_shards=2, epochs=1).fit(small_graph())):
        with pytest.raises(ReceiptLossError, match=r"receipts \(2 in all\)") as caught:
            other.save(saved)
        assert "load the run again" in str(caught.value.hint)
    two.unlearn(ge.Nodes(two.graph_.train_nodes[1:2]))
    with pytest.raises(ReceiptLossError):
        two.save(saved)
    assert contents(saved) == after
    again = ge.GraphEraser.load(saved)
    again.unlearn(ge.Nodes(again.graph_.train_nodes[:1]))
    again.save(saved)
    assert len(ge.GraphEraser.load(saved).receipts_) == 3
    two.save(saved, replace=True)
    assert bits(ge.GraphEraser.load(saved)) == bits(two)


@pytest.mark.parametrize("num_shards", [2, 3])
def test_a_run_without_receipts_is_overwritten_where_that_is_asked_for(
    tmp_path: Path, small: ge.Graph, num_shards: int
) -> None:
    ge.GraphEraser(num_shards=2, epochs=1).fit(small).save(tmp_path / "run")
    before = contents(tmp_path / "run")
    other = ge.GraphEraser(num_shards=num_shards, epochs=1).fit(small)
    with pytest.raises(RunExistsError):
        other.save(tmp_path / "run")
    assert contents(tmp_path / "run") == before
    other.save(tmp_path / "run", replace=True)
    assert bits(ge.GraphEraser.load(tmp_path / "run")) == bits(other)


@pytest.mark.parametrize("lock_first", [True, False])
def test_what_a_crash_has_left_goes_with_the_next_session_that_may_write(
    case: Case, tmp_path: Path, lock_first: bool
) -> None:
    path = case.fresh(tmp_path / "run")
    with pytest.MonkeyPatch.context() as patch:
        for cleaning in ("sweep", "remove", "unmark"):
            patch.setattr(store, cleaning, lambda _: None)
        case.save(path)
    assert len(stray_files(path)) > (case.before is not None)
    if lock_first:
        with locked(path):
            assert contents(path) == case.after
    else:
        case.save(path)
        assert contents(path) == case.after


def test_everything_is_on_the_disk_before_something_relies_on_it(
    base: Path, tmp_path: Path
) -> None:
    """New files and their names before the manifest, the manifest before old files go."""
    path = tmp_path / "run"
    eraser = ge.GraphEraser.load(base)
    unsynced: set[int] = set()
    log: list[str] = []
    replace, unlink, mkdir = os.replace, os.unlink, os.mkdir

    def inode(of: Path | str | int) -> int:
        return os.stat(of).st_ino

    def note_mkdir(folder: Path, *rest: Any) -> None:
        mkdir(folder, *rest)
        unsynced.update((inode(Path(folder).parent), inode(folder)))

    def note_replace(source: Path, target: Path) -> None:
        assert inode(source) not in unsynced, f"{target} was not flushed"
        if target.name == "run.json":
            assert not unsynced, "something that the manifest relies on was not flushed"
            log.append("manifest")
        replace(source, target)
        unsynced.add(inode(target.parent))

    def note_unlink(file: Path) -> None:
        if Path(file).name == MARKER:
            return unlink(file)  # where it comes back, it only costs the next writer a sweep
        assert inode(path) not in unsynced or log[-1] == "unlink", "the manifest was not flushed"
        unlink(file)
        log.append("unlink")
        unsynced.add(inode(Path(file).parent))

    def note_open(file: Path, mode: str, opener: Any = None) -> Any:
        file.touch()
        unsynced.add(inode(file))
        return open(file, mode, opener=opener)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "FLUSHERS", 1)
        patch.setattr(os, "mkdir", note_mkdir)
        patch.setattr(os, "replace", note_replace)
        patch.setattr(os, "unlink", note_unlink)
        patch.setattr(os, "fsync", lambda handle: unsynced.discard(inode(handle)))
        patch.setattr("grapheraser.store.files.open", note_open, raising=False)
        eraser.save(path)
        assert not unsynced
        eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
        eraser.save(path)
        assert not unsynced
    assert log.count("manifest") == 2
    assert log[-1] == "unlink"


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


def test_a_first_save_that_crashed_is_no_run(eraser: ge.GraphEraser, tmp_path: Path) -> None:
    with watched(power_cut(30)), pytest.raises(Interrupt):
        eraser.save(tmp_path / "run")
    assert contents(tmp_path / "run")
    with pytest.raises(RunNotFoundError):
        ge.GraphEraser.load(tmp_path / "run")
