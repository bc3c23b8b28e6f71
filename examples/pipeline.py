"""A scikit-learn pipeline on rows that forget.

    python examples/pipeline.py

The embedder is a step like any other: `GridSearchCV` sets its arguments, and it can be cloned.
What is fitted on its rows is yours: after an erasure it is fitted again, on those that are there.
"""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import grapheraser as ge


def fitted(graph: ge.Graph) -> GridSearchCV:
    """Choose the width of rows by cross-validation, and learn the classes of nodes from them."""
    rows = ge.Embedder().on(graph)
    pipeline = make_pipeline(rows, StandardScaler(), LogisticRegression(max_iter=1000))
    search = GridSearchCV(pipeline, {"noderows__embedder__width": [32, 64]}, cv=3)
    return search.fit(graph.train_nodes, graph.labels(graph.train_nodes))


def main() -> None:
    """Learn, forget ten nodes, and learn again from what is left."""
    graph = ge.load_dataset("demo")
    search = fitted(graph)
    embedder = search.best_estimator_[0].embedder_
    receipt = embedder.unlearn(ge.Nodes(graph.train_nodes[:10]))
    print(f"{receipt.statement}: {len(receipt.changed)} rows moved")
    left = graph.without(ge.Nodes(graph.train_nodes[:10]))
    test = left.labelled_test_nodes
    print(f"F1 {fitted(left).score(test, left.labels(test)):.3f} on what is left")


if __name__ == "__main__":
    main()
