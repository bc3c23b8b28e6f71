"""A method for the arena that is not ours: a GCN of PyG, fine-tuned on what is left.

    grapheraser arena run examples.fine_tuning:FineTuning --datasets cora --requests nodes

Three calls are all that the arena needs. It claims nothing, so it does not set `exact`.
"""

from typing import Any

import torch
from numpy.typing import NDArray
from torch_geometric.nn import GCN

import grapheraser as ge


class FineTuning:
    """Some more epochs on the rest, from the weights that were there."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, graph: ge.Graph) -> None:
        """Train from scratch."""
        torch.manual_seed(self.seed)
        self.graph = graph
        self.model = GCN(graph.num_features, 16, 2, graph.num_classes, dropout=0.5)
        self._train(epochs=60)

    def unlearn(self, request: Any) -> None:
        """Drop the data, and train a little more."""
        self.graph = self.graph.without(request)
        self._train(epochs=10)

    def predict_proba(self, nodes: NDArray[Any]) -> NDArray[Any]:
        """Answer for nodes of the graph that is left."""
        data, at = self.graph.to_pyg(), torch.from_numpy(self.graph.positions(nodes))
        with torch.no_grad():
            answers = self.model.eval()(data.x, data.edge_index).softmax(dim=1)
        return answers[at].numpy()

    def _train(self, epochs: int) -> None:
        data, model = self.graph.training_graph.to_pyg(), self.model.train()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
        for _ in range(epochs):
            optimizer.zero_grad()
            answers = model(data.x, data.edge_index)
            torch.nn.functional.cross_entropy(answers, data.y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
