"""Predict from an exported run (`eraser.export(folder)`, model gcn) with plain PyG and NumPy.

python examples/predict_exported.py FOLDER    # prints the id and the class of each node
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from safetensors.numpy import load_file
from safetensors.torch import load_file as load_tensors
from torch import Tensor
from torch_geometric.nn import GCNConv


class GCN(torch.nn.Module):
    """Two layers, as `export.json` describes them."""

    def __init__(self, about: dict[str, Any]) -> None:
        super().__init__()
        model, sizes = about["model"], (about["num_features"], about["num_classes"])
        options = {"add_self_loops": model["self_loops"], "bias": model["bias"]}
        self.conv1 = GCNConv(sizes[0], model["hidden"], **options)
        self.conv2 = GCNConv(model["hidden"], sizes[1], **options)

    def forward(self, x: Tensor, edge_index: Tensor, weight: Tensor | None) -> Tensor:
        return self.conv2(self.conv1(x, edge_index, weight).relu(), edge_index, weight)


def predict(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The ids of all nodes, and their classes."""
    about = json.loads((folder / "export.json").read_text())
    graph, parts = (load_file(folder / f"{name}.safetensors") for name in ("graph", "ensemble"))
    rows = graph["x_data"], graph["x_indices"], graph["x_indptr"]
    x = torch.from_numpy(sp.csr_array(rows, (len(graph["ids"]), about["num_features"])).toarray())
    edges = torch.from_numpy(graph["edge_index"])
    weight = torch.from_numpy(graph["edge_weight"]) if "edge_weight" in graph else None
    mixture = np.zeros_like(parts["expert"])
    for shard in about["shards"]:
        model = GCN(about).eval()
        model.load_state_dict(load_tensors(folder / f"shards/{shard}.safetensors"))
        with torch.no_grad():
            p = model(x, edges, weight).softmax(dim=1).numpy()
        if about["votes"]:
            p = np.eye(p.shape[1])[p.argmax(axis=1)]
        mixture += (parts["weights"] * (parts["asked"] == shard)).sum(axis=1)[:, None] * p
    scores = parts["expert"] + about["shards_weight"] * np.log(np.maximum(mixture, about["least"]))
    return graph["ids"], scores.argmax(axis=1)


if __name__ == "__main__":
    for node, label in zip(*predict(Path(sys.argv[1])), strict=True):
        print(node, label)
