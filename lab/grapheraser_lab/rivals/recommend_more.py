"""What could have a part in a recommender besides interactions: features, and trained members.

A feature of items goes in as a user who has all items with it, a feature of users as an item that
all of them have, which is never recommended. Three questions are asked of MovieLens 100k: about
everybody; about items that nobody has, ranked among themselves; and about users who have nothing.
Which features go in is chosen by NDCG@20 on validation interactions, items or users.

Members are trained by ALS, BPR-MF and LightFM, of all users together and in shards of users, and
added to our scores with a weight that is chosen on validation interactions.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.environment import versions
from grapheraser.recommendation.metrics import recommendation_score
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.rivals.recommend import _divided, _lies_in, _movielens, held_out, split_of
from grapheraser_lab.rivals.recommend import _score as _score_of
from grapheraser_lab.rivals.recommenders import RIVALS, Fitted

Report = Mapping[str, Any]
_K, _FOLDS = 20, 5
_NONE = "none"
# Which columns of the files about films and users are features, by what they are called.
_OF_ITEMS = {"genres": ("class",), "genres and years": ("class", "release_year")}
_OF_USERS = {
    "gender and job": ("gender", "occupation"),
    "with age": ("gender", "occupation", "age"),
}
# Options of trained members, as `bench recommend` chose them, and weights to choose from.
_TRAINED: dict[str, dict[str, float]] = {
    "als": {"factors": 64, "regularization": 0.05, "alpha": 5.0},
    "bpr": {"rate": 0.01, "regularization": 0.01},
    "lightfm": {"rate": 0.02, "epochs": 100},
    "bpr-mf": {"decay": 0.01, "epochs": 380},
    "lightgcn": {"decay": 0.001, "epochs": 700},
}
_WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)


def features(
    *, seeds: int = 3, progress: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Ask the three questions, with and without features.

    Args:
        seeds: of the order of items, which breaks ties, and of the folds; scores are means.
        progress: told how far it is.
    """
    worlds = [_World(seed) for seed in range(seeds)]
    cells: list[dict[str, Any]] = []
    for question in ("everybody, all items", "items that nobody has", "users who have nothing"):
        some = _OF_USERS if question.startswith("users") else _OF_ITEMS
        held = {which: _mean(worlds, question, which, False)["ndcg"] for which in (_NONE, *some)}
        progress(f"{question}: {held}")
        chosen = max(some, key=lambda which: held[which])
        for which in (_NONE, chosen):
            found = _mean(worlds, question, which, True)
            cells.append({"question": question, "features": which, "held": held[which], **found})
            progress(str(cells[-1]))
    return {
        "benchmark": "recommend-features",
        "versions": versions(),
        "seeds": seeds,
        "cells": cells,
    }


def _mean(worlds: list[_World], question: str, which: str, final: bool) -> dict[str, float]:
    found = [world.score(question, which, final) for world in worlds]
    return {metric: float(np.mean([one[metric] for one in found])) for metric in found[0]}


class _World:
    """MovieLens 100k with its items in another order, and folds of users and items."""

    def __init__(self, seed: int) -> None:
        rows, draw = _movielens(), np.random.default_rng(seed)
        self.users, items = np.unique(rows[:, 0]), np.unique(rows[:, 1])
        order = draw.permutation(len(items))
        self.items = items[order]
        self.train, self.test = (part[:, order] for part in _divided(rows[:, :2]))
        self.everything = sp.csr_array(self.train + self.test)
        self.folds = [draw.integers(_FOLDS, size=len(ids)) for ids in (self.users, items)]

    def score(self, question: str, which: str, final: bool) -> dict[str, float]:
        """Score by the test, or by what options are chosen by."""
        every = np.arange(len(self.items))
        if question.startswith("everybody"):
            parts = (self.train, self.test) if final else held_out(self.train)
            return _score(*parts, self.of_items(which), None, every)
        axis = int(question.startswith("items"))
        folds = self.folds[axis]
        part = _only(self.everything, axis, folds >= 2 - final)
        wanted = _only(self.everything, axis, folds == 1 - final)
        if axis:
            among = np.flatnonzero(folds == 1 - final)
            return _score(part, wanted, self.of_items(which), None, among)
        of_users = None if which == _NONE else _features("user", self.users, _OF_USERS[which])
        return _score(part, wanted, None, of_users, every)

    def of_items(self, which: str) -> sp.csr_array | None:
        """Return features of items: a row for each."""
        return None if which == _NONE else _features("item", self.items, _OF_ITEMS[which])


def _features(kind: str, ids: NDArray[np.int64], columns: tuple[str, ...]) -> sp.csr_array:
    """Read features of films or users: a row for each feature, a column for each of them."""
    found: list[tuple[str, int]] = []
    with open(_lies_in("recbole", "dataset_example", "ml-100k", f"ml-100k.{kind}")) as file:
        for line in csv.DictReader(file, delimiter="\t"):
            cells = {name.split(":")[0]: cell for name, cell in line.items()}
            at = int(np.searchsorted(np.sort(ids), int(cells[f"{kind}_id"])))
            for column in columns:
                decade = cells[column][:-1] if column == "age" else cells[column]
                found += [(f"{column} {word}", at) for word in decade.split()]
    names = sorted({name for name, _ in found})
    pairs = np.array([(names.index(name), at) for name, at in found]).T
    made = sp.csr_array((np.ones(pairs.shape[1]), pairs), shape=(len(names), len(ids)))
    return sp.csr_array(made[:, np.argsort(np.argsort(ids))])


