"""Run folders that a stranger made: no crash, no hang and no raw error, whatever is in them."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from tests.store.crafted import Folder, crafted
from tests.store.edits import all_edits
from tests.store.worker import Worker

# Indexes are divided, so that their parts are edited too.
pytestmark = pytest.mark.usefixtures("divided_indexes")

# Seconds of the short form, per kind of run; and how long one folder may take.
SHORT, ONE = 3.0, 60.0
RUNS: dict[str, dict[str, Any]] = {
    "pooled": {"num_shards": 3},
    "learned": {"num_shards": 3, "aggregation": "learned", "model": "sage"},
    "closed-form": {"model": "closed-form", "num_shards": 1},
    "links": {"members": "both", "num_shards": 2, "width": 4},
}


def base(kind: str, folder: Path) -> Path:
    """A small run with two receipts."""
    rng = np.random.default_rng(0)
    n = 60
    edges = rng.integers(0, n, (2, 2 * n))
    graph = ge.Graph.from_arrays(
        (rng.random((n, 12)) < 0.3).astype(np.float32),
        edges[:, edges[0] != edges[1]],
        rng.integers(0, 3, n),
        test=np.arange(48, n),
    )
    options = {**RUNS[kind], "epochs": 2} if kind != "closed-form" else RUNS[kind]
    eraser = ge.LinkEraser(**options) if kind == "links" else ge.GraphEraser(**options)
    eraser.fit(graph)
    for node in (3, 4):
        eraser.unlearn(ge.Nodes([node]))
    eraser.save(folder / "base")
    return folder / "base"


def problems(kind: str, folder: Path, seconds: float | None) -> list[str]:
    """What goes wrong with edits of a run in random order, for so long."""
    origin = base(kind, folder)
    edits = all_edits(Folder.read(origin))
    random.Random(16).shuffle(edits)
    found = []
    with Worker(ONE) as worker:
        assert worker.outcome(crafted(origin, folder / "copy", lambda _: None)) == "fine"
        end = None if seconds is None else time.monotonic() + seconds
        for what, edit in edits:
            if end is not None and time.monotonic() > end:
                break
            outcome = worker.outcome(crafted(origin, folder / "copy", edit))
            if outcome != "fine" and not outcome.startswith("refused: "):
                found.append(f"{what}: {outcome}")
    return found


@pytest.mark.parametrize("kind", ["pooled", "links"])
def test_a_crafted_run_is_refused_or_used_without_harm(kind: str, tmp_path: Path) -> None:
    assert problems(kind, tmp_path, SHORT) == []


@pytest.mark.long
@pytest.mark.parametrize("kind", RUNS)
def test_no_crafted_run_does_harm(kind: str, tmp_path: Path) -> None:
    assert problems(kind, tmp_path, None) == []
