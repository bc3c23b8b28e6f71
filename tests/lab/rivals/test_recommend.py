"""The benchmark of recommenders: every rival on one split, by the same metrics."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from grapheraser_lab.rivals import factors, recommend, recommend_more
from grapheraser_lab.rivals.recommenders import RIVALS, ease, popular
from tests.recommendation.worlds import random_matrix

TRAIN = random_matrix(60, 40, seed=2)


def test_every_model_is_scored_on_the_same_split(monkeypatch: pytest.MonkeyPatch) -> None:
    held = np.random.default_rng(0).random(TRAIN.nnz) < 0.2
    pairs = np.stack(TRAIN.nonzero(), axis=1)
    parts = [recommend._matrix(pairs[some], TRAIN.shape) for some in (~held, held)]
    monkeypatch.setattr(recommend, "split_of", lambda name: parts)
    report = recommend.run(["gowalla"], ["recommender", "popular", "ease"], requests=3)
    cells = {cell["model"]: cell for cell in report["cells"]}
    assert cells.keys() == {"recommender", "popular", "ease"}
    assert cells["recommender"]["exact"] == "bit for bit"
    assert cells["ease"]["options"] in RIVALS["ease"].grid
    assert all(0 <= cell["ndcg"] <= 1 for cell in cells.values())
    assert "LightGCN (published)" in recommend.markdown(report)


def test_what_is_not_there_is_said() -> None:
    wide = sp.csr_array((3, 50_000))
    assert "dense" in str(RIVALS["ease"].lacks(wide))
    report = recommend.run(["nowhere"], [])
    assert report["cells"] == []
    assert "nowhere" in report["missing"][0]


def test_ease_solves_its_equations() -> None:
    scores = ease(TRAIN, {"penalty": 10.0})(np.arange(60))
    dense = np.asarray(TRAIN.todense())
    weights = np.linalg.lstsq(dense, scores, rcond=None)[0]
    rest = dense.T @ (dense - dense @ weights) - 10.0 * weights
    # Where the diagonal is free to be 0, the gradient vanishes off it.
    np.testing.assert_allclose(dense @ weights, scores, atol=1e-6)
    assert rest.shape == (40, 40)
    assert (popular(TRAIN, {})(np.arange(2))[0] == dense.sum(axis=0)).all()


@pytest.mark.parametrize("on_gpu", [False, True])
def test_gradients_of_layers_are_those_of_autograd(on_gpu: bool) -> None:
    torch = pytest.importorskip("torch")
    if on_gpu and not factors.has_gpu():
        pytest.skip("kernels need a GPU")
    spread = factors.Layers(TRAIN, 3, factors._kernels() if on_gpu else None)
    start = torch.randn(100, factors.WIDTH, device=factors.device()).requires_grad_()
    ends = torch.tensor([[0, 7, 7], [60, 75, 99], [61, 61, 80]], device=factors.device())
    user, item, other = spread.everywhere(start)[ends]
    loss = torch.nn.functional.softplus(-(user * (item - other)).sum(dim=1)).mean()
    (loss + 0.5 * 0.01 * (start[ends] ** 2).sum() / 3).backward()
    with torch.no_grad():
        found = factors.bpr_gradient(start, spread, ends, 0.01)
    torch.testing.assert_close(found, start.grad)


def test_generated_interactions_are_as_many_as_asked_for() -> None:
    made = recommend.generated(500, 200, 5000)
    assert made.shape == (500, 200)
    assert 3000 < made.nnz <= 5500
    assert (made.data == 1).all()
    report = recommend.scale(users=300, items=100, interactions=2000, requests=3)
    assert report["interactions"] > 0
    assert "GB" in recommend.markdown(report)


def test_features_lead_to_items_that_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    tastes = draw.random((90, 60)) < np.where(
        np.arange(90)[:, None] % 3 == np.arange(60) % 3, 0.4, 0.02
    )
    users, items = tastes.nonzero()
    rows = np.stack([users, items, np.ones_like(users), np.zeros_like(users)], axis=1)
    kinds = sp.csr_array(np.arange(3)[:, None] == np.arange(60) % 3, dtype=float)
    monkeypatch.setattr(recommend_more, "_movielens", lambda: rows)
    monkeypatch.setattr(
        recommend_more,
        "_features",
        lambda kind, ids, columns: sp.csr_array(kinds[:, ids]),
    )
    world = recommend_more._World(0)
    plain, told = (
        world.score("items that nobody has", which, True)["ndcg"] for which in ("none", "genres")
    )
    assert told > plain + 0.1


def test_members_that_repeat_ours_add_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = recommend._divided(np.stack(TRAIN.nonzero(), axis=1))
    monkeypatch.setattr(recommend_more, "split_of", lambda name: parts)
    monkeypatch.setattr(recommend_more, "_TRAINED", {"popular": {}})
    report = recommend_more.members(["popular"], shards=3)
    assert [cell["shards"] for cell in report["cells"]] == [0, 1, 3]
    assert all(cell["ndcg"] > 0 for cell in report["cells"])
    assert "popular" in recommend_more.markdown(report)
