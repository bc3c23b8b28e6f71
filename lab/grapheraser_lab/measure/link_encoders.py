"""GNN encoders for links in plain PyTorch Geometric: what the closed form is measured against.

Two layers and the scalar product of the nodes' rows, trained on all edges against as many random
pairs in each epoch. Learning rate and dropout are the caller's to choose by the AUC on validation
edges, which chooses the epoch here.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, SAGEConv

from grapheraser.datasets import load_dataset
from grapheraser.graph import Edges, Graph, Nodes
from grapheraser.links.metrics import LinkScore, link_score
from grapheraser.seeding import generator

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


# -- edges to learn from, to choose by and to test with, and as many pairs without an edge ------


TEST, VALIDATION = 0.1, 0.05

Pairs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """A graph without some of its edges, and pairs to judge by.

    Attributes:
        graph: with the edges to learn from.
        validation: ids ``[m, 2]``, half of them edges.
        test: likewise.
    """

    graph: Graph
    validation: Pairs
    test: Pairs

    @staticmethod
    def labels(pairs: Pairs) -> NDArray[np.int64]:
        """1 for the first half, the edges, and 0 for the others."""
        return (np.arange(len(pairs)) < len(pairs) // 2).astype(np.int64)

    def without(self, request: Nodes | Edges) -> LinkSplit:
        """Where something was forgotten: pairs with a node that is gone are left out."""
        graph = self.graph.without(request)
        return LinkSplit(graph, _kept(graph, self.validation), _kept(graph, self.test))


@lru_cache(maxsize=2)
def link_split(name: str, seed: int) -> LinkSplit:
    """A tenth of the edges to test with, a twentieth to choose by, drawn by the seed."""
    graph = load_dataset(name)
    rng = generator(seed, "links", "split")
    edges = graph.edges[rng.permutation(graph.num_edges)]
    test, validation = int(TEST * len(edges)), int(VALIDATION * len(edges))
    held_out = edges[: test + validation]
    others = _others(graph, len(held_out), rng)
    return LinkSplit(
        graph.without(Edges(held_out)),
        np.concatenate([held_out[test:], others[test:]]),
        np.concatenate([held_out[:test], others[:test]]),
    )


def forgotten(graph: Graph, what: str, share: float, seed: int) -> Nodes | Edges:
    """A share of the nodes, or of the edges; a larger share contains smaller ones."""
    rng = generator(seed, "links", "forget", what)
    if what == "nodes":
        return Nodes(rng.permutation(graph.ids)[: max(1, round(share * graph.num_nodes))])
    edges = graph.edges
    return Edges(edges[rng.permutation(len(edges))[: max(1, round(share * len(edges)))]])


def _others(graph: Graph, count: int, rng: np.random.Generator) -> Pairs:
    """Different pairs of nodes without an edge, u < v."""
    n = graph.num_nodes
    edges = graph.sources.astype(np.int64) * n + graph.indices
    found = np.zeros(0, dtype=np.int64)
    while len(found) < count:
        drawn = np.sort(rng.integers(n, size=(2 * count, 2)), axis=1)
        keys = drawn[:, 0] * n + drawn[:, 1]
        keys = keys[(drawn[:, 0] != drawn[:, 1]) & ~np.isin(keys, edges)]
        keys = np.concatenate([found, keys])
        found = keys[np.sort(np.unique(keys, return_index=True)[1])]
    chosen = found[:count]
    return np.stack([graph.ids[chosen // n], graph.ids[chosen % n]], axis=1)


def _kept(graph: Graph, pairs: Pairs) -> Pairs:
    """The pairs whose nodes are there, as many edges as others."""
    found = graph.contains(pairs.ravel())
    there = found[::2] & found[1::2]
    half = len(pairs) // 2
    edges, others = pairs[:half][there[:half]], pairs[half:][there[half:]]
    count = min(len(edges), len(others))
    return np.concatenate([edges[:count], others[:count]])
