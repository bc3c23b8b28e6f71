"""The counting members share their counts, and any of them can be left out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from grapheraser.aggregation.members.counting import NAMES, Counting
from tests.aggregation.members.oracle import GRAPHS, ensemble_of, known, sample_of

SUBSETS = [names for size in (1, 2, 3) for names in combinations(NAMES, size)]


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("names", SUBSETS, ids=",".join)
def test_a_member_left_out_keeps_nothing(names: tuple[str, ...], kind: str) -> None:
    ensemble = ensemble_of(GRAPHS[kind])
    fitted = Counting(names).fit(ensemble, sample_of(ensemble))
    expected = {"classes"}
    expected |= {"words"} if "words" in names else set()
    expected |= {"sums"} if "words" in names and kind == "dense" else set()
    expected |= {"pairs"} if "edges" in names else set()
    assert set(fitted.tensors) == expected
    assert fitted.names == names


@pytest.mark.parametrize("names", SUBSETS, ids=",".join)
def test_evidence_is_that_of_each_member(names: tuple[str, ...]) -> None:
    """Labels guess with words where there are any, so those two are compared as a pair."""
    ensemble = ensemble_of(GRAPHS["hub"])
    sample = sample_of(ensemble)
    fitted = Counting(names).fit(ensemble, sample)
    for i, name in enumerate(names):
        with_words = ("words", "labels") if name == "labels" and "words" in names else (name,)
        alone = Counting(with_words).fit(ensemble, sample)
        every = np.arange(ensemble.graph.num_nodes)
        for mine, its in (
            (fitted.evidence(ensemble, every), alone.evidence(ensemble, every)),
            (fitted.held_out(ensemble, sample), alone.held_out(ensemble, sample)),
        ):
            assert mine[:, i].tobytes() == its[:, -1].tobytes()


@pytest.mark.parametrize("kind", GRAPHS)
def test_counts_are_whole_numbers_that_come_back(kind: str) -> None:
    ensemble = ensemble_of(GRAPHS[kind])
    fitted = Counting().fit(ensemble, sample_of(ensemble))
    assert (
        fitted.classes.tolist()
        == np.bincount(
            list(known(ensemble.graph).values()), minlength=ensemble.graph.num_classes
        ).tolist()
    )
    assert all(tensor.dtype.kind == "i" for tensor in fitted.tensors.values())
    back = Counting().restore(fitted.tensors)
    every = np.arange(ensemble.graph.num_nodes)
    assert back.evidence(ensemble, every).tobytes() == fitted.evidence(ensemble, every).tobytes()
    for name, tensor in fitted.tensors.items():
        assert back.tensors[name].dtype == tensor.dtype
        assert back.tensors[name].tobytes() == tensor.tobytes()
