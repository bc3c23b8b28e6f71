"""A model card: Markdown below a head of YAML, as model hubs read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from grapheraser.reports.pages.render import environment


def model_card(facts: Mapping[str, Any]) -> str:
    """The card of an exported run.

    ``facts`` has graph, noun (node or graph), nodes, edges, features, classes, training_nodes,
    test_nodes, f1, model, shards, partition, claim, receipts, last, log, checkpoint, versions and
    notes.
    """
    graph, task = facts["graph"], f"{facts['noun']}-classification"
    head: dict[str, Any] = {
        "library_name": "grapheraser",
        "pipeline_tag": "graph-ml",
        "tags": ["graph-neural-network", task, "machine-unlearning"],
    }
    if facts["f1"] is not None:
        result = {
            "task": {"type": task},
            "dataset": {"name": graph, "type": graph},
            "metrics": [{"type": "f1", "name": "micro F1", "value": round(facts["f1"], 4)}],
        }
        head["model-index"] = [{"name": f"{graph}-{facts['model']}", "results": [result]}]
    # JSON is YAML; so no value can break the head.
    written = {key: json.dumps(value) for key, value in head.items()}
    return environment().get_template("card.md.j2").render(**facts, head=written)