def _only(matrix: sp.csr_array, axis: int, kept: NDArray[np.bool_]) -> sp.csr_array:
    """Return a matrix with the interactions of some rows or columns alone."""
    pairs = np.stack(matrix.nonzero(), axis=1)
    pairs = pairs[kept[pairs[:, axis]]]
    return sp.csr_array((np.ones(len(pairs)), pairs.T), shape=matrix.shape)


def _score(
    part: sp.csr_array, wanted: sp.csr_array, of_items: Any, of_users: Any, among: NDArray[np.int64]
) -> dict[str, float]:
    """Fit a part with features, and score items among some for whoever wants any."""
    rows: list[Any] = [[part], *([] if of_items is None else [[of_items]])]
    if of_users is not None:
        rows = [[part, of_users.T]]
    eraser = ge.Recommender().fit(sp.csr_array(sp.block_array(rows)))
    asked = np.flatnonzero(np.diff(wanted.indptr) > 0)
    found = eraser.recommend(asked, _K, among=among)
    own = np.split(wanted.indices.astype(np.int64), wanted.indptr[1:-1])
    score = recommendation_score(found, [own[user] for user in asked], len(among))
    return {"recall": score.recall, "ndcg": score.ndcg}


def members(
    models: Iterable[str] = ("als", "bpr", "lightfm", "bpr-mf", "lightgcn"),
    *,
    shards: int = 10,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """See what trained members would add to our scores on MovieLens 100k.

    Args:
        models: which members.
        shards: of users, beside all of them together.
        progress: told how far it is.
    """
    train, test = split_of("ml-100k")
    part, held = held_out(train)
    ours = _ours(part), _ours(train)
    cells = [{"member": "none", "shards": 0, **_top_score(ours[1], train, test)}]
    for name in models:
        options = _TRAINED[name]
        for count in (1, shards):
            found = [
                _in_shards(RIVALS[name].fit, matrix, options, count) for matrix in (part, train)
            ]
            ndcg = [_top_score(ours[0] + w * found[0], part, held)["ndcg"] for w in _WEIGHTS]
            weight = _WEIGHTS[int(np.argmax(ndcg))]
            alone = _top_score(found[1], train, test)["ndcg"]
            both = _top_score(ours[1] + weight * found[1], train, test)
            cell = {"member": name, "shards": count, "weight": weight, "alone": alone, **both}
            cells.append(cell)
            progress(str(cell))
    return {"benchmark": "recommend-members", "versions": versions(), "cells": cells}


def _ours(matrix: sp.csr_array) -> NDArray[np.float64]:
    """Return logarithms of our scores of all items for all users, on the scale of `_standard`."""
    users, items = matrix.shape
    eraser = ge.Recommender().fit(matrix)
    found, scores = eraser.recommend(range(users), items, exclude_seen=False, return_scores=True)
    out = np.full((users, items), np.nan)
    rows, ranks = np.nonzero((found >= 0) & (scores > 0))
    out[rows, found[rows, ranks]] = np.log(scores[rows, ranks])
    least = np.nanmin(out, axis=1, keepdims=True)
    return _standard(np.where(np.isnan(out), least, out))


def _in_shards(
    fit: Callable[..., Fitted], matrix: sp.csr_array, options: Mapping[str, float], shards: int
) -> NDArray[np.float64]:
    """Return scores of all items for all users, each by the model of the shard that they are in."""
    of = np.random.default_rng(5).permutation(matrix.shape[0]) % shards
    out = np.empty(matrix.shape)
    for shard in range(shards):
        own = np.flatnonzero(of == shard)
        out[own] = fit(sp.csr_array(matrix[own]), options)(np.arange(len(own)))
    return _standard(out)


def _standard(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bring the scores of each user to mean 0 and deviation 1."""
    moved: NDArray[np.float64] = scores - scores.mean(axis=1, keepdims=True)
    return moved / np.maximum(moved.std(axis=1, keepdims=True), 1e-12)


def _top_score(
    scores: NDArray[np.float64], train: sp.csr_array, test: sp.csr_array
) -> dict[str, float]:
    found = _score_of(lambda users: scores[users], train, test)
    return {"recall": found.recall, "ndcg": found.ndcg}


def markdown(report: Report) -> str:
    """Return the table of a report."""
    if report["benchmark"] == "recommend-members":
        some = [
            (
                cell["member"],
                f"{cell['shards'] or ''}",
                *(f"{cell[name]:.4f}" if name in cell else "" for name in ("alone", "weight")),
                f"{cell['recall']:.4f}",
                f"{cell['ndcg']:.4f}",
            )
            for cell in report["cells"]
        ]
        header = ("ml-100k", "shards", "NDCG@20 alone", "weight", "recall@20", "NDCG@20 with ours")
        return markdown_table(header, some)
    rows = [
        (cell["question"], cell["features"], f"{cell['recall']:.4f}", f"{cell['ndcg']:.4f}")
        for cell in report["cells"]
    ]
    return markdown_table(("ml-100k", "features", "recall@20", "NDCG@20"), rows)
