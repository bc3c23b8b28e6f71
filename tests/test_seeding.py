"""Random numbers are functions of where they are used."""

from __future__ import annotations

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from grapheraser.seeding import derive, generator, keyed_hash

PATHS = st.lists(st.one_of(st.integers(0, 5), st.text("ab", max_size=2)), max_size=3)


def test_a_derived_seed_is_pinned() -> None:
    expected = hashlib.sha256(b'[0,"train",7]').digest()[:8]
    assert derive(0, "train", 7) == int.from_bytes(expected, "little")


@given(st.integers(0, 3), PATHS, st.integers(0, 3), PATHS)
def test_different_places_have_different_seeds(
    seed: int, path: list[str | int], other_seed: int, other: list[str | int]
) -> None:
    same = (seed, path) == (other_seed, other)
    assert (derive(seed, *path) == derive(other_seed, *other)) == same


def test_generators_of_one_place_agree_and_share_nothing() -> None:
    first = generator(1, "here")
    first.random(100)
    assert generator(1, "here").random() != first.random()
    assert generator(1, "here").random() == generator(1, "here").random()
    assert generator(1, "here").random() != generator(1, "there").random()


def test_the_global_generator_is_left_alone() -> None:
    before = np.random.get_state()  # noqa: NPY002
    generator(0, "x").random(5)
    after = np.random.get_state()  # noqa: NPY002
    assert str(before) == str(after)


def splitmix_rounds(value: int, key: int) -> int:
    """The hash in plain Python integers."""
    mask = 2**64 - 1
    z = (value * 0x9E3779B97F4A7C15 + key) & mask
    for _ in range(2):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z = ((z ^ (z >> 31)) + 0x9E3779B97F4A7C15) & mask
    return z


@given(st.lists(st.integers(0, 2**62), min_size=1), st.integers(0, 2**64 - 1))
def test_the_keyed_hash_equals_plain_integers(ids: list[int], key: int) -> None:
    expected = [splitmix_rounds(value, key) for value in ids]
    assert keyed_hash(np.array(ids), key).tolist() == expected


def test_consecutive_ids_fall_evenly_into_shards() -> None:
    shards = keyed_hash(np.arange(20_000), derive(0, "partition")) % np.uint64(20)
    counts = np.bincount(shards.astype(np.int64), minlength=20)
    assert stats.chisquare(counts).pvalue > 0.001
