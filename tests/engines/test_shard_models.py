"""All shard models of a run."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapheraser.engines import ShardModels, ShardWeights

MODELS = [ShardWeights(np.arange(1, dtype=np.int32), {}) for _ in range(4)]
SHARDS = st.integers(0, 300)
MAPPINGS = st.dictionaries(SHARDS, st.sampled_from(MODELS), max_size=12)


@given(MAPPINGS, st.lists(st.tuples(st.sets(SHARDS, max_size=4), MAPPINGS), max_size=4))
def test_models_behave_like_a_sorted_dictionary(
    first: dict[int, ShardWeights], changes: list[tuple[set[int], dict[int, ShardWeights]]]
) -> None:
    plain, models = dict(first), ShardModels.of(first)
    versions = [models]
    for gone, new in changes:
        plain = {shard: model for shard, model in plain.items() if shard not in gone} | new
        models = models.changed(gone, new)
        versions.append(models)
        assert [*models.items()] == sorted(plain.items(), key=lambda item: item[0])
        assert models.ids.tolist() == sorted(plain) == [*models]
        assert len(models) == len(plain)
        for earlier in versions:
            _check_lineage(earlier, models)
    assert [*versions[0].items()] == sorted(first.items(), key=lambda item: item[0])


def _check_lineage(earlier: ShardModels, now: ShardModels) -> None:
    """Whatever is another model than there is named, or nothing is said at all."""
    named = now.lineage.since(earlier.lineage.token)
    if named is not None:
        assert [*earlier] == [*now]
        assert {shard for shard in now if now[shard] is not earlier[shard]} <= named


def test_a_change_shares_the_pages_that_it_does_not_touch() -> None:
    before = ShardModels.of(dict.fromkeys(range(1000), MODELS[0]))
    after = before.changed([70], {70: MODELS[1], 999: MODELS[2]})
    other = [number for number in before.pages if after.pages[number] is not before.pages[number]]
    assert other == [70 // 64, 999 // 64]
    assert after.lineage.since(before.lineage.token) == frozenset({70, 999})
    assert after.changed([5], {}).lineage.since(before.lineage.token) is None  # others are there
    assert ShardModels.of(after) is after


def test_a_shard_without_a_model_is_not_there() -> None:
    models = ShardModels.of({3: MODELS[0], 200: MODELS[1]})
    for shard in (0, 4, 100, -1):
        assert shard not in models
        assert models.get(shard) is None
        with pytest.raises(KeyError):
            models[shard]


def test_models_travel_to_other_processes() -> None:
    again = pickle.loads(pickle.dumps(ShardModels.of({3: MODELS[0], 200: MODELS[1]})))
    assert [*again] == [3, 200]
    assert again[200].columns.tolist() == [0]
