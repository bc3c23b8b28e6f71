"""A shard made ready for the kernels: no place wraps around."""

from __future__ import annotations

import numpy as np
import pytest

from grapheraser.engines import ShardTask, TrainingConfig
from grapheraser.engines.cpu import train, train_shard
from grapheraser.graph import Graph
from grapheraser.models import PRESETS


def test_places_beyond_32_bits_do_not_wrap_around() -> None:
    rows = np.array([0, 5, 33_600_000], dtype=np.int32)
    near, far = (train.places_of(rows, count, 128) for count in (33_554_432, 33_600_001))
    assert near.dtype == np.uint32
    assert far.tolist() == [0, 640, 33_600_000 * 128]


@pytest.mark.slow
def test_wide_places_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).random((9, 5)) * (np.arange(45).reshape(9, 5) % 3 > 0)
    graph = Graph.from_arrays(x, [[0, 1, 2], [3, 4, 5]], np.arange(9) % 2, num_classes=2)
    task, config = ShardTask(0, graph, 1), TrainingConfig(PRESETS["mlp"], epochs=3)
    expected = train_shard(task, config).digest
    monkeypatch.setattr(
        train, "places_of", lambda rows, count, width: rows.astype(np.int64) * width
    )
    assert train_shard(task, config).digest == expected
