"""Who was forgotten, and what: the attacks of the audit on every kind of run.

``run`` tells members by one version and by both; ``recovery`` recovers edges, links and features;
``mitigations`` says how much saying less helps; ``partition`` attacks partitions alone; ``leaks``
puts four attacks to each part of the ensemble, ``refresh`` attacks each policy of fresh seeds.

All of them take the data sets, the ``epochs`` of each shard's training, the ``seed`` of everything
and ``progress``, which is told how far it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from grapheraser.audit.attacks.edges import edge_attack
from grapheraser.audit.attacks.lira import lira
from grapheraser.audit.attacks.membership import attack
from grapheraser.audit.attacks.partition_leak import partition_leak
from grapheraser.audit.attacks.recovery import inversion_attack, reconstruction_attack
from grapheraser.audit.attacks.shadow import KEPT, KEPT_RESEEDED, RECUT, REFRESHED
from grapheraser.datasets import default_shards, load_dataset
from grapheraser.graph import Graph
from grapheraser.nodes.mitigations import CANDIDATES, Mitigation
from grapheraser_lab.bench.attack_tables import Report, markdown
from grapheraser_lab.bench.attacked import Attacked, label_attack, run_under_attack
from grapheraser_lab.timing import swept

__all__ = ["leaks", "markdown", "mitigations", "partition", "recovery", "refresh", "run"]

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
MEMBERS: dict[str, dict[str, Any]] = {
    "shards alone": {"global_expert": False},
    "features alone": {"model": "closed-form", "members": ("features",)},
    "words, labels, edges": {"model": "closed-form", "members": ("words", "labels", "edges")},
    "closed-form": {"model": "closed-form"},
    "default": {},
}
# Those of them that are attacked under every policy of fresh seeds.
SEEDED = ("shards alone", "default")
POLICIES = {"none": KEPT, "touched": KEPT_RESEEDED, "all": REFRESHED}
BATCH = 10
NAME = "attacks"


def _each(
    datasets: Iterable[str], labels: Iterable[str], progress: Progress
) -> Iterator[tuple[str, Graph, str]]:
    """Every data set with every label, told before its turn."""
    chosen = list(labels)
    for name in datasets:
        graph = load_dataset(name)
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
    progress: Progress = lambda text: None,
) -> Report:
    """Tell who was forgotten, by both versions and by one.

    ``configurations``: which of `CONFIGURATIONS`.
    ``requests``: for single nodes; for ten nodes at once there are a fifth as many.
    ``runs``: of the attacker's own, for likelihood ratios.
    """

    def row(name: str, label: str) -> dict[str, Any]:
        graph = load_dataset(name)
        pair = Attacked.fit(
            graph, CONFIGURATIONS[label], dataset=name, epochs=epochs, name=NAME, seed=seed
        )
        single = pair.seen(KEPT, requests=requests)
        batches = pair.seen(KEPT, requests=max(2, 2 * requests // BATCH), nodes_per_request=BATCH)
        looked = lira(pair.target, graph, runs=runs, scenarios=(KEPT, RECUT), seed=seed)
        return {
            "plain": attack(*single, seed=seed).rates.to_dict(),
            "informed": attack(*single, informed=True, seed=seed).rates.to_dict(),
            "batches": attack(*batches, informed=True, seed=seed).rates.to_dict(),
            "likelihood": looked.to_dict(),
        }

    rows = swept(row, progress, dataset=datasets, configuration=configurations)
    return _report(NAME, rows, requests=requests, batch=BATCH, runs=runs, epochs=epochs)


def recovery(
    datasets: Iterable[str] = ("cora",),
    *,
    candidates: int = 150,
    requests: int = 40,
    epochs: int = 100,
    seed: int = 0,
    progress: Progress = lambda text: None,
) -> Report:
    """Recover forgotten edges by one version, and links and features of nodes by both.

    ``candidates``: edges that are forgotten at once.
    ``requests``: nodes that are forgotten one at a time, at random, and of the highest degree.
    """

    def row(name: str, label: str) -> dict[str, Any]:
        graph = load_dataset(name)
        target = run_under_attack(graph, POOLED[label], dataset=name, epochs=epochs, seed=seed)
        edges = inversion_attack(target, graph, candidates=candidates, seed=seed)
        nodes = reconstruction_attack(target, graph, requests=requests, seed=seed)
        return {"edges": edges.to_dict(), "nodes": nodes.to_dict()}

    rows = swept(row, progress, dataset=datasets, configuration=POOLED)
    return _report("attacks-recovery", rows, candidates=candidates, requests=requests)


def mitigations(
    datasets: Iterable[str] = ("cora",),
    *,
    requests: int = 80,
    epochs: int = 100,
    seed: int = 0,
    progress: Progress = lambda text: None,
) -> Report:
    """Tell who was forgotten by both versions, of which less and less is said.

    ``requests``: for single nodes.
    """
    rows = []
    for name, graph, label in _each(datasets, ("default", "gcn, mean"), progress):
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
    progress: Progress = lambda text: None,
) -> Report:
    """Tell deleted nodes and edges by the partition alone.

    ``candidates``: deleted nodes, and as many others.
    """

    def row(name: str, method: str) -> dict[str, Any]:
        graph, shards = load_dataset(name), default_shards(name)
        told = partition_leak(graph, method, num_shards=shards, candidates=candidates, seed=seed)
        return told.to_dict()

    rows = swept(row, progress, dataset=datasets, method=PARTITIONS)
    return _report("attacks-partition", rows)


def leaks(
    datasets: Iterable[str] = ("cora",),
    *,
    requests: int = 80,
    runs: int = 24,
    epochs: int = 100,
    seed: int = 0,
    progress: Progress = lambda text: None,
) -> Report:
    """Tell who was forgotten, its label, which edge was forgotten, and which edges there are.

    ``requests``: forgotten nodes, one at a time, of the attacks that see both versions.
    ``runs``: of the attacker's own, for the attack on edges.
    """

    def row(name: str, label: str) -> dict[str, Any]:
        graph = load_dataset(name)
        pair = Attacked.fit(
            graph, MEMBERS[label], dataset=name, epochs=epochs, name="leaks", seed=seed
        )
        eraser, seen = pair.target, pair.seen(KEPT, requests=requests)
        edges = edge_attack(eraser, graph, runs=runs, targets=2, requests=requests, seed=seed)
        return {
            "f1": eraser.score(graph.test_nodes),
            "membership": attack(*seen, informed=True, seed=seed).rates.auc.to_dict(),
            "label": label_attack(eraser, graph, requests=requests, seed=seed),
            "edges": edges.to_dict(),
        }

    rows = swept(row, progress, dataset=datasets, configuration=MEMBERS)
    return _report("leaks", rows)


def refresh(
    datasets: Iterable[str] = ("cora",),
    *,
    requests: int = 80,
    epochs: int = 100,
    seed: int = 0,
    progress: Progress = lambda text: None,
) -> Report:
    """Tell who was forgotten by both versions, under every policy of fresh seeds.

    ``requests``: forgotten nodes, one at a time.
    """
    rows = []
    for name, graph, label in _each(datasets, SEEDED, progress):
        pair = Attacked.fit(
            graph, MEMBERS[label], dataset=name, epochs=epochs, name="refresh", seed=seed
        )
        for policy, how in POLICIES.items():
            seen = pair.seen(how, requests=requests)
            found = {
                key: attack(*seen, informed=informed, seed=seed).rates.auc.to_dict()
                for key, informed in (("plain", False), ("informed", True))
            }
            rows.append({"dataset": name, "configuration": label, "policy": policy, **found})
    return _report("refresh", rows, requests=requests, epochs=epochs)


def _report(name: str, rows: list[dict[str, Any]], **facts: Any) -> Report:
    return {"benchmark": name, **facts, "rows": rows}
