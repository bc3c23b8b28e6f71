"""A model card: Markdown below a head of YAML, as model hubs read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from grapheraser.reports.wording import plural

_USE = """\
These files need nothing but `torch`, `torch_geometric`, `safetensors` and `numpy`. `export.json`
says which model the state dicts in `shards/` are of. The class of node v is where
`expert[v] + shards_weight * log(max(mixture, least))` is largest; the mixture is that of the
softmaxes of the shards that `asked[v]` names, by `weights[v]`."""

_LIMITS = (
    "It predicts the classes of nodes of this graph, as the graph was. Nodes that came later have "
    "no row in the arrays.",
    "It can't forget. Whoever is forgotten by the run later is still in this copy: export again, "
    "and delete this one wherever it went.",
    "Features and edges of all nodes are in `graph.safetensors`. Hand it out only to those who may "
    "have them.",
    "Exact unlearning says what the model would be without the data; it does not hide that "
    "something was forgotten from those who kept an earlier copy.",
)


def model_card(facts: Mapping[str, Any]) -> str:
    """The card of an exported run.

    ``facts`` has graph, noun (node or graph), nodes, edges, features, classes, training_nodes,
    test_nodes, f1, model, shards, partition, claim, receipts, head, log, checkpoint, versions and
    notes.
    """
    task = f"{facts['noun'].title()} classification"
    parts = [
        _head(facts),
        f"# {facts['graph']}, {facts['model']}\n",
        f"{task} that can forget, exported by GraphEraser: {_ensemble(facts)}.\n",
        "## Data\n",
        _table(_data(facts)),
        "## Metrics\n",
        _metrics(facts),
        "## Use\n",
        f"{_USE}\n",
        "## What was forgotten\n",
        _receipts(facts),
        "## Limits\n",
        "".join(f"- {limit}\n" for limit in _LIMITS),
        "## Made with\n",
        _table({name: str(version) for name, version in facts["versions"].items()}),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _head(facts: Mapping[str, Any]) -> str:
    # JSON is YAML; so no value can break the head.
    head: dict[str, Any] = {
        "library_name": "grapheraser",
        "pipeline_tag": "graph-ml",
        "tags": ["graph-neural-network", f"{facts['noun']}-classification", "machine-unlearning"],
    }
    if facts["f1"] is not None:
        result = {
            "task": {"type": f"{facts['noun']}-classification"},
            "dataset": {"name": facts["graph"], "type": facts["graph"]},
            "metrics": [{"type": "f1", "name": "micro F1", "value": round(facts["f1"], 4)}],
        }
        head["model-index"] = [{"name": f"{facts['graph']}-{facts['model']}", "results": [result]}]
    lines = "\n".join(f"{key}: {json.dumps(value)}" for key, value in head.items())
    return f"---\n{lines}\n---\n"


def _ensemble(facts: Mapping[str, Any]) -> str:
    if not facts["shards"]:
        return f"`{facts['model']}`, which has no shards"
    shards = plural(len(facts["shards"]), "shard")
    return f"{shards} of `{facts['model']}`, partition `{facts['partition']}`"


def _data(facts: Mapping[str, Any]) -> dict[str, str]:
    classes = facts["classes"]
    named = str(classes) if isinstance(classes, int) else ", ".join(classes)
    rows = {
        "graph": str(facts["graph"]),
        f"{facts['noun']}s": f"{facts['nodes']:,}, {facts['training_nodes']:,} of them to train on",
        "edges": f"{facts['edges']:,}",
        "feature columns": f"{facts['features']:,}",
        "classes": named,
    }
    return rows | ({"notes": "; ".join(facts["notes"])} if facts["notes"] else {})


def _metrics(facts: Mapping[str, Any]) -> str:
    if facts["f1"] is None:
        return "The graph has no labelled test nodes to measure on.\n"
    return (
        f"Micro F1 {facts['f1']:.4f} on {plural(facts['test_nodes'], 'test ' + facts['noun'])}.\n"
    )


def _receipts(facts: Mapping[str, Any]) -> str:
    count, claim = facts["receipts"], facts["claim"]
    if not count:
        return f"Nothing yet. Receipts of this run will say `{claim['statement']}`.\n"
    rows = {
        "log": f"`{facts['log']}`",
        "receipts": f"{count:,}",
        "digest of the last": f"`{facts['head']}`",
        "statement": f"{claim['statement']}. {claim['reason']}",
    }
    checkpoint = facts["checkpoint"]
    signed = f"\nThe log's signed checkpoint:\n\n```\n{checkpoint.rstrip()}\n```\n"
    return _table(rows) + (signed if checkpoint else "\nThe log is not signed.\n")


def _table(rows: Mapping[str, str]) -> str:
    lines = "".join(f"| {name} | {_cell(text)} |\n" for name, text in rows.items())
    return f"| | |\n|---|---|\n{lines}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
