"""Checks of a graph before anything is trained on it: features, classes, and what edges carry."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from grapheraser.arrays import Ints
from grapheraser.engines.task import TrainingConfig
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import Graph
from grapheraser.graph.build import are_ids
from grapheraser.graph.edge_values import Values
from grapheraser.kernels.paged import feature_rows
from grapheraser.models import CustomModel, Model, declaration_of

if TYPE_CHECKING:
    from torch import nn

# Far beyond what any feature should be; float32 ends at 3.4e38, and kernels square sums of these.
LARGEST_FEATURE = 1e12
_AT_A_TIME = 2**16
CARRIED = ("edge_weight", "edge_attr")
T = TypeVar("T")
# PyG's Sequential has parameters without a kind, all of them positional.
_POSITIONAL = (None, inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_WITHOUT = {"edge_weight": "without_weights()", "edge_attr": "without_edge_attr()"}


def check_all_features(graph: Graph) -> None:
    """Refuse a graph with features beyond `LARGEST_FEATURE`."""
    for start in range(0, graph.num_nodes, _AT_A_TIME):
        positions = np.arange(start, min(start + _AT_A_TIME, graph.num_nodes), dtype=np.int64)
        check_features(graph, graph.ids_at(positions))


def check_features(graph: Graph, nodes: Ints) -> None:
    """Refuse features of some nodes (ids) beyond `LARGEST_FEATURE`."""
    ends, _, values = feature_rows(graph.table, graph.places(nodes))
    if not len(values) or max(-values.min(), values.max()) <= LARGEST_FEATURE:
        return
    first = int(np.flatnonzero(np.abs(values) > LARGEST_FEATURE)[0])
    node = nodes[np.searchsorted(ends, first, side="right") - 1]
    raise GraphError(
        f"features must be at most {LARGEST_FEATURE:g} in magnitude, or training overflows "
        f"(found {values[first]:g} at node {node}).",
        hint="scale the columns, for instance to mean 0 and deviation 1.",
    )


def check_classes(config: TrainingConfig, graph: Graph) -> None:
    """Refuse weights of classes that the graph does not have."""
    if config.loss == "huber":
        raise ParameterError("loss 'huber' of Training is for numbers; these are classes.")
    weights, num_classes = config.class_weights, graph.num_classes
    if weights is None or isinstance(weights, str):
        return
    by_class = [pair[0] for pair in weights if isinstance(pair, tuple)]
    if by_class and are_ids(graph.class_names):
        wanted = "a list of weights in the order of classes_, as classes have ids of their own"
    elif by_class and max(by_class) >= num_classes:
        wanted = f"weights of classes below {num_classes}, as the graph has them"
    elif not by_class and len(weights) != num_classes:
        wanted = f"{num_classes} weights, one for each class of the graph"
    else:
        return
    raise ParameterError.of("class_weights", "Training", wanted, weights)


def accepted(module: nn.Module, carried: Mapping[str, T]) -> dict[str, T]:
    """Return what the module's ``forward`` takes of what edges carry, by name."""
    names = _parameters(module)
    # PyG's own models have both arguments, and say which of them their layers use.
    return {
        name: values
        for name, values in carried.items()
        if name in names and getattr(module, f"supports_{name}", True)
    }


def _parameters(module: nn.Module) -> Mapping[str, Any]:
    """Return the parameters of a module's ``forward``, by name."""
    sequential = getattr(getattr(module, "signature", None), "param_dict", None)
    if sequential is not None:  # PyG's Sequential
        return dict(sequential)
    try:
        return inspect.signature(module.forward).parameters
    except (TypeError, ValueError):
        return {}


def _carried(graph: Graph) -> list[str]:
    """Return the names of what the edges of a graph carry."""
    there = graph.edge_kind.weighted, graph.edge_kind.columns > 0
    return [name for name, is_there in zip(CARRIED, there, strict=True) if is_there]


