"""Recommender: its answers against plain formulas, and what it forgets."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.errors import (
    EmptyEnsembleError,
    GraphError,
    NotFittedError,
    ParameterError,
    UnknownEdgeError,
    UnknownNodeError,
)
from grapheraser.recommendation.answers import fitted_of
from tests.recommendation.worlds import plain_scores, random_matrix

MATRIX = random_matrix(40, 30)


@pytest.fixture(scope="module")
def fitted() -> ge.Recommender:
    return ge.Recommender().fit(MATRIX)


def test_recommendations_are_those_of_the_plain_formulas(fitted: ge.Recommender) -> None:
    weights = list(fitted.weights_.values())
    found, scores = fitted.recommend(range(40), top=8, return_scores=True)
    assert found.shape == scores.shape == (40, 8)
    for user in range(40):
        expected = plain_scores(MATRIX, user, weights)
        expected[MATRIX[[user]].indices] = -np.inf
        order = np.lexsort((np.arange(30), -np.round(expected, 9)))[:8]
        np.testing.assert_allclose(scores[user], np.exp(expected[order]), rtol=1e-6)
        np.testing.assert_allclose(expected[found[user]], expected[order], atol=1e-8)


def test_blocks_of_several_steps_are_those_of_the_plain_formulas() -> None:
    blocks = ((0.0, 1), (0.5, 2), (0.3, 8))
    run = ge.Recommender(blocks=blocks, ridge=2.0, item_power=0.7, damping=0.0).fit(MATRIX)
    weights = list(run.weights_.values())
    found, scores = run.recommend(range(0, 40, 9), top=4, return_scores=True)
    for at, user in enumerate(range(0, 40, 9)):
        expected = plain_scores(
            MATRIX, user, weights, blocks=blocks, ridge=2.0, item_power=0.7, damping=0.0
        )
        np.testing.assert_allclose(scores[at], np.exp(expected[found[at]]), rtol=1e-6)


def test_only_the_closest_neighbours_count_where_there_are_many() -> None:
    draw = np.random.default_rng(7)
    near = np.ones((2100, 6))  # more than are looked at, and all have the first item
    near[:, 1:] = draw.random((2100, 5)) < 0.4
    rest = np.delete(near, 7, axis=0)
    run = ge.Recommender(sample=8).fit(sp.csr_array(near))
    run.unlearn(ge.Users([7]))
    fresh = ge.Recommender(sample=8).fit(sp.csr_array(rest), users=np.delete(np.arange(2100), 7))
    assert fresh.weights_ == run.weights_
    assert (fresh.recommend([0, 1, 2099]) == run.recommend([0, 1, 2099])).all()


def test_seen_items_come_only_where_they_are_asked_for(fitted: ge.Recommender) -> None:
    own = set(MATRIX[[3]].indices.tolist())
    assert not own & set(fitted.recommend([3], top=30)[0].tolist())
    assert own & set(fitted.recommend([3], exclude_seen=False)[0].tolist())


def test_items_to_choose_from_keep_their_order(fitted: ge.Recommender) -> None:
    every = fitted.recommend([3, 13], top=30, exclude_seen=False)
    scores = fitted.recommend([3, 13], top=30, exclude_seen=False, return_scores=True)[1]
    stock = [9, 2, 17, 28, 11]
    found, own = fitted.recommend(
        [3, 13], top=6, among=stock, exclude_seen=False, return_scores=True
    )
    for n in (0, 1):
        kept = np.isin(every[n], stock)
        assert found[n].tolist() == [*every[n][kept].tolist(), -1]
        assert own[n].tolist() == [*scores[n][kept].tolist(), 0.0]
    seen = np.append(MATRIX[[3]].indices, -1)
    assert set(fitted.recommend([3], top=6, among=stock)[0]) == {*stock, -1} - {*seen[:-1]}
    items = MATRIX[[3]].indices
    new = fitted.recommend_new(items, top=2, among=stock)
    assert set(new) <= set(stock) - set(items.tolist())
    with pytest.raises(ParameterError, match="'among' must name an item"):
        fitted.recommend([3], among=[])
    with pytest.raises(UnknownNodeError, match="item 77"):
        fitted.recommend([3], among=[77])


def test_features_of_items_lead_to_items_that_nobody_has() -> None:
    users, items = (ends.astype(str) for ends in MATRIX.nonzero())
    kept = items != "4"
    taken = {
        "user": [*users[kept], *("kind:a" for _ in range(6)), *("kind:b" for _ in range(6))],
        "item": [*items[kept], *map(str, range(6)), *map(str, range(20, 26))],
    }
    run = ge.Recommender().fit(taken)
    fans = {user: sum(str(i) in items[users == user] for i in (0, 1, 2, 3, 5)) for user in users}
    fan = max(fans, key=lambda user: fans[user])
    found, scores = run.recommend([fan], top=30, exclude_seen=False, return_scores=True)
    assert scores[0][found[0] == "4"] > 0
    receipt = run.unlearn(ge.Interactions([("kind:a", "4")]))
    assert receipt.parts[0].in_words == "forget interaction kind:a-4"
    found, scores = run.recommend([fan], top=30, exclude_seen=False, return_scores=True)
    assert scores[0][found[0] == "4"] == 0


def test_a_user_who_is_not_in_it_gets_what_one_with_these_items_gets() -> None:
    rest = ge.Recommender(seed=1).fit(MATRIX[1:], users=range(1, 40))
    expected = ge.Recommender(seed=1).fit(MATRIX)
    items = MATRIX[[0]].indices
    weights = list(rest.weights_.values())
    found, scores = rest.recommend_new(items, top=5, return_scores=True)
    both = sp.csr_array(sp.vstack([MATRIX[1:], MATRIX[:1]]))
    # Degrees are those of the run, which the new user is no part of.
    assert found.shape == (5,)
    assert not set(found) & set(items)
    assert expected.recommend([0], top=5).shape == (1, 5)
    assert np.isfinite(scores).all()
    assert len(weights) == 2
    assert both.shape == MATRIX.shape


def test_few_items_are_padded_and_nobody_gets_popular_ones() -> None:
    matrix = sp.csr_array(np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]))
    run = ge.Recommender().fit(matrix)
    found, scores = run.recommend([2, 0], top=6, return_scores=True)
    assert found[0].tolist() == [0, 1, 2, 3, -1, -1]  # by popularity, then by id
    assert found[1].tolist() == [2, 3, -1, -1, -1, -1]
    assert scores[0].tolist() == [0.0] * 6
    assert scores[1, 0] > 0
    run.unlearn(ge.Users([2]))
    with pytest.raises(UnknownNodeError, match="user 2"):
        run.recommend([2])


def test_similar_items_share_users(fitted: ge.Recommender) -> None:
    found, scores = fitted.similar([4], top=3, return_scores=True)
    dense = np.asarray(MATRIX.todense())
    users, items = dense.sum(axis=1), np.maximum(dense.sum(axis=0), 1)
    counts = dense[:, 4] / np.sqrt(np.maximum(users, 1))
    expected = (dense.T @ counts / counts.sum() + 1e-3) / np.sqrt(items)
    expected[4] = -1
    order = np.lexsort((np.arange(30), -np.round(expected, 12)))[:3]
    np.testing.assert_allclose(np.sort(scores[0]), np.sort(expected[order]), rtol=1e-9)
    assert 4 not in found[0]


def test_reasons_are_the_users_items_and_sum_to_one(fitted: ge.Recommender) -> None:
    (item,) = fitted.recommend([5], top=1)[0]
    reasons = fitted.explain(5, item)
    assert {reason.item for reason in reasons.through} <= set(MATRIX[[5]].indices.tolist())
    assert sum(reason.share for reason in reasons.through) == pytest.approx(1.0)
    _, scores = fitted.recommend([5], top=1, return_scores=True)
    assert reasons.score == pytest.approx(scores[0, 0])
    assert reasons.to_dict()["item"] == item


def test_scores_are_those_of_their_definitions(fitted: ge.Recommender) -> None:
    test = [(0, 1), (0, 29), (7, 3)]
    found = fitted.recommend([0, 7], top=10)
    score = fitted.score(test, k=10)
    hits = [np.isin(found[0], [1, 29]), np.isin(found[1], [3])]
    gain = 1 / np.log2(np.arange(2, 12))
    assert score.recall == pytest.approx((hits[0].sum() / 2 + hits[1].sum()) / 2)
    ideal = [gain[:2].sum(), gain[0]]
    assert score.ndcg == pytest.approx(
        np.mean([h @ gain / i for h, i in zip(hits, ideal, strict=False)])
    )
    assert score.hit_rate == pytest.approx(np.mean([h.any() for h in hits]))
    assert score.mrr == pytest.approx(np.mean([h.any() / (h.argmax() + 1) for h in hits]))
    assert score.coverage == len(np.unique(found)) / 30
    assert score.users == 2
    assert score.k == 10
    table = {"user": [0, 0, 7], "item": [1, 29, 3]}
    matrix = sp.csr_array((np.ones(3), ([0, 0, 7], [1, 29, 3])), shape=(40, 30))
    assert fitted.score(table, k=10) == fitted.score(matrix, k=10) == score


def test_every_form_of_input_makes_the_same_run(tmp_path: Path) -> None:
    users, items = MATRIX.nonzero()
    declared: dict[str, Any] = {"users": range(40), "items": range(30)}
    frame = pa.table({"user": users, "item": items})
    lines = [f"{user},{item}" for user, item in zip(users, items, strict=True)]
    (tmp_path / "i.csv").write_text("\n".join(["user,item", *lines]))
    pyarrow.parquet.write_table(frame, tmp_path / "i.parquet")
    ends = np.stack([users, items + 100])
    ids = np.concatenate([np.arange(40), np.arange(100, 130)])
    y = (ids >= 100).astype(int)
    graph = ge.Graph.from_arrays(np.zeros((70, 1)), ends, y, ids=ids, num_classes=2)
    expected = ge.Recommender().fit(MATRIX)
    lazy = SimpleNamespace(collect=lambda: frame)
    for table in (frame, lazy, tmp_path / "i.csv", tmp_path / "i.parquet", frame.to_pydict()):
        run = ge.Recommender().fit(table, **declared)
        assert run.graph_ == expected.graph_
        assert run.weights_ == expected.weights_
    from_graph = ge.Recommender().fit(graph)
    assert from_graph.num_users_ == 40
    assert from_graph.num_items_ == 30


def test_names_are_ids_too(tmp_path: Path) -> None:
    users, items = MATRIX.nonzero()
    table = {"user": [f"u{u}" for u in users], "item": [f"i{i}" for i in items]}
    run = ge.Recommender().fit(table)
    found = run.recommend(["u5"], top=4)
    assert found.shape == (1, 4)
    assert all(name.startswith("i") for name in found[0])
    receipt = run.unlearn(ge.Users(["u5"]))
    assert receipt.parts[0].about["forget"] == "user"
    assert receipt.parts[0].about["names"] == ["u5"]
    receipt.parts[0].check(None)
    run.unlearn(ge.Interactions([("u6", table["item"][table["user"].index("u6")])]))
    run.update(ge.AddInteractions([("u5", "i3"), ("new", "i3")]))
    assert run.num_users_ == 41
    run.save(tmp_path / "run")
    loaded = ge.Recommender.load(tmp_path / "run")
    assert loaded.verify().identical
    assert loaded.recommend(["new"]).tolist() == run.recommend(["new"]).tolist()


def test_receipts_speak_of_users_items_and_interactions() -> None:
    run = ge.Recommender().fit(MATRIX)
    pair = (8, int(MATRIX[[8]].indices[0]))
    receipt = run.unlearn([ge.Users([7]), ge.Items([29]), ge.Interactions([pair])])
    assert receipt.statement == "exact"
    assert {part.in_words for part in receipt.parts} == {
        "forget user 7",
        "forget item 29",
        f"forget interaction {pair[0]}-{pair[1]}",
    }
    assert receipt.forgotten["users"] == receipt.forgotten["items"] == 1
    assert receipt.forgotten["interactions"] == 1
    assert receipt.forgotten["nodes"] == 0
    for part in receipt.parts:
        part.check(None)
        assert (part.opening is None) == (part.about["forget"] == "interaction")
    added = run.update([ge.AddUsers([99]), ge.AddInteractions([(100, 2)])])
    assert added.counts["added_users"] == 2
    assert added.counts["added_interactions"] == 1
    assert run.verify().identical


def test_a_universe_that_was_found_in_a_table_is_named() -> None:
    users, items = MATRIX.nonzero()
    run = ge.Recommender().fit({"user": users, "item": items})
    assert run.exactness_["statement"] == "exact given schema"
    assert "users=[...]" in run.exactness_["reason"]


def test_weights_count_on_their_scale() -> None:
    draw = np.random.default_rng(4)
    matrix = MATRIX.copy()
    matrix.data = draw.integers(1, 6, matrix.nnz).astype(float)
    run = ge.Recommender(scale=5.0).fit(matrix)
    weights = list(run.weights_.values())
    found = run.recommend(range(40), top=5)
    for user in (0, 11, 39):
        expected = plain_scores(matrix, user, weights, scale=5.0)
        expected[matrix[[user]].indices] = -np.inf
        np.testing.assert_allclose(expected[found[user]], -np.sort(-expected)[:5], atol=1e-8)
    run.update(ge.AddInteractions([(0, int(matrix[[0]].indices[0]))], weight=[5.0]))
    matrix[0, int(matrix[[0]].indices[0])] = 5.0
    again = ge.Recommender(scale=5.0).fit(matrix)
    assert again.graph_ == run.graph_
    assert again.weights_ == run.weights_


@pytest.mark.parametrize(
    ("world", "message"),
    [
        (2 * MATRIX, "no 'scale'"),
        (sp.csr_array((3, 3)), "no interactions"),
        ({"user": [1], "thing": [2]}, "no column 'item'"),
        ({"user": ["a"], "item": [2]}, "both be numbers"),
        ({"user": [1.5], "item": [2]}, "numbers or names"),
        ({"user": [-1], "item": [2]}, r"2\*\*62"),
        ("nowhere.csv", "no such file"),
        (7, "must be a matrix"),
    ],
)
def test_worlds_that_make_no_sense_are_refused(world: object, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        ge.Recommender().fit(world)


@pytest.mark.parametrize(
    "arguments",
    [
        {"item_power": -1},
        {"blocks": ()},
        {"blocks": ((0.5, 0),)},
        {"blocks": 7},
        {"ridge": 0},
        {"scale": 0},
        {"sample": -1},
        {"neighbours": 0},
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=next(iter(arguments))):
        ge.Recommender(**arguments).fit(MATRIX)  # type: ignore[arg-type]


def test_bad_requests_change_nothing() -> None:
    run = ge.Recommender().fit(MATRIX)
    before = run.graph_
    with pytest.raises(UnknownNodeError, match="user 70"):
        run.unlearn(ge.Users([70]))
    missing = next(i for i in range(30) if i not in MATRIX[[0]].indices)
    with pytest.raises(UnknownEdgeError, match=f"user 0-item {missing}"):
        run.unlearn(ge.Interactions([(0, missing)]))
    with pytest.raises(ParameterError, match="Users, Items"):
        run.unlearn(ge.Nodes([0]))  # a node is no user
    with pytest.raises(EmptyEnsembleError, match="last"):
        run.unlearn(ge.Users(range(40)))
    with pytest.raises(GraphError, match="there already"):
        run.update(ge.AddInteractions([(0, int(MATRIX[[0]].indices[0]))]))
    with pytest.raises(ParameterError, match="no part"):
        run.update(ge.AddInteractions([(0, 99)], weight=[1.0]))
    assert run.graph_ is before
    assert not run.receipts_
    receipt = run.unlearn(ge.Users([3, 70]), missing="skip")
    assert receipt.counts["skipped"] == 1
    assert receipt.skipped[0].kind.name == "users"
    with pytest.raises(NotFittedError):
        ge.Recommender().recommend([0])


def test_few_of_many_users_are_neighbours_by_their_hashes() -> None:
    run = ge.Recommender(neighbours=10).fit(MATRIX)
    everybody = ge.Recommender().fit(MATRIX)
    assert (run.recommend(range(40)) != everybody.recommend(range(40))).any()
    run.unlearn(ge.Users([0, 1]))
    rest = ge.Recommender(neighbours=10).fit(MATRIX[2:], users=range(2, 40))
    assert rest.graph_ == run.graph_
    assert rest.weights_ == run.weights_
    assert (rest.recommend(range(2, 40)) == run.recommend(range(2, 40))).all()


def test_most_of_many_users_leave_what_cases_say_as_it_is() -> None:
    matrix = random_matrix(900, 60, 5, per_user=4)
    run = ge.Recommender(neighbours=64, sample=24).fit(matrix)
    judged_again = []
    gone = np.random.default_rng(1).permutation(900)[:80]
    for user in gone.tolist():
        before = fitted_of(run._snapshot).cases
        run.unlearn(ge.Users([user]))
        after = fitted_of(run._snapshot).cases
        assert before is not None
        assert after is not None
        kept = {id(told) for told in before.told}
        judged_again.append(sum(id(told) not in kept for told in after.told))
    left = np.setdiff1d(np.arange(900), gone)
    fresh = ge.Recommender(neighbours=64, sample=24).fit(sp.csr_array(matrix[left]), users=left)
    assert fresh.weights_ == run.weights_
    assert (fresh.recommend(left) == run.recommend(left)).all()
    assert np.median(judged_again) < 6


def timed_table(seed: int = 0) -> dict[str, NDArray[Any]]:
    users, items = MATRIX.nonzero()
    times = 1.7e9 + np.random.default_rng(seed).integers(-(10**7), 10**6, len(users))
    return {"user": users, "item": items, "time": times}


TIMED: dict[str, Any] = {"now": 1.7e9, "half_life": 2e6, "damping": 0.0}


def test_popularity_of_late_halves_with_every_half_life() -> None:
    table = timed_table()
    run = ge.Recommender(**TIMED).fit(table, users=range(41), items=range(30))
    ages = np.maximum(1.7e9 - table["time"], 0).astype(np.float32)
    late = np.bincount(table["item"], 0.5 ** (ages / 2e6), minlength=30)
    assert list(run.weights_)[-2:] == ["popularity", "popularity of late"]
    *pool, of_late = run.weights_.values()
    for user in (0, 13, 39):
        expected = plain_scores(MATRIX, user, pool, damping=0.0) + of_late * np.log1p(late)
        expected[MATRIX[[user]].indices] = -np.inf
        found, scores = run.recommend([user], top=5, return_scores=True)
        np.testing.assert_allclose(scores[0], np.exp(-np.sort(-expected)[:5]), rtol=1e-5)
        np.testing.assert_allclose(expected[found[0]], -np.sort(-expected)[:5], atol=1e-5)
    # Who has nothing is recommended what was popular of late.
    np.testing.assert_allclose(late[run.recommend([40], top=6)[0]], -np.sort(-late)[:6])


def test_times_are_forgotten_corrected_and_kept(tmp_path: Path) -> None:
    table = timed_table()
    run = ge.Recommender(**TIMED).fit(table, users=range(40), items=range(30))
    gone = table["user"] == 7
    run.unlearn(ge.Users([7]))
    run.unlearn([ge.Items([3]), ge.Interactions([(8, int(MATRIX[[8]].indices[-1]))])])
    gone |= (table["item"] == 3) | (
        (table["user"] == 8) & (table["item"] == MATRIX[[8]].indices[-1])
    )
    changed = int(np.flatnonzero(table["user"] == 9)[0])
    pair = (int(table["user"][changed]), int(table["item"][changed]))
    run.update(ge.AddInteractions([pair], time=["2023-11-14T22:13:19"]))
    table["time"][changed] = 1.7e9 - 1
    run.update(ge.AddInteractions([(90, 70), (90, 4)], time=[1.7e9 + 5, 1.6e9]))
    rest = {name: column[~gone] for name, column in table.items()}
    new: dict[str, Any] = {"user": [90, 90], "item": [70, 4], "time": [1.7e9 + 5, 1.6e9]}
    rest = {name: np.append(column, new[name]) for name, column in rest.items()}
    left: Any = [*range(7), *range(8, 40), 90]
    items: Any = [*range(3), *range(4, 30), 70]
    fresh = ge.Recommender(**TIMED).fit(rest, users=left, items=items)
    assert fresh.graph_ == run.graph_
    assert fresh.weights_ == run.weights_
    assert (fresh.recommend(left) == run.recommend(left)).all()
    run.save(tmp_path / "run")
    loaded = ge.Recommender.load(tmp_path / "run")
    assert loaded.verify().identical
    assert (loaded.recommend(left) == run.recommend(left)).all()
    dates = rest | {"time": np.asarray(rest["time"], dtype="datetime64[s]")}
    same = ge.Recommender(**TIMED | {"now": "2023-11-14T22:13:20"}).fit(
        dates, users=left, items=items
    )
    assert same.weights_ == run.weights_


def test_times_that_make_no_sense_are_refused() -> None:
    run = ge.Recommender(**TIMED).fit(timed_table())
    with pytest.raises(ParameterError, match="go together"):
        ge.Recommender(now=1.0).fit(timed_table())
    with pytest.raises(ParameterError, match="a number or a date"):
        ge.Recommender(now="soon", half_life=1.0).fit(timed_table())
    with pytest.raises(GraphError, match="only a table"):
        ge.Recommender(**TIMED).fit(MATRIX)
    with pytest.raises(GraphError, match="no column 'time'"):
        ge.Recommender(**TIMED).fit({"user": [1, 2], "item": [1, 2]})
    with pytest.raises(GraphError, match="1 interactions have no time"):
        ge.Recommender(**TIMED).fit({"user": [1, 2], "item": [1, 2], "time": [1.0, np.nan]})
    with pytest.raises(ParameterError, match="'time' of AddInteractions is needed"):
        run.update(ge.AddInteractions([(0, 99)]))
    with pytest.raises(ParameterError, match="no part in a run without"):
        ge.Recommender().fit(MATRIX).update(ge.AddInteractions([(0, 99)], time=[1.0]))
    with pytest.warns(UserWarning, match="count once, the newest"):
        twice = ge.Recommender(**TIMED).fit(
            {"user": [1, 1, 2], "item": [1, 1, 1], "time": [1.0, 5.0, 2.0]}
        )
    assert twice.graph_.num_edges == 2


def test_users_and_items_are_called_so_in_errors(tmp_path: Path) -> None:
    table = {"user": ["ada", "bo", "bo"], "item": ["x", "x", "y"]}
    run = ge.Recommender().fit(table)
    for ask in (run.recommend, lambda ids: run.unlearn(ge.Users(ids))):
        with pytest.raises(UnknownNodeError, match=r"^user 'eve' is not"):
            ask(["eve"])
    with pytest.raises(UnknownNodeError, match=r"^item 'z' is not"):
        run.score({"user": ["ada"], "item": ["z"]})
    with pytest.raises(UnknownEdgeError, match="no interaction user 'ada'-item 'y'"):
        run.unlearn(ge.Interactions([("ada", "y")]))
    with pytest.raises(ParameterError, match="each once"):
        run.recommend_new(["x", "x"])
    (tmp_path / "test.csv").write_text("user,item\nada,y\n")
    assert run.score(tmp_path / "test.csv").hit_rate == 1.0


def test_blocks_of_many_users_are_answered_by_the_executor() -> None:
    matrix = random_matrix(600, 30, 2)
    run = ge.Recommender(sample=8).fit(matrix)
    found, scores = run.recommend(range(600), top=4, return_scores=True)
    for user in (0, 255, 256, 599):
        one, own = run.recommend([user], top=4, return_scores=True)
        assert one.tobytes() == found[[user]].tobytes()
        assert own.tobytes() == scores[[user]].tobytes()
