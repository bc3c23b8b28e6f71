"""How long relearning an aggregation takes after a request, beside fitting it afresh.

Only the aggregation is timed, not the training of shards. Times are processor time of this process:
a busy machine stretches the wall clock, not these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from grapheraser.aggregation import MEMBERS, Aggregator, Change, LearnedAggregator, PooledAggregator
from grapheraser.datasets import default_shards, load_dataset
from grapheraser.eraser.plan import plan_removal
from grapheraser.eraser.state import State, change_state
from grapheraser.graph import Nodes, coalesce
from grapheraser.nodes import GraphEraser
from grapheraser.reports.wording import duration
from grapheraser.seeding import generator
from grapheraser_lab.figures.tables import filled
from grapheraser_lab.timing import timed

AGGREGATORS: dict[str, Aggregator] = {
    "learned": LearnedAggregator(),
    "counts": PooledAggregator(("words", "labels", "edges"), shards=False),
    "closed-form": PooledAggregator(MEMBERS, shards=False),
    "pooled": PooledAggregator(MEMBERS),
}


def run(
    datasets: Iterable[str] = ("physics",),
    models: Iterable[str] = ("gcn", "sage"),
    *,
    requests: int = 20,
    partition: str = "hash",
    epochs: int = 100,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Forget random training nodes one by one."""
    rows = []
    for name in datasets:
        for model in models:
            progress(f"{name} {model}")
            options = {"num_shards": default_shards(name), "partition": partition, "seed": seed}
            rows += _measure(load_dataset(name), model, epochs, requests, options)
    return {"benchmark": "relearning", "rows": rows}


def _measure(
    graph: Any, model: str, epochs: int, requests: int, options: dict[str, Any]
) -> list[dict[str, Any]]:
    eraser = GraphEraser(model=model, aggregation="mean", epochs=epochs, **options).fit(graph)
    settings, state = eraser._snapshot.settings, eraser._snapshot.state
    start, steps = state.ensemble, []
    order = generator(options["seed"], "bench", "relearning").permutation(graph.train_nodes)
    for node in order[: requests + 1]:
        state, change = _forget(settings, state, int(node))
        steps.append((state.ensemble, change))
    rows = []
    for name, rule in AGGREGATORS.items():
        # One after the other: each keeps to its own part of the cache.
        fitted, spent = rule.fit(start), []
        for ensemble, change in steps:
            fitted, seconds = timed(rule.refit, fitted, ensemble, change)
            spent.append(seconds)
        fresh, afresh = timed(rule.fit, state.ensemble)
        same = all(
            fresh.tensors[key].tobytes() == tensor.tobytes()
            for key, tensor in fitted.tensors.items()
        )
        times = 1000 * np.array(spent[1:])  # the first compiles
        rows.append(
            {
                "dataset": graph.name,
                "model": model,
                "shards": len(state.shards),
                "aggregation": name,
                "identical": same,
                "median_ms": float(np.median(times)),
                "p95_ms": float(np.quantile(times, 0.95)),
                "afresh_ms": 1000 * afresh,
            }
        )
    return rows


def _forget(settings: Any, state: State, node: int) -> tuple[State, Change]:
    removal = coalesce(state.graph, Nodes([node]))
    plan = plan_removal(state.graph, state.partition, removal)
    graph = state.graph.without(removal)
    cut = state.partition.without(plan.trained)
    after, _ = change_state(
        settings, state, graph, cut, retrain=plan.retrain, touched=plan.touched, gone=removal.nodes
    )
    return after, Change(state.ensemble, frozenset(plan.retrain), plan.touched, removal.nodes)


def markdown(report: dict[str, Any]) -> str:
    """One row per data set, model and aggregation."""
    header = "data | model | shards | aggregation | median | 95 % | afresh | same bits"
    row = (
        "{dataset} | {model} | {shards} | {aggregation} | {median_ms:ms} | {p95_ms:ms} | "
        "{afresh_ms:ms} | {identical:yes}"
    )
    return filled(header, row, report["rows"], words={"ms": lambda value: duration(value / 1000)})
