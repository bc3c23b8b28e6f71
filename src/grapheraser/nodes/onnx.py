"""Shard models as ONNX files, by torch's own exporter (extra ``onnx``)."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from grapheraser.engines.graph_checks import accepted
from grapheraser.errors import MissingExtraError, ParameterError
from grapheraser.graph import Graph

if TYPE_CHECKING:
    from torch import Tensor, nn

# Sizes of the graph that the exporter follows through the module; others do as well afterwards.
_NODES, _EDGES = 20, 50


def onnx_files(
    module: nn.Module, shards: Mapping[int, Mapping[str, Tensor]], graph: Graph
) -> Iterator[tuple[str, bytes]]:
    """Return one file a shard, by name: logits from ``x``, ``edge_index`` and what edges carry.

    The module is followed once, and its weights are exchanged for those of each shard.

    Args:
        module: of any shard, in eval mode.
        shards: state dicts by shard id.
        graph: of the run, for its widths.
    """
    try:
        import onnx_ir
        import onnxscript  # noqa: F401
    except ImportError:
        raise MissingExtraError.of("onnxscript", "onnx", "an ONNX export") from None
    program = _followed(module, graph)
    known = program.model.graph.initializers
    for shard, tensors in shards.items():
        for name, value in tensors.items():
            if name in known:
                known[name].const_value = onnx_ir.tensor(value.numpy(), name=name)
        yield f"shards/{shard}.onnx", program.model_proto.SerializeToString()


def _followed(module: nn.Module, graph: Graph) -> Any:
    """The module as the exporter sees it, for any number of nodes and edges."""
    import torch

    nodes, edges = torch.export.Dim("nodes", min=2), torch.export.Dim("edges", min=2)
    x = torch.zeros(_NODES, graph.num_features)
    ends = torch.arange(2 * _EDGES).reshape(2, _EDGES) % _NODES
    from grapheraser.engines.batches import edge_tensors

    carried = accepted(module, edge_tensors(graph))
    more = {name: torch.ones(_EDGES, *values.shape[1:]) for name, values in carried.items()}
    shapes = ({0: nodes}, {1: edges}, *({0: edges} for _ in more))
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the inside of torch's exporter
            return torch.onnx.export(
                module,
                (x, ends),
                kwargs=more,
                dynamo=True,
                dynamic_shapes=shapes,
                input_names=["x", "edge_index", *more],
                output_names=["logits"],
                verbose=False,
                optimize=False,
            )
    except Exception as error:
        raise ParameterError(
            f"torch's exporter can't write {type(module).__name__} as ONNX: {error}",
            hint="leave ONNX out; the state dicts are all there is to the model.",
        ) from error