def check_edges(model: Model, graph: Graph) -> None:
    """Refuse a graph whose edges the model can't use; warn of what a user's module ignores."""
    if isinstance(model, CustomModel):
        if not model.is_own:
            raise GraphError(
                f"model '{model.name}' is for typed graphs (graph '{graph.name}' has none).",
                hint="use model='gcn'.",
            )
        _check_module(model, graph)
        return
    declared = None if model.closed_form else declaration_of(model.kind)
    weighs = declared is not None and declared.weighs_edges
    refused = [name for name in _carried(graph) if name != "edge_weight" or not weighs]
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


def check_new_weights(model: Model, graph: Graph, values: Values) -> None:
    """Refuse new edges that the model can't use; ``values`` is what they carry."""
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
    from grapheraser.engines import reference

    with reference.reproducible(0):
        module = _make_module(model, graph)
    given = dict.fromkeys(_carried(graph))
    _check_forward(model, module, graph, given)
    ignored = given.keys() - accepted(module, given).keys()
    if ignored:
        names = [name for name in CARRIED if name in ignored]
        ways = ", ".join(f"graph.{_WITHOUT[name]}" for name in names)
        warnings.warn(
            f"{model.name} ignores the {' and '.join(map(repr, names))} of the graph: its "
            f"forward does not take them. Add the argument, or take them off with {ways}.",
            stacklevel=2,
        )


def check_typed_module(model: CustomModel, graph: Graph) -> None:
    """Refuse a module that typed graphs can't use; warn where it ignores weights of relations."""
    from grapheraser.engines import reference

    with reference.reproducible(0):
        module: Any = _make_module(model, graph)
    positional = [p for p in _parameters(module.module).values() if p.kind in _POSITIONAL]
    if len(positional) < 2:
        raise ParameterError(
            f"the forward of {model.name} must take x_dict and edge_index_dict.",
            hint="on a typed graph model= takes a factory (types, out_channels); types.metadata is "
            "what PyG's to_hetero takes.",
        )
    types = graph.types
    if types is not None and any(types.weighted) and not module.weighs:
        warnings.warn(
            f"{model.name} ignores the weights of relations: its forward does not take "
            "edge_weight_dict.",
            stacklevel=2,
        )


def _make_module(model: CustomModel, graph: Graph) -> nn.Module:
    """Make a module; refuse a factory that can't."""
    from torch import nn

    given = "in_channels" if graph.types is None else "types"
    hint = f"model= takes a class or function ({given}, out_channels) -> torch.nn.Module."
    try:
        module = model.module(graph.num_features, graph.num_classes, graph.types)
    except TypeError as error:
        what = "numbers of features" if graph.types is None else "types"
        raise ParameterError(
            f"{model.name} can't be called with the {what} and classes: {error}.",
            hint=hint,
        ) from error
    if not isinstance(module, nn.Module):
        raise ParameterError(
            f"{model.name} must make a torch.nn.Module. Got {type(module).__name__}.", hint=hint
        )
    return module


def _check_forward(
    model: CustomModel, module: nn.Module, graph: Graph, given: Mapping[str, Any]
) -> None:
    """Refuse a forward that needs what we can't give, or that can't take what we do."""
    parameters = list(_parameters(module).values())
    if not parameters:  # code whose arguments Python can't tell
        return
    hint = (
        "forward takes x and edge_index first, then edge_weight and edge_attr by name where the "
        "graph has them."
    )
    positional = [p for p in parameters if getattr(p, "kind", None) in _POSITIONAL]
    starred = any(getattr(p, "kind", None) is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    if len(positional) < 2 and not starred:
        names = ", ".join(p.name for p in parameters)
        raise ParameterError(
            f"the forward of {model.name} must take x and edge_index. It takes ({names}).",
            hint=hint,
        )
    others = [p for p in parameters if p not in positional[:2]]
    needed = [p.name for p in others if _is_needed(p) and p.name not in given]
    if needed:
        raise ParameterError(
            f"the forward of {model.name} needs {', '.join(map(repr, needed))}, which graph "
            f"'{graph.name}' does not have.",
            hint=hint,
        )


def _is_needed(parameter: Any) -> bool:
    """Tell whether a forward can't be called without this parameter."""
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    is_starred = getattr(parameter, "kind", None) in starred
    return parameter.default is inspect.Parameter.empty and not is_starred
