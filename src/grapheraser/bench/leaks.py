"""What the members of the pool give away, beside shards alone and beside each other.

Four attacks on a graph: who was just forgotten (both versions in sight), what its label was, which
edge was just forgotten, and, with one version in sight, which edges there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from grapheraser.audit.attacks.edges import edge_attack
from grapheraser.audit.attacks.labels import label_attack
from grapheraser.audit.attacks.membership import attack
from grapheraser.audit.attacks.shadow import KEPT
from grapheraser.audit.findings import auc_text
from grapheraser.bench.attacked import Attacked
from grapheraser.datasets import load_dataset
from grapheraser.environment import versions
from grapheraser.reports.tables import markdown_table

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "shards alone": {"global_expert": False},
    "features alone": {"model": "closed-form", "members": ("features",)},
    "words, labels, edges": {"model": "closed-form", "members": ("words", "labels", "edges")},
    "closed-form": {"model": "closed-form"},
    "default": {},
}


def run(
    datasets: Iterable[str] = ("cora",),
    *,
    requests: int = 80,
    runs: int = 24,
    epochs: int = 100,
    seed: int = 0,
    root: str | Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Attack every configuration on each data set.

    Args:
        datasets: which data sets.
        requests: forgotten nodes, one at a time, of the attacks that see both versions.
        runs: of the attacker's own, for the attack on edges.
        epochs: of each shard's training.
        seed: of everything.
        root: folder of the data sets.
        progress: told how far it is.
    """
    rows = []
    for name in datasets:
        graph = load_dataset(name, root)
        for label, options in CONFIGURATIONS.items():
            progress(f"{name}, {label}")
            pair = Attacked.fit(
                graph, options, dataset=name, epochs=epochs, name="leaks", seed=seed
            )
            eraser, seen = pair.target, pair.seen(KEPT, requests=requests)
            edges = edge_attack(eraser, graph, runs=runs, targets=2, requests=requests, seed=seed)
            rows.append(
                {
                    "dataset": name,
                    "configuration": label,
                    "f1": eraser.score(graph.test_nodes),
                    "membership": attack(*seen, informed=True, seed=seed).rates.auc.to_dict(),
                    "label": label_attack(eraser, graph, requests=requests, seed=seed).to_dict(),
                    "edges": edges.to_dict(),
                }
            )
    return {"benchmark": "leaks", "versions": versions(), "rows": rows}


def markdown(report: dict[str, Any]) -> str:
    """One row per data set and configuration."""
    header = (
        *("data", "configuration", "F1", "forgotten node, both versions"),
        *("its label, both versions", "its label, one version", "forgotten edge, both versions"),
        *("edges, one version", "forgotten edges, one version"),
    )
    rows = [
        (
            row["dataset"],
            row["configuration"],
            f"{row['f1']:.3f}",
            auc_text(row["membership"]),
            f"{row['label']['right']:.2f}",
            f"{row['label']['before']:.2f}",
            *(auc_text(row["edges"][name]["auc"]) for name in ("drop", "standing", "after")),
        )
        for row in report["rows"]
    ]
    majority = max(row["label"]["majority"] for row in report["rows"])
    note = (
        "AUC with its 95 % interval for nodes and edges; 0.5 is chance. For labels, the share "
        f"guessed right; the most frequent class alone gives {majority:.2f}."
    )
    return f"{markdown_table(header, rows)}\n\n{note}"
