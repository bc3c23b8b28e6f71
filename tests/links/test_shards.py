"""Encoders per shard: what they are trained on, and how their answers are put together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.links import link_graph
from grapheraser.links.answers import fitted_links, log_odds

pytest.importorskip("torch", reason="needs the extra 'gnn'")
from grapheraser.engines import ShardTask, TrainingConfig
from grapheraser.links.encoder import train_encoder
from grapheraser.links.shards import _MAX_LOG_ODDS, _SCALE, encoded, shard_evidence, without_edges
from grapheraser.models import ModelSpec
from tests.strategies import small_graph, torch_state_kept

OPTIONS: dict[str, Any] = {"num_shards": 3, "epochs": 8, "width": 4}


@pytest.fixture(scope="module")
def links() -> ge.LinkEraser:
    return ge.LinkEraser("shards", **OPTIONS).fit(small_graph(n=60))


def test_the_shards_of_both_nodes_are_asked_about_both(links: ge.LinkEraser) -> None:
    ensemble, graph = links._snapshot.state.ensemble, links.graph_
    ids = graph.ids.tolist()
    pairs = np.array([(ids[i], ids[-1 - i]) for i in range(20)])
    found = shard_evidence(ensemble, graph, pairs)
    shards = links.partition_.shard_of(pairs.ravel()).reshape(-1, 2)
    assert (shards[:, 0] != shards[:, 1]).any()
    for (u, v), own, evidence in zip(pairs.tolist(), shards.tolist(), found, strict=True):
        answers = []
        for shard in set(own):
            posteriors = ensemble.posteriors(graph.positions([u, v]), [shard])[0]
            logs = np.log(posteriors.astype(float))
            rows = (logs - logs.mean(axis=1, keepdims=True)) / math.sqrt(logs.shape[1])
            answers.append(rows[0] @ rows[1])
        expected = np.clip(np.mean(answers), -_MAX_LOG_ODDS, _MAX_LOG_ODDS) * _SCALE
        assert evidence == pytest.approx(expected, abs=1e-5)


def test_an_edge_is_judged_without_itself(links: ge.LinkEraser) -> None:
    graph, ensemble = links.graph_, links._snapshot.state.ensemble
    pair = graph.edges[:1]
    alone = shard_evidence(ensemble, without_edges(graph, pair), pair)
    odds = log_odds(links._snapshot, pair)
    constant, weight = fitted_links(links._snapshot).weights.tolist()
    assert odds[0] == pytest.approx(constant + weight * alone[0])


def test_an_encoder_learns_the_edges_of_its_shard() -> None:
    """Two groups without an edge between them, which features tell apart."""
    n = 40
    group = np.arange(n) % 2
    pairs = np.array([(u, v) for u in range(n) for v in range(u) if group[u] == group[v]]).T
    graph = link_graph(
        ge.Graph.from_arrays(np.eye(2)[group], pairs, np.zeros(n, dtype=int)), width=4
    )
    with torch_state_kept():
        config = TrainingConfig(ModelSpec("gcn", dropout=0.0), epochs=60)
        weights = train_encoder(ShardTask(0, graph, 7), config)
        again = train_encoder(ShardTask(0, graph, 7), config)
    assert weights.digest == again.digest
    from grapheraser.inference import shard_posteriors

    rows = encoded(shard_posteriors(config.model, [weights], graph, np.arange(n))[0])
    products = rows @ rows.T
    same = group[:, None] == group
    assert products[same].mean() > products[~same].mean() + 1


def test_a_shard_without_edges_is_no_failure() -> None:
    x, y = np.eye(12), np.zeros(12, dtype=int)
    graph = ge.Graph.from_arrays(x, [[0, 1], [2, 3]], y)
    links = ge.LinkEraser("both", num_shards=5, epochs=2, width=3).fit(graph)
    assert np.isfinite(links.predict_proba([(0, 1), (4, 9)])).all()
    links.unlearn(ge.Nodes([0]))
    assert links.verify().identical


def test_a_new_node_retrains_the_shard_that_it_joins() -> None:
    graph = small_graph(n=60)
    links = ge.LinkEraser("both", **OPTIONS).fit(graph)
    before = {shard: weights.digest for shard, weights in links.shards_.items()}
    new = int(graph.ids[-1]) + 1
    receipt = links.insert(new, np.ones(graph.num_features), graph.ids[:2])
    (joined,) = links.partition_.shard_of([new]).tolist()
    changed = [s for s, weights in links.shards_.items() if weights.digest != before[s]]
    assert changed == [joined] == [*receipt.retrained]
    assert links.verify().identical
