"""A method of links for the arena that is not ours: a GCN encoder, fine-tuned on what is left.

    grapheraser arena run examples.fine_tuning_links:FineTuning --datasets cora --requests edges

As `examples/fine_tuning.py`, but that it names its task and is asked about pairs of nodes.
"""

from typing import Any

import torch
from numpy.typing import NDArray
from torch_geometric.nn import GCN
from torch_geometric.utils import negative_sampling

import grapheraser as ge


class FineTuning:
    """Some more epochs on the rest, from the weights that were there."""

    task = "links"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, graph: ge.Graph) -> None:
        """Train from scratch."""
        torch.manual_seed(self.seed)
        self.graph = graph
        self.model = GCN(graph.num_features, 128, 2, 64, dropout=0.5)
        self._train(epochs=100)

    def unlearn(self, request: Any) -> None:
        """Drop the data, and train a little more."""
        self.graph = self.graph.without(request)
        self._train(epochs=10)

    def predict_proba(self, pairs: NDArray[Any]) -> NDArray[Any]:
        """Answer how likely each of the pairs ``[m, 2]`` is an edge ``[m]``."""
        data, at = self.graph.to_pyg(), self.graph.positions(pairs.ravel()).reshape(-1, 2)
        with torch.no_grad():
            rows = self.model.eval()(data.x, data.edge_index)
        return (rows[at[:, 0]] * rows[at[:, 1]]).sum(dim=1).sigmoid().numpy()

    def _train(self, epochs: int) -> None:
        data, model = self.graph.to_pyg(), self.model.train()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(epochs):
            optimizer.zero_grad()
            rows, known = model(data.x, data.edge_index), data.edge_index
            ends = torch.cat([known, negative_sampling(known, data.num_nodes)], dim=1)
            truth = (torch.arange(ends.shape[1]) < known.shape[1]).float()
            scores = (rows[ends[0]] * rows[ends[1]]).sum(dim=1)
            torch.nn.functional.binary_cross_entropy_with_logits(scores, truth).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
