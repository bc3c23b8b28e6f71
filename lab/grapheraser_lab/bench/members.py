"""What closed-form members are worth, on validation nodes, and what they cost a request.

Validation nodes are an eighth of the training nodes; test nodes are taken out before, so choices
between members look at none of them. Requests of all selections take turns on the same nodes: what
else the machine does falls on all alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from grapheraser.aggregation.members import BEST, MEMBERS
from grapheraser.datasets import generate_graph, load_dataset
from grapheraser.environment import versions
from grapheraser.graph import Nodes
from grapheraser.nodes import GraphEraser
from grapheraser.seeding import generator
from grapheraser_lab.bench.stages import FEATURES, is_generated, plan_of
from grapheraser_lab.bench.utility import OTHERS
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.framework import published as paper
from grapheraser_lab.timing import processor_seconds

USUAL, BOTH = "the default", "both"
SELECTIONS = {
    USUAL: MEMBERS,
    "`interactions` for `pattern`": tuple(name for name in BEST if name != "surprises"),
    "`surprises` beside": (*MEMBERS, "surprises"),
    BOTH: BEST,
}
_SHARE, _FIRST = 1 / 8, 3
_SCORES = ("f1", "macro_f1", "log_loss", "calibration_error", "best_power")
# Powers of all probabilities; the best of them on the very nodes that it is judged by.
_POWERS = np.linspace(0.5, 2.0, 31)


def run(
    datasets: Iterable[str] = (*paper.DATASETS, *OTHERS),
    *,
    seeds: int = 1,
    requests: int = 40,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Score every selection of members, and time its requests.

    Args:
        datasets: which data sets; of generated graphs, numbers of edges (``1e7``): their requests
            are timed with the default and with both members alone.
        seeds: of the splits: 0, 1, 2, ...
        requests: nodes to forget one by one.
        progress: told how far it is.
    """
    rows = []
    for name in datasets:
        for seed in range(seeds):
            progress(f"{name}, split {seed}")
            rows += _measured(name, seed, requests)
    return {"benchmark": "members", "requests": requests, "versions": versions(), "rows": rows}


def _measured(name: str, seed: int, requests: int) -> list[dict[str, Any]]:
    generated = is_generated(name)
    graph = (
        generate_graph(plan_of(name).num_nodes, num_features=FEATURES)
        if generated
        else load_dataset(name, split_seed=seed)
    )
    graph = graph.training_graph.with_split(test_share=_SHARE, seed=seed)
    labels = (USUAL, BOTH) if generated else SELECTIONS
    erasers = {
        label: GraphEraser("closed-form", members=SELECTIONS[label], seed=seed).fit(graph)
        for label in labels
    }
    scores = {
        label: eraser.evaluate() | {"best_power": _best_power(eraser)}
        for label, eraser in erasers.items()
    }
    seconds: dict[str, list[float]] = {label: [] for label in erasers}
    nodes = generator(seed, "bench", "members").permutation(graph.train_nodes)
    for node in nodes[: _FIRST + requests].tolist():
        for label, eraser in erasers.items():
            seconds[label].append(processor_seconds(eraser.unlearn, Nodes([node])))
    return [
        {"dataset": name, "seed": seed, "members": label, "seconds": seconds[label][_FIRST:]}
        | {score: scores[label][score] for score in _SCORES}
        for label in erasers
    ]


def _best_power(eraser: GraphEraser) -> float:
    """Return the log loss at the temperature that suits the validation nodes best."""
    graph = eraser.graph_
    labels = graph.y[graph.positions(graph.test_nodes)]
    logs = np.log(np.maximum(eraser.predict_proba(graph.test_nodes), 1e-30).astype(np.float64))
    own = np.arange(len(labels)), labels
    raised = (power * logs for power in _POWERS)
    return float(min(np.mean(np.log(np.exp(z).sum(axis=1)) - z[own]) for z in raised))


def markdown(report: dict[str, Any]) -> str:
    """One row per selection: means over graphs, and each graph's F1, log loss and request."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in report["rows"]:
        found.setdefault((row["dataset"], row["members"]), []).append(row)
    names = list(dict.fromkeys(name for name, _ in found))
    graphs = [name for name in names if not is_generated(name)]

    def mean(name: str, label: str, score: str) -> float:
        return float(np.mean([row[score] for row in found[name, label]]))

    def cell(name: str, label: str) -> str:
        if (name, label) not in found:
            return ""
        times = mean(name, label, "seconds") / mean(name, USUAL, "seconds")
        return f"{mean(name, label, 'f1'):.3f}, {mean(name, label, 'log_loss'):.3f}, {times:.2f}"

    def over_graphs(label: str) -> str:
        scores = (np.mean([mean(name, label, s) for name in graphs]) for s in ("f1", "log_loss"))
        return ", ".join(f"{score:.3f}" for score in scores)

    rows = [(name, *(cell(name, label) for label in SELECTIONS)) for name in names]
    if graphs:
        rows.append(("mean of graphs", *map(over_graphs, SELECTIONS)))
    gained = [mean(name, BOTH, "log_loss") - mean(name, BOTH, "best_power") for name in names]
    base = ", ".join(f"{name} {1e3 * mean(name, USUAL, 'seconds'):.1f}" for name in names)
    return (
        markdown_table(("data set", *SELECTIONS), rows)
        + "\n\nEach cell: F1, log loss, and processor time of a request over the default's, which"
        + f" is, in ms: {base}. At the temperature that suits these very nodes best, the log loss"
        + f" of both would be {np.mean(gained):.4f} smaller on average, {max(gained):.4f} at most."
    )
