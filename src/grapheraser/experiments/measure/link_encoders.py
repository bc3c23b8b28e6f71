"""GNN encoders for links in plain PyTorch Geometric: what the closed form is measured against.

Two layers and the scalar product of the nodes' rows, trained on all edges against as many random
pairs in each epoch. Learning rate and dropout are the caller's to choose by the AUC on validation
edges, which chooses the epoch here.
"""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, SAGEConv

from grapheraser.experiments.measure.link_split import LinkSplit
from grapheraser.graph import Graph
from grapheraser.links.metrics import LinkScore, link_score

CONVOLUTIONS = {"gcn": GCNConv, "sage": SAGEConv}
HIDDEN, WIDTH = 128, 64
# The AUC on validation edges is looked at every so many epochs; so often without a better one.
_EVERY, _PATIENCE = 5, 10


class Encoder(nn.Module):
    """Two convolutions, with dropout before each."""

    def __init__(self, kind: str, in_channels: int, dropout: float) -> None:
        super().__init__()
        convolution = CONVOLUTIONS[kind]
        self.first, self.second = convolution(in_channels, HIDDEN), convolution(HIDDEN, WIDTH)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Rows ``[n, WIDTH]``."""
        x = F.dropout(x, self.dropout, self.training)
        x = F.relu(self.first(x, edge_index))
        x = F.dropout(x, self.dropout, self.training)
        rows: Tensor = self.second(x, edge_index)
        return rows


def trained_encoder(
    split: LinkSplit,
    kind: str,
    *,
    lr: float,
    dropout: float,
    epochs: int,
    seed: int,
    device: str = "cpu",
) -> dict[str, Any]:
    """Train one encoder; its AUC on the validation pairs, its score on the test pairs, seconds."""
    torch.manual_seed(seed)
    graph = split.graph
    x, edge_index = _tensors(graph, device)
    once = edge_index[:, edge_index[0] < edge_index[1]]
    module = Encoder(kind, graph.num_features, dropout).to(device)
    optimizer = torch.optim.Adam(module.parameters(), lr=lr)
    labels = torch.cat([torch.ones(once.shape[1]), torch.zeros(once.shape[1])]).to(device)
    best, best_auc, waited, started = (
        copy.deepcopy(module.state_dict()),
        -1.0,
        0,
        time.perf_counter(),
    )
    for epoch in range(epochs):
        module.train()
        optimizer.zero_grad()
        rows = module(x, edge_index)
        others = torch.randint(graph.num_nodes, once.shape, device=device)
        pairs = torch.cat([once, others], dim=1)
        logits = (rows[pairs[0]] * rows[pairs[1]]).sum(dim=1)
        F.binary_cross_entropy_with_logits(logits, labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if (epoch + 1) % _EVERY == 0 or epoch + 1 == epochs:
            auc = _score(module, x, edge_index, graph, split.validation).auc
            waited += 1
            if auc > best_auc:
                best, best_auc, waited = copy.deepcopy(module.state_dict()), auc, 0
            if waited == _PATIENCE:
                break
    seconds = time.perf_counter() - started
    module.load_state_dict(best)
    score = _score(module, x, edge_index, graph, split.test)
    return {"validation_auc": best_auc, **score.to_dict(), "seconds": seconds}


def _tensors(graph: Graph, device: str) -> tuple[Tensor, Tensor]:
    """Features at length 1 by row, as is usual for bags of words, and the edges."""
    dense = graph.x.toarray()
    dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    return torch.from_numpy(dense).to(device), torch.from_numpy(graph.edge_index).to(device)


def _score(
    module: nn.Module, x: Tensor, edge_index: Tensor, graph: Graph, pairs: NDArray[np.int64]
) -> LinkScore:
    module.eval()
    with torch.no_grad():
        rows = module(x, edge_index).cpu().numpy().astype(np.float64)
    at = graph.positions(pairs.ravel()).reshape(-1, 2)
    scores = np.einsum("ij,ij->i", rows[at[:, 0]], rows[at[:, 1]])
    # A training that blew up has learned nothing.
    return link_score(np.nan_to_num(scores), LinkSplit.labels(pairs).astype(bool))
