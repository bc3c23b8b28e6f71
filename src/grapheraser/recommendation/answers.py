"""Questions to a recommender: items for users, old and new, items alike, scores and reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.checks import whole
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import Graph
from grapheraser.graph.changes.sides import side_nodes, side_pairs
from grapheraser.graph.ids import names_of
from grapheraser.kernels.paged import neighbour_rows
from grapheraser.kinds import ITEMS, USERS, Kind
from grapheraser.recommendation.interactions import columns_of
from grapheraser.recommendation.metrics import RecommendationScore, recommendation_score
from grapheraser.recommendation.model import FittedRecommendation
from grapheraser.recommendation.scoring import explained, ranked
from grapheraser.recommendation.weighing import (
    NO_TIMES,
    Ids,
    Neighbours,
    Weighing,
    profile_of,
    weighing_of,
)

_OWNER = "Recommender"
# Powers of degrees by which items are alike: of the users that they share, and of the other item.
_ALIKE = (0.0, ((0.25, 1),), 0.5, 1.0)
_ALL: Ids = np.zeros(0, dtype=np.int64)  # items to choose from: all
# Users who are answered at once, on one thread or in one process of the executor.
_BLOCK = 256


@dataclass(frozen=True)
class Reason:
    """One item that a recommendation comes through.

    Attributes:
        item: of the user's, id or name.
        share: its part in the recommendation; those of all of the user's items sum to 1.
    """

    item: int | str
    share: float


@dataclass(frozen=True)
class RecommendationReasons:
    """The reasons of a recommendation.

    Attributes:
        user, item: ids or names.
        score: as `recommend` gives it; 0 where no other user leads from one to the other.
        through: the user's items, those with the largest part first.
        why: in words.
    """

    user: int | str
    item: int | str
    score: float
    through: tuple[Reason, ...]
    why: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def fitted_of(now: Snapshot) -> FittedRecommendation:
    """Return the fitted model of a recommender's snapshot."""
    fitted = now.state.aggregator
    assert isinstance(fitted, FittedRecommendation)
    return fitted


def _parts(now: Snapshot) -> tuple[Weighing, Neighbours]:
    fitted = fitted_of(now)
    return fitted.model.weighing, fitted.model.near(fitted.counts, now.settings.seed)


def nodes_in(graph: Graph, kind: Kind, given: Any) -> Ids:
    """Return the nodes of users or items; refuse those that are not there."""
    nodes = side_nodes(kind, given)
    graph.places(nodes)
    return np.array(nodes, dtype=np.int64)


def choice_of(graph: Graph, given: Any) -> Ids:
    """Return the sorted nodes of the items to choose from: all where none are given."""
    if given is None:
        return _ALL
    if not len(nodes := np.unique(nodes_in(graph, ITEMS, given))):
        raise ParameterError("'among' must name an item at least.")
    return nodes


def items_of_new(graph: Graph, given: Any) -> Ids:
    """Return the nodes of the items of somebody who is not in the run; each once."""
    nodes = nodes_in(graph, ITEMS, given)
    if len(np.unique(nodes)) < len(nodes):
        raise ParameterError(f"'items' of {_OWNER}.recommend_new must name each once.")
    return nodes


def called(graph: Graph, nodes: Ids, kind: Kind) -> NDArray[Any]:
    """Return numbers of users or items, or names where they have some; -1 or None for -1."""
    if not graph.named:
        return np.where(nodes < 0, -1, kind.number(nodes))
    names = np.full(nodes.size, None, dtype=object)
    there = np.flatnonzero(nodes.ravel() >= 0)
    start = len(kind.called(""))
    names[there] = names_of(name[start:] for name in graph.names_of(nodes.ravel()[there]))
    return names.reshape(nodes.shape)


