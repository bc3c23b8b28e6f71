"""What a model takes of the edges of a graph, and what it has to refuse."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import Graph
from grapheraser.kernels.paged import edge_value_rows
from grapheraser.models import CustomModel, Model, declaration_of

if TYPE_CHECKING:
    from torch import Tensor, nn

CARRIED = ("edge_weight", "edge_attr")
_WITHOUT = {"edge_weight": "without_weights()", "edge_attr": "without_edge_attr()"}


def edge_tensors(graph: Graph, device: str = "cpu") -> dict[str, Tensor]:
    """What the edges of a graph carry, in the order of its ``edge_index``."""
    import torch

    found = {name: getattr(graph, name) for name in CARRIED}
    return {
        name: torch.tensor(values, device=device)
        for name, values in found.items()
        if values is not None
    }


def taken(module: nn.Module, carried: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those that the module's ``forward`` takes."""
    names = _parameters(module)
    # PyG's own models have both arguments, and say which of them their layers use.
    return {
        name: values
        for name, values in carried.items()
        if name in names and getattr(module, f"supports_{name}", True)
    }


def _parameters(module: nn.Module) -> Mapping[str, Any]:
    """The parameters of a module's ``forward``, by name."""
    sequential = getattr(getattr(module, "signature", None), "param_dict", None)
    if sequential is not None:  # PyG's Sequential
        return dict(sequential)
    try:
        return inspect.signature(module.forward).parameters
    except (TypeError, ValueError):
        return {}


def check_edges(model: Model, graph: Graph) -> None:
    """Refuse a graph whose edges the model can't use; warn of what a user's module ignores."""
    if isinstance(model, CustomModel):
        _check_module(model, graph)
        return
    declared = None if model.closed_form else declaration_of(model.kind)
    weighs = declared is not None and declared.weighs_edges
    refused = [name for name in CARRIED if getattr(graph, name) is not None]
    if weighs:
        refused = [name for name in refused if name != "edge_weight"]
    ways = [f"graph.{_WITHOUT[name]}" for name in refused]
    what = [f"'{name}'" for name in refused]
    if graph.directed and not weighs:
        what.append("directions")
        ways.append("graph.undirected()")
    if what:
        others = "a module of your own" if weighs else "model='gcn' or a module of your own"
        raise GraphError(
            f"model '{model.name}' can't use the {' and '.join(what)} of the edges of graph "
            f"'{graph.name}'.",
            hint=f"take them off with {', '.join(ways)}, or use {others}.",
        )
    _check_weights(model, graph.edge_weight)


def check_new_weights(model: Model, graph: Graph, node: int) -> None:
    """Refuse a new node with edges that the model can't use."""
    values = edge_value_rows(graph.table, graph.places([node]))
    _check_weights(model, graph.edge_kind.weights(values))


def _check_weights(model: Model, weights: Any) -> None:
    """Refuse weights that a built-in model can't normalise."""
    if isinstance(model, CustomModel) or weights is None or not (weights < 0).any():
        return
    raise GraphError(
        f"model '{model.name}' divides by the sum of a node's edge weights, so they must not be "
        f"negative (found {weights.min()}).",
        hint="shift or clip them, or use a module of your own.",
    )


def _check_module(model: CustomModel, graph: Graph) -> None:
    from grapheraser.training import reference

    with reference.reproducible(0):
        module = model.factory(graph.num_features, graph.num_classes)
    given = {name: getattr(graph, name) for name in CARRIED}
    given = {name: values for name, values in given.items() if values is not None}
    parameters = list(_parameters(module).values())
    needed = [
        parameter.name
        for parameter in parameters[2:]
        if parameter.default is inspect.Parameter.empty
        and getattr(parameter, "kind", None)
        not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        and parameter.name not in given
    ]
    if needed:
        raise ParameterError(
            f"the forward of {model.name} needs {', '.join(map(repr, needed))}, which graph "
            f"'{graph.name}' does not have.",
            hint="forward takes x and edge_index, and edge_weight and edge_attr where the graph "
            "has them.",
        )
    ignored = [name for name in given if name not in taken(module, given)]
    if ignored:
        ways = ", ".join(f"graph.{_WITHOUT[name]}" for name in ignored)
        warnings.warn(
            f"{model.name} ignores the {' and '.join(map(repr, ignored))} of the graph: its "
            f"forward does not take them. Add the argument, or take them off with {ways}.",
            stacklevel=2,
        )
