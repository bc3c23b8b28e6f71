"""Large graphs are read into a file without a name, and what goes from them is overwritten."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.store import spool
from grapheraser.store.spool import Spool
from tests.store.runs import bits, contents, paged


def held(spool: Spool) -> bytes:
    """All bytes of the file."""
    handle = spool._file.fileno()
    return os.pread(handle, os.fstat(handle).st_size, 0)


def test_what_is_put_there_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_CHUNK", 4 * mmap.PAGESIZE)
    rng = np.random.default_rng(0)
    parts = [rng.bytes(int(size)) for size in rng.integers(1, 9 * mmap.PAGESIZE, 40)]
    with Spool(tmp_path) as made:
        views = [made.put(part) for part in parts]
    assert [view.tobytes() for view in views] == parts
    assert all(view.readonly for view in views)
    assert list(tmp_path.iterdir()) == []


def test_a_part_is_overwritten_when_its_last_holder_goes(tmp_path: Path) -> None:
    secret, other = b"forget me " * 2_000, b"keep me " * 2_000
    with Spool(tmp_path) as made:
        array: Any = np.frombuffer(made.put(secret), dtype=np.uint8)
        kept = np.frombuffer(made.put(other), dtype=np.uint8)
        part = array[100:200]
        del array
        gc.collect()
        assert part.tobytes() in secret
        assert secret in held(made)
        del part
        gc.collect()
        assert b"forget me" not in held(made)
        assert kept.tobytes() == other


@pytest.fixture(name="large")
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "LARGE", 0)


@pytest.mark.usefixtures("large")
def test_a_large_run_is_the_same_run(tmp_path: Path) -> None:
    there = paged()
    there.save(tmp_path / "run")
    here = ge.GraphEraser.load(tmp_path / "run")
    base: Any = here.graph_.pages.pages[0].edges
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base.obj, ctypes.Array)
    node = int(here.graph_.train_nodes[3])
    for eraser in (here, there):
        eraser.unlearn(ge.Nodes([node]))
    assert bits(here) == bits(there)
    here.save(tmp_path / "run")
    assert ge.GraphEraser.load(tmp_path / "run").verify().identical
    assert not [name for name in contents(tmp_path / "run") if "tmp" in name]


@pytest.mark.usefixtures("large")
def test_a_graph_from_before_a_request_stays_what_it_was(tmp_path: Path) -> None:
    paged().save(tmp_path / "run")
    eraser = ge.GraphEraser.load(tmp_path / "run")
    before = eraser.graph_
    fingerprint, node = before.fingerprint, int(before.train_nodes[3])
    eraser.unlearn(ge.Nodes([node]))
    eraser.save(tmp_path / "run")
    gc.collect()
    assert ge.Graph.of_pages(before.pages, before.label_kind).fingerprint == fingerprint


def test_a_folder_that_can_not_be_written_to_is_no_obstacle(tmp_path: Path) -> None:
    with Spool(tmp_path / "missing") as made:
        assert made.put(b"abc").tobytes() == b"abc"