def recommend(
    now: Snapshot, users: Ids, top: int, *, fresh: bool = True, among: Ids = _ALL
) -> tuple[Ids, NDArray[np.float64]]:
    """Return the best items of users (nodes) ``[n, top]``, and their scores."""
    top = whole("top", f"{_OWNER}.recommend", top, 1)
    answer = partial(_recommended, now, top=top, fresh=fresh, among=among)
    if len(users) <= _BLOCK:
        return answer(users)
    fitted_of(now).popular_items(now.state.graph)  # once, not on every thread
    blocks = np.split(users, range(_BLOCK, len(users), _BLOCK))
    found = now.settings.executor.map(answer, blocks, names=range(len(blocks)))
    return np.concatenate([best for best, _ in found]), np.concatenate([s for _, s in found])


def _recommended(
    now: Snapshot, users: Ids, *, top: int, fresh: bool, among: Ids
) -> tuple[Ids, NDArray[np.float64]]:
    graph, (weighing, _near) = now.state.graph, _parts(now)
    places = graph.places(users)
    ends, profiles = neighbour_rows(graph.table, places)
    strengths = np.ones(len(profiles))
    if weighing.scale:
        lists = [profile_of(graph.table, place, -1, weighing.scale)[1] for place in places]
        strengths = np.concatenate([*lists, np.zeros(0)])
    return _ranked(now, profiles, strengths, ends, users, top, fresh, among)


def recommend_new(
    now: Snapshot, items: Ids, strengths: Any, top: int, *, fresh: bool, among: Ids
) -> tuple[Ids, NDArray[np.float64]]:
    """Return the best items ``[top]`` for whoever has these items (nodes), and their scores."""
    top = whole("top", f"{_OWNER}.recommend_new", top, 1)
    ends, own = np.array([0, len(items)]), np.array([-1])
    best, scores = _ranked(now, items, strengths, ends, own, top, fresh, among)
    return best[0], scores[0]


def _ranked(
    now: Snapshot,
    profiles: Ids,
    strengths: NDArray[np.float64],
    ends: Ids,
    own: Ids,
    top: int,
    fresh: bool,
    among: Ids,
) -> tuple[Ids, NDArray[np.float64]]:
    """Rank the items of some users; where too few are reached, popular ones follow."""
    graph, fitted, parts = now.state.graph, fitted_of(now), _parts(now)
    some = min(top, len(among) or int(fitted.counts[1]))
    best = np.full((len(own), top), -1, dtype=np.int64)
    scores = np.zeros((len(own), top))
    best[:, :some], scores[:, :some] = ranked(
        graph.table,
        *(profiles, strengths, ends, own),
        *parts,
        fitted.recency_of(graph),
        fitted.weights,
        some,
        fresh,
        among,
    )
    for n in np.flatnonzero((best[:, :some] < 0).any(axis=1)).tolist():
        held = int((best[n] >= 0).sum())
        taken = [best[n, :held], profiles[ends[n] : ends[n + 1]][: None if fresh else 0]]
        out = np.concatenate(taken)
        popular = fitted.popular_items(graph)
        popular = popular[np.isin(popular, among)] if len(among) else popular[: some + len(out)]
        rest = popular[~np.isin(popular, out)][: some - held]
        best[n, held : held + len(rest)] = rest
    return best, scores


def similar(now: Snapshot, items: Ids, top: int) -> tuple[Ids, NDArray[np.float64]]:
    """Return the items most like each of these (nodes) ``[n, top]``, and how much."""
    top = whole("top", f"{_OWNER}.similar", top, 1)
    parts = weighing_of(*_ALIKE, now.arguments["scale"]), _parts(now)[1]
    profiles = items, np.ones(len(items)), np.arange(len(items) + 1), np.full(len(items), -1)
    weights = np.array([1.0, 0.0])
    return ranked(now.state.graph.table, *profiles, *parts, NO_TIMES, weights, top, True, _ALL)


