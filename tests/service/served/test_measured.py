from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.service.served.measured import shard_importance


@pytest.mark.parametrize(
    "parts",
    [
        {"aggregation": "mean"},
        {"aggregation": "majority"},
        {"aggregation": "learned"},
        {"aggregation": "routed", "global_expert": False},
        {"aggregation": "routed", "global_expert": True},
    ],
    ids=str,
)
def test_importance_is_the_mean_share_that_explanations_give(
    small: ge.Graph, parts: dict[str, object]
) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=2, **parts).fit(small)  # type: ignore[arg-type]
    wanted: dict[int, float] = defaultdict(float)
    for node in small.ids.tolist():
        for said in eraser.explain(node).members:
            if said.member.startswith("shard"):
                wanted[int(said.member.split()[1])] += said.weight / small.num_nodes
    found = shard_importance(eraser)
    assert found.keys() == eraser.shards_.keys()
    for shard, share in found.items():
        assert share == pytest.approx(wanted[shard], abs=1e-9)


def test_importance_of_a_large_graph_is_that_of_a_sample_of_its_nodes(demo: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=4, epochs=1, global_expert=False).fit(demo)
    found = np.array(list(shard_importance(eraser).values()))
    assert found.sum() == pytest.approx(1.0)
    assert (found > 0.1).all()
    assert shard_importance(eraser) == shard_importance(eraser)


def test_a_link_run_has_no_shards_to_weigh(small: ge.Graph) -> None:
    assert shard_importance(ge.LinkEraser().fit(small)) == {}
