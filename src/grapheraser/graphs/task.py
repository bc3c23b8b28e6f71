"""The task of predicting the labels of whole graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grapheraser.checks import whole
from grapheraser.eraser.settings import Settings, closed_form
from grapheraser.eraser.task import Question, Task
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import Graph
from grapheraser.graphs.collection import Collection
from grapheraser.graphs.learner import MEMBERS, ColourPool
from grapheraser.nodes.answers import outputs_of

_OWNER = "CollectionEraser"


class CollectionTask(Task):
    """Labels of whole graphs: each is a node, whose feature row it is written in."""

    name = "graphs"
    owner = _OWNER
    predicts = "the labels of graphs"
    predict = Question("graphs", 1, lambda eraser, ids: eraser.predict_proba(ids), outputs_of)

    def resolve(
        self, arguments: Mapping[str, Any], fitted_as: Mapping[str, Any] | None = None
    ) -> Settings:
        """See `Task`."""
        del fitted_as
        members = _members(arguments["members"])
        references = whole("references", _OWNER, arguments["references"], 1, 2**20)
        pool = ColourPool(members, sample=arguments["sample"], references=references)
        seed = whole("seed", _OWNER, arguments["seed"])
        return closed_form(pool, seed=seed, executor=arguments["executor"])

    def graph_of(self, arguments: Mapping[str, Any], settings: Settings, world: Any) -> Graph:
        """See `Task`."""
        del arguments, settings
        if isinstance(world, Graph):
            raise ParameterError(
                "'collection' of CollectionEraser.fit must be a Collection, not a Graph.",
                hint="ge.GraphEraser learns the nodes of one graph.",
            )
        graph = (world if isinstance(world, Collection) else Collection.from_pyg(world)).graph
        if not graph.label_kind.is_classes:
            raise GraphError(
                f"collection '{graph.name}' has {graph.label_kind.words}: classes of graphs are "
                "predicted, one a graph.",
                hint="choose one column, y[:, 0].",
            )
        if graph.num_train == 0:
            raise GraphError(f"collection '{graph.name}' has no graphs to learn from.")
        return graph


def _members(given: Any) -> tuple[str, ...]:
    if given is None:
        return MEMBERS
    known = f"names among {', '.join(MEMBERS)}"
    if isinstance(given, str) or not given or any(name not in MEMBERS for name in given):
        raise ParameterError.of("members", _OWNER, known, given)
    return tuple(name for name in MEMBERS if name in given)