def explain(now: Snapshot, user: Any, item: Any) -> RecommendationReasons:
    """Say through which of a user's items an item is recommended."""
    graph, fitted, (weighing, near) = now.state.graph, fitted_of(now), _parts(now)
    (own,), (target,) = nodes_in(graph, USERS, [user]), nodes_in(graph, ITEMS, [item])
    (place,), ends = graph.places([int(own)]), ((own, USERS), (target, ITEMS))
    items, strengths = profile_of(graph.table, place, target, weighing.scale)
    parts = explained(graph.table, items, strengths, own, target, weighing, near)
    weights, totals = fitted.weights[: parts.shape[1]], parts.sum(axis=0)
    shares = np.divide(parts, totals, out=np.zeros_like(parts), where=totals > 0)
    shares = shares @ (weights / weights.sum()) if weights.sum() > 0 else shares.mean(axis=1)
    _, scores = recommend(now, np.array([own]), 1, fresh=False, among=np.array([target]))
    order = np.lexsort((items, -shares))
    order = order[shares[order] > 0]
    found = called(graph, items[order], ITEMS).tolist()
    through = tuple(Reason(i, float(s)) for i, s in zip(found, shares[order], strict=True))
    why = "users who have these items have it too, the more of them in common the more they count"
    if not through:
        why = "no other user has it and one of the user's items: it is ranked by popularity"
    names = [called(graph, np.array([node]), kind).tolist()[0] for node, kind in ends]
    return RecommendationReasons(names[0], names[1], float(scores[0, 0]), through, why)


def score(now: Snapshot, test: Any, k: int) -> RecommendationScore:
    """Score recommendations of k items by interactions that the run was not fitted on."""
    k = whole("k", f"{_OWNER}.score", k, 1)
    graph = now.state.graph
    given = _test_pairs(test)
    if not len(given):
        raise GraphError("there are no interactions to score by.")
    graph.places(list(dict.fromkeys(node for pair in given for node in pair)))
    pairs = np.array(given, dtype=np.int64).reshape(-1, 2)
    users, at = np.unique(pairs[:, 0], return_inverse=True)
    items = pairs[np.argsort(at, kind="stable"), 1]
    wanted = np.split(items, np.cumsum(np.bincount(at))[:-1])
    best, _ = recommend(now, users, k)
    once = [np.unique(own) for own in wanted]
    return recommendation_score(best, once, int(fitted_of(now).counts[1]))


def _test_pairs(test: Any) -> list[tuple[int, int]]:
    """Read interactions to score by: a matrix, a table, or pairs; return nodes."""
    if sp.issparse(test):
        given: Any = test
        users, items = given.nonzero()
        return list(zip((2 * users).tolist(), (2 * items + 1).tolist(), strict=True))
    if isinstance(test, str | Path | Mapping) or hasattr(test, "columns"):
        columns = columns_of(test)
        if not {"user", "item"} <= set(columns):
            raise ParameterError("a table to score by has columns 'user' and 'item'.")
        ends = [side_nodes(kind, np.asarray(columns[kind.noun])) for kind in (USERS, ITEMS)]
        return list(zip(*ends, strict=True))
    return side_pairs(f"{_OWNER}.score", test)


def new_strengths(weight: ArrayLike | None, count: int, scale: float | None) -> Any:
    """Return the strengths of interactions that are not in the graph; refuse what can't be."""
    if weight is None or scale is None:
        if weight is not None:
            raise ParameterError("interactions of this run have no weights.")
        return np.ones(count)
    values = np.asarray(weight, dtype=np.float64)
    if values.shape != (count,) or not ((values > 0) & (values <= scale)).all():
        raise ParameterError.of(
            "weight",
            f"{_OWNER}.recommend_new",
            f"{count} numbers above 0, at most {scale:g}",
            weight,
        )
    return values / scale


def for_service(eraser: Any, users: ArrayLike) -> NDArray[np.int64]:
    """Return nodes of the best 20 items of users, and the bits of their scores ``[n, 20, 2]``."""
    now = eraser._snapshot
    best, scores = recommend(now, nodes_in(now.state.graph, USERS, users), 20)
    return np.stack([best, scores.view(np.int64)], axis=2)


def service_outputs(graph: Graph, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return items and scores from what `for_service` gave."""
    items = called(graph, values[:, :, 0], ITEMS)
    if graph.named:
        items = np.where(values[:, :, 0] < 0, "", items)
    scores = np.ascontiguousarray(values[:, :, 1]).view(np.float64)
    return {"items": items, "scores": scores.astype(np.float32)}
