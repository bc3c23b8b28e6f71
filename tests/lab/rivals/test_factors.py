"""Trained factors: what is drawn, which way they go, and what shards of interactions hold."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from grapheraser_lab.rivals import factors
from tests.recommendation.worlds import random_matrix

torch = pytest.importorskip("torch")
TRAIN = random_matrix(60, 40, seed=2)


def test_triples_are_an_item_that_the_user_has_and_one_that_they_do_not() -> None:
    draw = torch.Generator().manual_seed(0)
    users, items, others = factors.Known.of(TRAIN).triples(4000, draw).numpy()
    dense = TRAIN.toarray()
    assert dense[users, items].all()
    assert not dense[users, others].any()
    counts = np.bincount(users, minlength=60)  # alike, however many items they have
    assert counts.min() > 30
    assert counts.max() < 120


@pytest.mark.parametrize("layers", [0, 3])
def test_the_gradient_is_that_of_the_loss(layers: int) -> None:
    spread = factors.Layers(TRAIN, layers)
    start = torch.randn(100, factors.WIDTH, requires_grad=True)
    ends = factors.Known.of(TRAIN).triples(50, torch.Generator().manual_seed(1))
    ends = ends + torch.tensor([[0], [60], [60]])
    user, item, other = spread.everywhere(start)[ends]
    ahead = (user * (item - other)).sum(dim=1)
    penalty = start[ends].square().sum() / 50
    (torch.nn.functional.softplus(-ahead).mean() + 0.1 / 2 * penalty).backward()
    found = factors.bpr_gradient(start.detach(), spread, ends, 0.1)
    torch.testing.assert_close(found, start.grad, rtol=1e-4, atol=1e-6)


def test_layers_are_neighbours_by_the_roots_of_both_degrees() -> None:
    both = np.zeros((100, 100))
    both[:60, 60:] = TRAIN.toarray()
    both[60:, :60] = TRAIN.toarray().T
    degrees = np.maximum(both.sum(axis=0), 1)
    step = both / np.sqrt(np.outer(degrees, degrees))
    start = np.random.default_rng(0).normal(size=(100, 3))
    expected = sum(np.linalg.matrix_power(step, n) @ start for n in range(4)) / 4
    layers = factors.Layers(TRAIN, 3)
    found = layers.everywhere(torch.tensor(start, dtype=torch.float32))
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)


def test_training_finds_what_two_groups_like() -> None:
    group = np.arange(40) % 2
    train = sp.csr_array((group[:, None] == group[:20]).astype(float))
    train.data[np.random.default_rng(0).random(train.nnz) < 0.2] = 0
    train.eliminate_zeros()
    options = {"epochs": 60, "decay": 1e-4, "shards": 2}
    for fit in (factors.bpr_mf, factors.lightgcn, factors.receraser):
        scores = fit(train, options)(np.arange(40))
        same = group[:, None] == group[:20]
        assert scores[same].mean() > scores[~same].mean()


def test_shards_of_interactions_are_balanced_and_near() -> None:
    pairs = np.stack(TRAIN.nonzero(), axis=1)
    draw = np.random.default_rng(0)
    ends = (draw.normal(size=(60, 4)), draw.normal(size=(40, 4)))
    of = factors.balanced(pairs, ends, 4, seed=0)
    counts = np.bincount(of, minlength=4)
    assert counts.sum() == len(pairs)
    assert counts.max() <= -(-len(pairs) // 4)
