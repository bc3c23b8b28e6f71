"""An eraser bound to a graph, so that scikit-learn can split its nodes: X is node ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.eraser.conventions import Estimator
from grapheraser.errors import NotFittedError
from grapheraser.graph import TEST, TRAIN, Graph

if TYPE_CHECKING:
    from grapheraser.nodes.eraser import GraphEraser

_NESTED = "eraser__"


class OnGraph(Estimator):
    """A classifier, or regressor, of the nodes of one graph; made by `GraphEraser.on`.

    `fit` makes training nodes of the ids that it is given and test nodes of all other training
    nodes, which keep their edges and features but not their labels. Works with `cross_val_score`,
    `GridSearchCV` (``eraser__num_shards`` and so on) and any scorer.

    Args:
        eraser: the arguments to fit with; it is never fitted itself.
        graph: the nodes, edges, features and labels.

    Attributes:
        eraser_: the fitted `GraphEraser`, which forgets as any other.
        classes_: what `predict` answers with.
    """

    def __init__(self, eraser: GraphEraser, graph: Graph) -> None:
        self.eraser = eraser
        self.graph = graph

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments; with ``deep`` also the eraser's, under ``eraser__NAME``."""
        own = super().get_params()
        nested = self.eraser.get_params() if deep else {}
        return own | {f"{_NESTED}{name}": value for name, value in nested.items()}

    def set_params(self, **params: Any) -> Self:
        """Change arguments, or with ``eraser__NAME`` those of the eraser."""
        for name in [name for name in params if name.startswith(_NESTED)]:
            self.eraser.set_params(**{name.removeprefix(_NESTED): params.pop(name)})
        return super().set_params(**params)

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Fit an eraser with these training nodes; labels are the graph's, so ``y`` is not read."""
        del y
        nodes = self.graph.ids_of(X)
        role = self.graph.role.copy()
        role[role == TRAIN] = TEST
        role[self.graph.positions(nodes)] = TRAIN
        eraser = type(self.eraser)(**self.eraser.get_params())
        self._fitted = eraser.fit(self.graph.with_fields(role=role))
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        return self.eraser.tags_for(self.graph.label_kind)

    @property
    def eraser_(self) -> GraphEraser:
        if "_fitted" not in self.__dict__:
            raise NotFittedError("this OnGraph is not fitted yet.", hint="call fit(ids) first.")
        return self._fitted

    @property
    def classes_(self) -> NDArray[Any]:
        return self.eraser_.classes_

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each node, by id."""
        return self.eraser_.predict(X)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return posteriors ``[len(X), num_classes]`` by node id."""
        return self.eraser_.predict_proba(X)

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Return the micro F1 on labelled nodes, by id; of numbers R2."""
        del y
        return self.eraser_.score(X)
