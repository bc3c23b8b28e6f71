"""How large `features` has to be: F1 on validation nodes, a fifth of the training part.

The test nodes of the split are taken out of the graph first; neither size has seen them.

    python benchmarks/member_sizes.py DATASET SEED
"""

from __future__ import annotations

import json
import sys
from functools import partial
from unittest.mock import patch

import grapheraser as ge
from grapheraser.aggregation import members
from grapheraser.aggregation.members.features import FeatureRegression
from grapheraser.bench.utility import OTHERS
from grapheraser.datasets import default_shards

SIZES = {
    "384 columns, 4 targets, 16 neighbours": {"columns": 384, "spread": 4, "second": 16},
    "256 columns, 2 targets, 8 neighbours": {"columns": 256, "spread": 2, "second": 8},
}


def measured(dataset: str, seed: int) -> dict[str, object]:
    """Micro F1 on the validation nodes, for both sizes, alone and with shards of GCN."""
    graph = ge.load_dataset(dataset, split_seed=seed).training_graph
    graph = graph.with_split(test_share=0.2, seed=seed)
    shards = OTHERS.get(dataset) or default_shards(dataset)
    found: dict[str, object] = {"dataset": dataset, "seed": seed}
    for label, size in SIZES.items():
        with patch.object(members, "FeatureRegression", partial(FeatureRegression, **size)):
            for model in ("closed-form", "gcn"):
                eraser = ge.GraphEraser(model, num_shards=shards, seed=seed).fit(graph)
                found[f"{model}, {label}"] = eraser.score(graph.test_nodes)
    return found


if __name__ == "__main__":
    dataset, seed = sys.argv[1:]
    print(json.dumps(measured(dataset, int(seed))))
