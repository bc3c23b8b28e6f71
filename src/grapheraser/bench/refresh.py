"""What fresh seeds hide: who was just forgotten, both versions in sight, by policy of `refresh`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from grapheraser.audit.attacks.membership import attack
from grapheraser.audit.attacks.shadow import KEPT, KEPT_RESEEDED, REFRESHED
from grapheraser.audit.findings import auc_text
from grapheraser.bench.attacked import Attacked
from grapheraser.datasets import load_dataset
from grapheraser.environment import versions
from grapheraser.reports.tables import markdown_table

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "shards alone": {"global_expert": False},
    "default": {},
}
POLICIES = {"none": KEPT, "touched": KEPT_RESEEDED, "all": REFRESHED}


def run(
    datasets: Iterable[str] = ("cora",),
    *,
    requests: int = 80,
    epochs: int = 100,
    seed: int = 0,
    root: str | Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Attack every configuration under every policy.

    Args:
        datasets: which data sets.
        requests: forgotten nodes, one at a time.
        epochs: of each shard's training.
        seed: of everything.
        root: folder of the data sets.
        progress: told how far it is.
    """
    rows = []
    for name in datasets:
        graph = load_dataset(name, root)
        for label, options in CONFIGURATIONS.items():
            pair = Attacked.fit(
                graph, options, dataset=name, epochs=epochs, name="refresh", seed=seed
            )
            for policy, how in POLICIES.items():
                progress(f"{name}, {label}, refresh={policy}")
                seen = pair.seen(how, requests=requests)
                rows.append(
                    {
                        "dataset": name,
                        "configuration": label,
                        "policy": policy,
                        **{
                            key: attack(*seen, informed=informed, seed=seed).rates.auc.to_dict()
                            for key, informed in (("plain", False), ("informed", True))
                        },
                    }
                )
    report = {"benchmark": "refresh", "versions": versions(), "rows": rows}
    return {**report, "requests": requests, "epochs": epochs}


def markdown(report: dict[str, Any]) -> str:
    """One row per configuration and attack, one column per policy."""
    by_cell = {(row["dataset"], row["configuration"], row["policy"]): row for row in report["rows"]}
    names = list(dict.fromkeys((dataset, label) for dataset, label, _ in by_cell))
    attacks = {"plain": "Chen et al.'s features", "informed": "informed"}
    rows = [
        (
            dataset,
            label,
            words,
            *(auc_text(by_cell[dataset, label, policy][key]) for policy in POLICIES),
        )
        for dataset, label in names
        for key, words in attacks.items()
    ]
    header = ("data", "configuration", "attack", *(f"refresh={policy}" for policy in POLICIES))
    note = (
        f"AUC with its 95 % interval, {report['requests']} requests for single nodes, GCN, `hash`, "
        f"{report['epochs']} epochs; 0.5 is chance."
    )
    return f"{markdown_table(header, rows)}\n\n{note}"
