"""Who was forgotten, and what: the attacks of the audit on every kind of run.

``run`` tells members by one version and by both; ``recovery`` recovers edges, links and features;
``mitigations`` says how much saying less helps; ``partition`` attacks partitions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from grapheraser.audit.attacks.inversion import inversion_attack
from grapheraser.audit.attacks.lira import lira
from grapheraser.audit.attacks.membership import attack
from grapheraser.audit.attacks.partition_leak import partition_leak
from grapheraser.audit.attacks.reconstruction import reconstruction_attack
from grapheraser.audit.attacks.shadow import KEPT, RECUT
from grapheraser.audit.mitigations import CANDIDATES, Mitigation
from grapheraser.bench.attack_tables import Report, markdown
from grapheraser.bench.attacked import Attacked, run_under_attack
from grapheraser.datasets import default_shards, load_dataset
from grapheraser.environment import versions
from grapheraser.graph import Graph

__all__ = ["markdown", "mitigations", "partition", "recovery", "run"]

Progress = Callable[[str], None]

POOLED: dict[str, dict[str, Any]] = {
    "default": {},
    "closed-form": {"model": "closed-form"},
    "shards alone": {"global_expert": False},
}
MEAN = {"aggregation": "mean", "global_expert": False}
CONFIGURATIONS = {
    **POOLED,
    "gcn, mean": {**MEAN},
    "sage, mean": {**MEAN, "model": "sage"},
    "gat, mean": {**MEAN, "model": "gat"},
    "gin, mean": {**MEAN, "model": "gin"},
    "gcn, mean, blpa": {**MEAN, "partition": "blpa"},
    "gcn, mean, metis": {**MEAN, "partition": "metis"},
}
PARTITIONS = ("hash", "random", "blpa", "bekm", "metis")
BATCH = 10
NAME = "attacks"


def _each(
    datasets: Iterable[str], labels: Iterable[str], root: str | Path | None, progress: Progress
) -> Iterator[tuple[str, Graph, str]]:
    """Every data set with every label, told before its turn."""
    chosen = list(labels)
    for name in datasets:
        graph = load_dataset(name, root)
        for label in chosen:
            progress(f"{name}, {label}")
            yield name, graph, label


def run(
    datasets: Iterable[str] = ("cora",),
    *,
    configurations: Iterable[str] = tuple(CONFIGURATIONS),
    requests: int = 80,
    runs: int = 128,
    epochs: int = 100,
    seed: int = 0,
    root: str | Path | None = None,
    progress: Progress = lambda text: None,
) -> Report:
    """Tell who was forgotten, by both versions and by one.

    Args:
        datasets: which data sets.
        configurations: which of `CONFIGURATIONS`.
        requests: for single nodes; for ten nodes at once there are a fifth as many.
        runs: of the attacker's own, for likelihood ratios.
        epochs: of each shard's training.
        seed: of everything.
        root: folder of the data sets.
        progress: told how far it is.
    """
    rows = []
    for name, graph, label in _each(datasets, configurations, root, progress):
        pair = Attacked.fit(
            graph, CONFIGURATIONS[label], dataset=name, epochs=epochs, name=NAME, seed=seed
        )
        single = pair.seen(KEPT, requests=requests)
        batches = pair.seen(KEPT, requests=max(2, 2 * requests // BATCH), nodes_per_request=BATCH)
        looked = lira(pair.target, graph, runs=runs, scenarios=(KEPT, RECUT), seed=seed)
        rows.append(
            {
                "dataset": name,
                "configuration": label,
                "plain": attack(*single, seed=seed).rates.to_dict(),
                "informed": attack(*single, informed=True, seed=seed).rates.to_dict(),
                "batches": attack(*batches, informed=True, seed=seed).rates.to_dict(),
                "likelihood": looked.to_dict(),
            }
        )
    return _report(NAME, rows, requests=requests, batch=BATCH, runs=runs, epochs=epochs)


def recovery(
    datasets: Iterable[str] = ("cora",),
    *,
    candidates: int = 150,
    requests: int = 40,
    epochs: int = 100,
    seed: int = 0,
    root: str | Path | None = None,
    progress: Progress = lambda text: None,
) -> Report:
    """Recover forgotten edges by one version, and links and features of nodes by both.

    Args:
        datasets: which data sets.
        candidates: edges that are forgotten at once.
        requests: nodes that are forgotten one at a time, at random, and of the highest degree.
        epochs: of each shard's training.
        seed: of everything.
        root: folder of the data sets.
        progress: told how far it is.
    """
    rows = []
    for name, graph, label in _each(datasets, POOLED, root, progress):
        target = run_under_attack(graph, POOLED[label], dataset=name, epochs=epochs, seed=seed)
        edges = inversion_attack(target, graph, candidates=candidates, seed=seed).to_dict()
        nodes = reconstruction_attack(target, graph, requests=requests, seed=seed).to_dict()
        rows.append({"dataset": name, "configuration": label, "edges": edges, "nodes": nodes})
    return _report("attacks-recovery", rows, candidates=candidates, requests=requests)


def mitigations(
    datasets: Iterable[str] = ("cora",),
    *,
    requests: int = 80,
    epochs: int = 100,
    seed: int = 0,
    root: str | Path | None = None,
    progress: Progress = lambda text: None,
) -> Report:
    """Tell who was forgotten by both versions, of which less and less is said.

    Args:
        datasets: which data sets.
        requests: for single nodes.
        epochs: of each shard's training.
        seed: of everything.
        root: folder of the data sets.
        progress: told how far it is.
    """
    rows = []
    for name, graph, label in _each(datasets, ("default", "gcn, mean"), root, progress):
        pair = Attacked.fit(
            graph, CONFIGURATIONS[label], dataset=name, epochs=epochs, name=NAME, seed=seed
        )
        seen = pair.seen(KEPT, requests=requests)
        tested = graph.labelled_test_nodes
        answers = pair.target.predict_proba(tested)
        for guard in CANDIDATES:
            found = attack(*seen, mitigation=guard, informed=True, seed=seed)
            right = guard(answers).argmax(axis=1) == graph.labels(tested)
            rows.append(
                {
                    "dataset": name,
                    "configuration": label,
                    "returned": str(guard) if guard != Mitigation() else "everything",
                    "auc": found.rates.auc.to_dict(),
                    "f1": float(right.mean()),
                }
            )
    return _report("attacks-mitigations", rows, requests=requests, epochs=epochs)


def partition(
    datasets: Iterable[str] = ("cora", "citeseer"),
    *,
    candidates: int = 20,
    seed: int = 0,
    root: str | Path | None = None,
    progress: Progress = lambda text: None,
) -> Report:
    """Tell deleted nodes and edges by the partition alone.

    Args:
        datasets: which data sets.
        candidates: deleted nodes, and as many others.
        seed: of everything.
        root: folder of the data sets.
        progress: told how far it is.
    """
    rows = []
    for name, graph, method in _each(datasets, PARTITIONS, root, progress):
        shards = default_shards(name)
        found = partition_leak(graph, method, num_shards=shards, candidates=candidates, seed=seed)
        rows.append({"dataset": name, **found.to_dict()})
    return _report("attacks-partition", rows)


def _report(name: str, rows: list[dict[str, Any]], **facts: Any) -> Report:
    return {"benchmark": name, "versions": versions(), **facts, "rows": rows}
