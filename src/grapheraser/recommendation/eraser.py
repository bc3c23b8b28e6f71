"""Recommender: fit, recommend and explain, and forget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.eraser.base import Eraser
from grapheraser.execution import Executor
from grapheraser.graph import Graph
from grapheraser.kinds import ITEMS, USERS
from grapheraser.recommendation import answers
from grapheraser.recommendation.answers import RecommendationReasons, fitted_of
from grapheraser.recommendation.interactions import World
from grapheraser.recommendation.metrics import RecommendationScore
from grapheraser.recommendation.task import RecommendationTask

# Items, or items and their scores.
Recommended: TypeAlias = Any


def _answer(
    graph: Graph, best: NDArray[np.int64], scores: NDArray[np.float64], both: bool
) -> Recommended:
    found = answers.called(graph, best, ITEMS)
    return (found, scores) if both else found


class Recommender(Eraser):
    """Recommends items to users, and forgets users, items and interactions exactly.

    Users are recommended what others have who have items in common with them. Nothing but a few
    weights is trained: scores are counted from the interactions when somebody asks. The constructor
    only stores its arguments; `fit` checks them.

    Args:
        item_power: items in common count as their number of users to minus this power.
        blocks: of the pool: pairs of a power, by which users count the less the more items they
            have, and a number of steps: with one, users count as much as they have in common; with
            more, those who all say the same count less.
        damping: shares are divided by an item's number of users to this power.
        ridge: the larger, the less steps after the first one change.
        scale: the largest weight of an interaction, which counts as 1; smaller ones in proportion.
            None: interactions have no weights.
        sample: how many users to learn the weights of the blocks from at the most; one interaction
            of each is held out.
        neighbours: how many users, about, are looked at as neighbours where there are more; those
            whose ids have the smallest hashes.
        now: the moment that popularity of late is seen from: a number, in the unit of the times of
            interactions, or a date as text. Later interactions count as those of the moment. None:
            interactions have no times.
        half_life: after which an interaction counts half as much in it; goes with ``now``. Seconds,
            where times are dates.
        seed: every random number follows from it.
        executor: local, process, ray, or an `Executor`; has no part in the results.

    Attributes:
        graph_: users and items as nodes (classes 0 and 1), interactions as edges.
        weights_: the learned weight of each block, and of popularity, by name.
        num_users_: how many users there are.
        num_items_: how many items.
        receipts_: one per change since the fit, oldest first.
        partition_: one part: nothing is trained in shards.
        shards_: none.
        engine_: name of the engine; it trains nothing here.
    """

    task = RecommendationTask()

    def __init__(
        self,
        item_power: float = 0.3,
        blocks: Sequence[tuple[float, int]] = ((0.2, 3),),
        damping: float = 0.2,
        ridge: float = 25.0,
        scale: float | None = None,
        sample: int = 64,
        neighbours: int = 2**17,
        now: float | str | None = None,
        half_life: float | None = None,
        seed: int = 0,
        executor: str | Executor = "local",
    ) -> None:
        self.item_power = item_power
        self.blocks = blocks
        self.damping = damping
        self.ridge = ridge
        self.scale = scale
        self.sample = sample
        self.neighbours = neighbours
        self.now = now
        self.half_life = half_life
        self.seed = seed
        self.executor = executor

    @property
    def weights_(self) -> dict[str, float]:
        fitted = fitted_of(self._snapshot)
        return dict(zip(fitted.model.members, fitted.weights.tolist(), strict=True))

    @property
    def num_users_(self) -> int:
        return int(fitted_of(self._snapshot).counts[0])

    @property
    def num_items_(self) -> int:
        return int(fitted_of(self._snapshot).counts[1])

    # -- fitting and asking -------------------------------------------------------------------

    def fit(
        self,
        interactions: Any,
        *,
        users: ArrayLike | None = None,
        items: ArrayLike | None = None,
        user: str = "user",
        item: str = "item",
        weight: str = "weight",
        time: str = "time",
    ) -> Self:
        """Learn from interactions between users and items.

        Args:
            interactions: a SciPy matrix with a row per user and a column per item; a table (a frame
                of pandas, polars or Arrow, a mapping of columns, or the path of a CSV or Parquet
                file) with a row per interaction; or a `Graph` with users of class 0 and items of
                class 1.
            users: ids or names: of the rows of a matrix, default 0, 1, ...; or of all users of a
                table, also those without interactions. Default those in it: then receipts say
                ``exact given schema``.
            items: likewise.
            user: the column of users in a table.
            item: the column of items.
            weight: the column of weights; used with ``scale``.
            time: the column of times; used with ``now``.
        """
        return self._fit(World(interactions, users, items, (user, item, weight, time)))

    def recommend(
        self,
        users: ArrayLike,
        top: int = 20,
        *,
        exclude_seen: bool = True,
        among: ArrayLike | None = None,
        return_scores: bool = False,
    ) -> Recommended:
        """Return the best items of each user, best first ``[len(users), top]``.

        Items that nobody leads to follow by popularity, with a score of 0. Where there are fewer
        items than asked for, rows end in -1 (None where items have names).

        Args:
            users: ids or names.
            top: how many items.
            exclude_seen: leave out the items that a user has.
            among: the items to choose from, ids or names: those in stock, or new ones. Default all.
            return_scores: return scores as well, of the same shape; those of one user compare.
        """
        now = self._snapshot
        graph = now.state.graph
        nodes = answers.nodes_in(graph, USERS, users)
        chosen = answers.choice_of(graph, among)
        best, scores = answers.recommend(now, nodes, top, fresh=exclude_seen, among=chosen)
        return _answer(graph, best, scores, return_scores)

    def recommend_new(
        self,
        items: ArrayLike,
        top: int = 20,
        *,
        weight: ArrayLike | None = None,
        exclude_seen: bool = True,
        among: ArrayLike | None = None,
        return_scores: bool = False,
    ) -> Recommended:
        """Return the best items ``[top]`` for somebody who is not in the run; nothing is stored.

        Args:
            items: that this user has; ids or names.
            top: how many items.
            weight: of each interaction, where they have weights; default the scale.
            exclude_seen: leave out these items.
            among: the items to choose from; see `recommend`.
            return_scores: return scores as well.
        """
        now = self._snapshot
        graph = now.state.graph
        nodes = answers.items_of_new(graph, items)
        strengths = answers.new_strengths(weight, len(nodes), now.arguments["scale"])
        chosen = answers.choice_of(graph, among)
        best, scores = answers.recommend_new(
            now, nodes, strengths, top, fresh=exclude_seen, among=chosen
        )
        return _answer(graph, best, scores, return_scores)

    def similar(
        self, items: ArrayLike, top: int = 10, *, return_scores: bool = False
    ) -> Recommended:
        """Return the items that the users of each item have, unpopular ones for more.

        The shape is ``[len(items), top]``.

        Args:
            items: ids or names.
            top: how many; rows end in -1 (None where items have names) where there are fewer.
            return_scores: return how much alike they are as well.
        """
        now = self._snapshot
        graph = now.state.graph
        best, scores = answers.similar(now, answers.nodes_in(graph, ITEMS, items), top)
        return _answer(graph, best, scores, return_scores)

    def explain(self, user: int | str, item: int | str) -> RecommendationReasons:
        """Say through which of a user's items an item is recommended to them.

        Args:
            user: id or name.
            item: likewise.
        """
        return answers.explain(self._snapshot, user, item)

    def score(self, test: Any, k: int = 20) -> RecommendationScore:
        """Score recommendations by interactions that the run was not fitted on.

        Args:
            test: a matrix, a table with columns ``user`` and ``item``, or its path, or pairs.
            k: how many items are recommended.
        """
        return answers.score(self._snapshot, test, k)
