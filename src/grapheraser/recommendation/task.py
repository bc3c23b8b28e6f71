"""The task of recommending items to users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from grapheraser.checks import real, whole
from grapheraser.eraser.settings import Settings, closed_form
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.task import Question, Task, tallied
from grapheraser.errors import EmptyEnsembleError, GraphError, ParameterError
from grapheraser.graph import AddEdges, AddNodes, Edges, Edit, Graph, Removal
from grapheraser.graph.changes.requests import REQUESTS
from grapheraser.graph.changes.sides import (
    AddInteractions,
    AddItems,
    AddUsers,
    Interactions,
    Items,
    SideId,
    SideRequest,
    Users,
)
from grapheraser.kinds import (
    EDGES,
    INTERACTIONS,
    ITEMS,
    NODES,
    USERS,
    Item,
    items_of,
    named_by,
)
from grapheraser.recommendation.answers import for_service, service_outputs
from grapheraser.recommendation.interactions import World, as_times, graph_of, no_features
from grapheraser.recommendation.model import RecommendationModel

_OWNER = "Recommender"
_MAX_STEPS, _MAX_BLOCKS = 8, 8


class RecommendationTask(Task):
    """Items for users: nodes are users and items, edges interactions."""

    name = "recommendation"
    owner = _OWNER
    predicts = "items for users"
    kinds = (USERS.name, ITEMS.name, INTERACTIONS.name)
    added = MappingProxyType({"now": None, "half_life": None})
    predict = Question("users", 1, for_service, service_outputs, of_nodes=False)

    def resolve(
        self, arguments: Mapping[str, Any], fitted_as: Mapping[str, Any] | None = None
    ) -> Settings:
        """See `Task`."""
        del fitted_as
        scale = arguments["scale"]
        model = RecommendationModel(
            item_power=real("item_power", _OWNER, arguments["item_power"], 0, 4),
            blocks=tuple(_blocks(arguments["blocks"])),
            damping=real("damping", _OWNER, arguments["damping"], -4, 4),
            ridge=real("ridge", _OWNER, arguments["ridge"], above=0, most=1e6),
            scale=None if scale is None else real("scale", _OWNER, scale, above=0, most=1e6),
            sample=whole("sample", _OWNER, arguments["sample"], 0, 2**20),
            neighbours=whole("neighbours", _OWNER, arguments["neighbours"], 1, 2**40),
            half_life=_half_life(arguments),
        )
        seed = whole("seed", _OWNER, arguments["seed"])
        return closed_form(model, seed=seed, executor=arguments["executor"])

    def graph_of(self, arguments: Mapping[str, Any], settings: Settings, world: Any) -> Graph:
        """See `Task`."""
        del settings
        given = world if isinstance(world, World) else World(world)
        return graph_of(given, arguments["scale"], _moment(arguments))

    # -- requests and changes -----------------------------------------------------------------

    def changes_of(self, now: Snapshot, changes: Sequence[Any]) -> Sequence[Any]:
        """Translate users, items and interactions into nodes and edges."""
        graph, weighted = now.state.graph, now.arguments["scale"] is not None
        moment = _moment(now.arguments)
        made: list[Any] = []
        new: dict[int, int] = {}
        gone = {pair for part in changes if isinstance(part, Interactions) for pair in part.pairs}
        for part in changes:
            if isinstance(part, SideRequest):
                made.append(part.in_graph)
            elif isinstance(part, AddUsers | AddItems):
                new |= dict.fromkeys(part.nodes, int(isinstance(part, AddItems)))
            elif isinstance(part, AddInteractions):
                made += _added(graph, part, gone, weighted=weighted, moment=moment)
                for user, item in part.pairs:
                    ends = np.array([user, item], dtype=np.int64)
                    there = graph.contains(ends).tolist()
                    sides = zip((user, item), (0, 1), there, strict=True)
                    new |= {node: side for node, side, known in sides if not known}
            else:
                raise ParameterError(
                    "a recommender takes Users, Items, Interactions, AddUsers, AddItems and "
                    f"AddInteractions. Got {part!r}."
                )
        return [*_new_nodes(new), *made]

    def check_edit(self, now: Snapshot, edit: Edit) -> None:
        """Refuse weights beyond the scale."""
        scale, values = now.arguments["scale"], edit.entries.values
        if scale is not None and len(values):
            weights = values[:, 0]
            wrong = ~((weights > 0) & (weights <= scale))
            if wrong.any():
                raise GraphError(
                    f"weights must be above 0 and at most the scale, {scale:g} "
                    f"(found {weights[wrong][0]:g})."
                )

    def check_removal(self, graph: Graph, removal: Removal) -> None:
        """Refuse to take the last interaction."""
        self.check_edges_left(graph, removal)

    def check_left(self, before: Graph, after: Graph) -> None:
        """Refuse a graph without interactions."""
        if after.num_edges == 0:
            raise EmptyEnsembleError(
                f"the request takes the last {before.num_edges} interactions: there would be "
                "nothing to recommend by.",
                hint="delete the run instead, or leave some interactions in it.",
            )

    # -- and back -----------------------------------------------------------------------------

    def spelled(self, about: dict[str, Any]) -> dict[str, Any]:
        """Say what a part of a receipt is about as users, items and interactions."""
        verb, noun = _first(about)
        ids, names = about["ids"], about.get("names", ())
        known: list[str | None] = [*names] or [None] * len(ids)
        sides = [_side_of(int(node), name) for node, name in zip(ids, known, strict=True)]
        kind = INTERACTIONS if noun == EDGES.noun else (USERS, ITEMS)[sides[0]]
        order = np.argsort(sides, kind="stable").tolist()
        ends = [(USERS, ITEMS)[sides[at]] for at in order]
        said: dict[str, Any] = {verb: kind.noun}
        if names:
            said["ids"] = [ids[at] for at in order]
            called = zip(order, ends, strict=True)
            said["names"] = [names[at].removeprefix(end.called("")) for at, end in called]
        else:
            numbers = zip(order, ends, strict=True)
            said["ids"] = [str(end.number(int(ids[at]))) for at, end in numbers]
        if about.get("values"):
            said["values"] = about["values"]
        return said

    def counted(self, counts: dict[str, int], abouts: Sequence[Any]) -> dict[str, int]:
        """Count users, items and interactions in the place of nodes and edges."""
        return tallied(self.kinds, counts, abouts)

    def requests_of(self, requests: Sequence[Any]) -> list[Any]:
        """Return requests of the graph as requests of users, items and interactions."""
        made: list[Any] = []
        for part in requests:
            if part.kind is NODES:
                sides = [_side_of(int(node), getattr(node, "name", None)) for node in part.ids]
                for side, request in enumerate((Users, Items)):
                    named = [n for n, own in zip(part.ids, sides, strict=True) if own == side]
                    made += [request.of_nodes(named)] if named else []
            else:
                made.append(Interactions.of_nodes(part.pairs))
        return made

    def items_in(self, now: Snapshot, requests: Sequence[Any]) -> set[Item]:
        """See `Task`."""
        found = named_by(super().items_in(now, requests)).items()
        there = self.requests_of([REQUESTS[name](ids) for name, ids in found])
        return set(items_of({part.kind.name: part.named for part in there}))

    def everything(self, graph: Graph) -> dict[str, Any]:
        """See `Task`."""
        edges = graph.edges
        sides = {kind.name: graph.ids[graph.y == kind.side] for kind in (USERS, ITEMS)}
        return {**sides, INTERACTIONS.name: edges}


def _first(about: Mapping[str, Any]) -> tuple[str, Any]:
    return next(iter(about.items()))


def _side_of(node: int, name: str | None) -> int:
    """Tell the side of a node, by its name or else by its id."""
    if name is None or name.startswith(("user ", "item ")) or "/" not in name:
        return node % 2
    return int(name.startswith(ITEMS.called("")))


def _blocks(given: Any) -> Iterator[tuple[float, int]]:
    try:
        pairs = [(power, steps) for power, steps in given]
    except (TypeError, ValueError):
        pairs = []
    if not 1 <= len(pairs) <= _MAX_BLOCKS:
        wanted = f"1 to {_MAX_BLOCKS} pairs of a user power and a number of steps"
        raise ParameterError.of("blocks", _OWNER, wanted, given)
    for power, steps in pairs:
        yield (
            real("blocks", f"{_OWNER} (its user power)", power, 0, 4),
            whole("blocks", f"{_OWNER} (its steps)", steps, 1, _MAX_STEPS),
        )


def _new_nodes(new: Mapping[int, int]) -> list[AddNodes]:
    if not new:
        return []
    nodes = [int(node) if isinstance(node, SideId) else node for node in new]
    return [AddNodes(nodes, no_features(len(nodes)), list(new.values()))]


def _half_life(arguments: Mapping[str, Any]) -> float | None:
    moment, given = arguments["now"], arguments["half_life"]
    if (moment is None) != (given is None):
        raise ParameterError(f"'now' and 'half_life' of {_OWNER} go together.")
    return None if given is None else real("half_life", _OWNER, given, above=0)


def _moment(arguments: Mapping[str, Any]) -> float | None:
    """Return the moment that times are seen from, in the unit of times."""
    given = arguments["now"]
    if given is None:
        return None
    try:
        return float(as_times([given])[0])
    except GraphError:
        raise ParameterError.of("now", _OWNER, "a number or a date", given) from None


def _added(
    graph: Graph, part: AddInteractions, gone: set[Any], *, weighted: bool, moment: float | None
) -> list[Any]:
    """Return the edges that come, without those that they take the place of."""
    pairs = [(int(user), int(item)) for user, item in part.pairs]
    if weighted and part.weight is None:
        raise ParameterError("'weight' of AddInteractions is needed: interactions have weights.")
    if not weighted and part.weight is not None:
        raise ParameterError("'weight' of AddInteractions has no part in a run without a scale.")
    if (moment is None) != (part.time is None):
        why = (
            "has no part in a run without them" if moment is None else "is needed: there are times"
        )
        raise ParameterError(f"'time' of AddInteractions {why}.")
    ages = None if moment is None else moment - as_times(part.time)
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    known = np.all(graph.contains(ends.ravel()).reshape(-1, 2), axis=1)
    known[known] = graph.has_edges(ends[known])
    old = [pair for pair, there in zip(pairs, known, strict=True) if there and pair not in gone]
    if old and not weighted and ages is None:
        raise GraphError(f"{len(old)} of {len(pairs)} interactions are there already.")
    return [*([Edges(old)] if old else []), AddEdges(pairs, part.weight, ages)]
