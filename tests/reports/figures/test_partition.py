from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from grapheraser.errors import MissingExtraError
from grapheraser.graph import Graph
from grapheraser.partition import partition_graph
from grapheraser.reports.figures.partition import draw_partition, shard_colours

pytest.importorskip("matplotlib")


def _graph() -> Graph:
    rng = np.random.Generator(np.random.PCG64(0))
    pairs = rng.integers(0, 40, size=(60, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return Graph.from_arrays(np.eye(40), pairs.T, np.arange(40) % 3, test=[1, 2], name="drawn")


@pytest.mark.parametrize("method", ["blpa", "random"])
@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_partition_is_drawn_the_same_way_twice(
    tmp_path: Path, method: str, suffix: str, magic: bytes
) -> None:
    partition = partition_graph(_graph(), method, num_shards=4)
    first = draw_partition(_graph(), partition, tmp_path / f"a.{suffix}").read_bytes()
    again = draw_partition(_graph(), partition, tmp_path / f"b.{suffix}").read_bytes()
    assert first.startswith(magic)
    assert first == again


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    partition = partition_graph(_graph(), "random", num_shards=4)
    for module in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"\.\[plots\]"):
        draw_partition(_graph(), partition, tmp_path / "a.png")


def test_neighbouring_shards_have_different_colours() -> None:
    colours = shard_colours(100)
    assert len(np.unique(colours.round(3), axis=0)) == 100
