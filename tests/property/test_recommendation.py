"""Random sequences of requests and changes against a fresh fit from the raw remaining input."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import grapheraser as ge
from grapheraser.store import aggregator_digest
from tests.recommendation.worlds import listed, random_matrix

Raw = tuple[dict[tuple[Any, Any], float], list[Any], list[Any]]


def afresh(raw: Raw, arguments: dict[str, Any], users: list[Any]) -> tuple[str, str, Any]:
    """Fit the raw input in this process; return digests, and recommendations."""
    interactions, known_users, known_items = raw
    table = listed(interactions)
    if arguments.get("scale") is None:
        del table["weight"]
    run = ge.Recommender(**arguments).fit(table, users=known_users, items=known_items)
    return digests(run, users)


def digests(run: ge.Recommender, users: list[Any]) -> tuple[str, str, Any]:
    state = run._snapshot.state
    found, scores = run.recommend(users, top=7, return_scores=True)
    return (
        run.graph_.fingerprint,
        aggregator_digest(state.aggregator.tensors),
        (
            found.tolist(),
            scores.tobytes(),
        ),
    )


def step(draw: np.random.Generator, raw: Raw, weighted: bool, name: Any) -> tuple[Any, Raw]:
    """Draw a request or a change; return it, and the raw input after it."""
    interactions, users, items = dict(raw[0]), list(raw[1]), list(raw[2])
    choice = int(draw.integers(0, 6))
    pairs = sorted(interactions)
    if choice == 0 and len(users) > 8:
        user = users.pop(int(draw.integers(len(users))))
        gone = {pair: w for pair, w in interactions.items() if pair[0] != user}
        return ge.Users([user]), (gone, users, items)
    if choice == 1 and len(items) > 8:
        item = items.pop(int(draw.integers(len(items))))
        gone = {pair: w for pair, w in interactions.items() if pair[1] != item}
        return ge.Items([item]), (gone, users, items)
    if choice in (2, 3):
        some = [pairs[at] for at in draw.choice(len(pairs), 2, replace=False)]
        for pair in some:
            del interactions[pair]
        return ge.Interactions(some), (interactions, users, items)
    if choice == 4:
        user, item = name("u", int(draw.integers(1000, 2000))), name("i", int(draw.integers(0, 60)))
        users, items = sorted({*users, user}), sorted({*items, item})
        weight = float(draw.integers(1, 6)) if weighted else 1.0
        if (user, item) not in interactions:
            interactions[user, item] = weight
            change = ge.AddInteractions([(user, item)], weight=[weight] if weighted else None)
            return change, (interactions, users, items)
    user = name("u", int(draw.integers(3000, 9000)))
    if user in users:
        return None, raw
    return ge.AddUsers([user]), (interactions, sorted({*users, user}), items)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_sequences_end_in_the_bits_of_a_fresh_fit(named: bool, weighted: bool, seed: int) -> None:
    draw = np.random.default_rng([seed, named, weighted])
    matrix = random_matrix(30, 24, seed)

    def name(side: str, number: int) -> Any:
        return f"{side}{number}" if named else number

    raw: Raw = (
        {
            (name("u", int(u)), name("i", int(i))): float(draw.integers(1, 6)) if weighted else 1.0
            for u, i in zip(*matrix.nonzero(), strict=True)
        },
        sorted(name("u", u) for u in range(30)),
        sorted(name("i", i) for i in range(24)),
    )
    arguments: dict[str, Any] = {"sample": 20, "seed": seed, "neighbours": 16}
    arguments |= {"scale": 5.0} if weighted else {}
    table = listed(raw[0])
    if not weighted:
        del table["weight"]
    run = ge.Recommender(**arguments).fit(table, users=raw[1], items=raw[2])
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        for number in range(12):
            change, after = step(draw, raw, weighted, name)
            if change is None:
                continue
            forgets = change.kind.name in run.task.kinds
            receipt = run.unlearn(change) if forgets else run.update(change)
            raw = after
            assert receipt.statement == "exact"
            if number % 3 == 2:
                users = raw[1][:5]
                expected = other.submit(afresh, raw, arguments, users).result()
                assert digests(run, users) == expected
    assert run.verify().identical


@pytest.mark.long
def test_a_thousand_users_forgotten_one_by_one_equal_a_fresh_fit() -> None:
    matrix = random_matrix(1500, 400, 3, per_user=12)
    run = ge.Recommender().fit(matrix)
    gone = np.random.default_rng(5).permutation(1500)[:1000]
    for user in gone.tolist():
        run.unlearn(ge.Users([user]))
    left = np.setdiff1d(np.arange(1500), gone)
    fresh = ge.Recommender().fit(sp.csr_array(matrix[left]), users=left)
    users = left.tolist()
    assert digests(run, users) == digests(fresh, users)
