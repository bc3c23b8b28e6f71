"""Indexes in levels: divided by what they hold, read back whole, and written where they changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.errors import CorruptRunError
from grapheraser.graph.pages.files import index_content
from grapheraser.store import indexes, named_files, read_manifest, stray_files
from grapheraser.store.indexes import LINK, Index, divided, read_levels
from grapheraser.store.pages import MODELS
from grapheraser.store.residues.search import search_run
from tests.store.runs import bits, contents, forge, paged

MAX_ENTRIES, BITS = indexes.MAX_ENTRIES, indexes.BITS


def entries_of(starts: list[int], seed: int = 0) -> NDArray[Any]:
    entries = np.zeros(len(starts), dtype=MODELS)
    entries["start"] = sorted(starts)
    entries["seed"] = [hash((start, seed)) % 1000 for start in sorted(starts)]
    return entries


def files_of(index: Index, fresh: dict[bytes, bytes]) -> Callable[[bytes], bytes]:
    assert {hashlib.sha256(content).digest() for content in fresh.values()} == fresh.keys()
    return fresh.__getitem__


STARTS = st.sets(st.integers(0, 2**63 - 1) | st.integers(0, 3000), min_size=1, max_size=400)


@pytest.mark.usefixtures("divided_indexes")
class TestDivided:
    """With parts of about two entries, so that few entries have many levels."""

    @given(starts=STARTS)
    def test_what_was_divided_is_read_back(self, starts: set[int]) -> None:
        entries = entries_of(list(starts))
        index, fresh = divided(entries, None)
        back = read_levels(index_content(index.top), MODELS, files_of(index, fresh))
        assert back.entries.tobytes() == entries.tobytes()
        assert [level.tobytes() for level in back.links] == [x.tobytes() for x in index.links]
        assert index.parts == fresh.keys()
        if len(starts) > 1:
            assert index.links

    @given(before=STARTS, after=STARTS)
    def test_what_was_there_before_leaves_no_trace(self, before: set[int], after: set[int]) -> None:
        """The same entries are divided in the same way, whatever they were made of."""
        old, files = divided(entries_of(list(before)), None)
        index, fresh = divided(entries_of(list(after)), old)
        alone, _ = divided(entries_of(list(after)), None)
        assert [level.tobytes() for level in index.links] == [x.tobytes() for x in alone.links]
        assert index.parts <= fresh.keys() | files.keys()

    @given(starts=STARTS, data=st.data())
    def test_rows_that_are_known_to_differ_are_all_that_is_looked_at(
        self, starts: set[int], data: Any
    ) -> None:
        entries = entries_of(list(starts))
        old, files = divided(entries, None)
        rows = data.draw(st.sets(st.integers(0, len(entries) - 1)))
        differing = np.array(sorted(rows), dtype=np.int64)
        entries = entries.copy()
        entries["seed"][differing] += data.draw(st.sampled_from([0, 1]))
        index, fresh = divided(entries, old, differing)
        alone, _ = divided(entries, None)
        assert [level.tobytes() for level in index.links] == [x.tobytes() for x in alone.links]
        assert index.parts - files.keys() == fresh.keys()

    def test_a_change_touches_one_part_of_each_level(self) -> None:
        entries = entries_of(list(range(0, 51_200, 256)))
        old, files = divided(entries, None)
        changed = entries.copy()
        changed["seed"][77] += 1
        index, fresh = divided(changed, old)
        assert len(fresh) == len(index.links) > 3
        assert len(index.parts - files.keys()) == len(fresh)
        more = entries_of([*range(0, 51_200, 256), 5])
        assert len(divided(more, old)[1]) <= 2 * len(index.links)

    @given(starts=STARTS, data=st.data())
    def test_parts_that_do_not_fit_are_refused(self, starts: set[int], data: Any) -> None:
        index, fresh = divided(entries_of(list(starts | {1, 2, 3, 4})), None)
        top = index.top.copy()
        name = data.draw(st.sampled_from(["start", "entries"]))
        row = data.draw(st.integers(0, len(top) - 1))
        top[name][row] += data.draw(st.sampled_from([-(2**40), -1, 1, 2**40]))
        with pytest.raises(CorruptRunError):
            read_levels(index_content(top), MODELS, fresh.__getitem__)

    def test_a_part_is_not_read_twice(self) -> None:
        """Otherwise a small folder could ask for all of the memory."""
        index, fresh = divided(entries_of(list(range(64))), None)
        read = []

        def noted(digest: bytes) -> bytes:
            read.append(digest)
            return fresh[digest]

        read_levels(index_content(index.top), MODELS, noted)
        assert len(read) == len(set(read)) == len(index.parts)
        for top in (np.repeat(index.top[:1], 9), np.concatenate([index.top, index.top])):
            with pytest.raises(CorruptRunError):
                read_levels(index_content(top), MODELS, fresh.__getitem__)

    def test_levels_have_an_end(self) -> None:
        part = index_content(entries_of([7]))
        files = {hashlib.sha256(part).digest(): part}
        for _ in range(12):
            link = np.zeros(1, dtype=LINK)
            link["start"], link["entries"] = 7, 1
            link["part"] = np.frombuffer(hashlib.sha256(part).digest(), dtype="V32")
            part = index_content(link)
            files[hashlib.sha256(part).digest()] = part
        with pytest.raises(CorruptRunError, match="levels"):
            read_levels(part, MODELS, files.__getitem__)


def test_parts_have_64_entries_on_average_and_a_short_index_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(indexes, "MAX_ENTRIES", MAX_ENTRIES)
    monkeypatch.setattr(indexes, "BITS", BITS)
    for apart in (1, 256, 2**40 + 12345):
        index, _ = divided(entries_of([apart * at for at in range(20_000)]), None)
        assert len(index.links) == 1
        assert 200 < len(index.links[0]) < 512
    assert not divided(entries_of(list(range(MAX_ENTRIES))), None)[0].links


# -- in a run -------------------------------------------------------------------------------------


@pytest.fixture
def run(divided_indexes: None, tmp_path: Path) -> Path:
    paged().save(tmp_path / "run")
    return tmp_path / "run"


def parts_in(run: Path) -> set[str]:
    return {
        name
        for name, raw in contents(run).items()
        if name.startswith("pages/") and raw.startswith(b"\x93NUMPY")
    }


def test_a_run_with_divided_indexes_comes_back_and_forgets(run: Path) -> None:
    eraser = ge.GraphEraser.load(run)
    before = parts_in(run)
    assert len(before) >= 6, "of the graph, the partition and the shards"
    node = int(eraser.graph_.train_nodes[0])
    eraser.unlearn(ge.Nodes([node]))
    eraser.save(run)
    found = contents(run)
    named = named_files(run, read_manifest(run))
    assert named.keys() | {"run.json"} == found.keys()
    assert all(hashlib.sha256(found[name]).hexdigest() == named[name] for name in named)
    assert stray_files(run) == []
    assert bits(ge.GraphEraser.load(run)) == bits(eraser)
    assert parts_in(run) != before
    assert search_run(run).clean
    eraser.save(run.with_name("other"))
    assert contents(run.with_name("other")) == found, "how it came about can't be seen"


def test_parts_that_a_request_does_not_touch_stay(run: Path) -> None:
    eraser = ge.GraphEraser.load(run)
    before = {file: file.stat().st_ino for file in (run / "pages").iterdir()}
    eraser.unlearn(ge.Features(eraser.graph_.train_nodes[:1]))
    eraser.save(run)
    after = {file: file.stat().st_ino for file in (run / "pages").iterdir()}
    kept = {run / name for name in parts_in(run)} & before.keys()
    assert len(kept) >= 3
    assert all(before[file] == after[file] for file in kept)


@pytest.mark.parametrize("damage", ["missing", "altered"])
def test_a_damaged_part_is_named_and_healed(run: Path, damage: str) -> None:
    eraser, before = ge.GraphEraser.load(run), contents(run)
    for name in sorted(parts_in(run)):
        (run / name).unlink()
        if damage == "altered":
            (run / name).write_bytes(before[name][:-1] + b"?")
        with pytest.raises(CorruptRunError, match=Path(name).name):
            ge.GraphEraser.load(run)
        eraser.save(run)
        assert contents(run) == before


def test_a_part_of_another_kind_is_refused(run: Path) -> None:
    for part in ("graph", "partition", "shards"):
        (file,) = run.glob(f"{part}-*.npy")
        manifest, content = (run / "run.json").read_bytes(), file.read_bytes()
        assert np.load(file).dtype == LINK
        (other,) = run.glob("partition-*.npy" if part == "graph" else "graph-*.npy")
        forge(run, file, index_content(np.load(other)))
        with pytest.raises(CorruptRunError):
            ge.GraphEraser.load(run)
        file.write_bytes(content)
        (run / "run.json").write_bytes(manifest)
    ge.GraphEraser.load(run)
