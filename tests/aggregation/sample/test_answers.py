"""Kept answers: after any change those of a fresh fit, and only the stale ones asked for again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation import Change, Ensemble, base
from grapheraser.aggregation.sample.answers import SampledAnswers, collect, refresh
from grapheraser.aggregation.sample.membership import sampled_nodes
from grapheraser.aggregation.sample.view import moved, seen_before, sees
from grapheraser.inference.gather import Gathered
from tests.strategies import requests_for, small_graph, small_graphs


def changed(eraser: ge.GraphEraser, request: object) -> tuple[Ensemble, Change]:
    """The ensemble after a request, and what the request did."""
    before = eraser._snapshot.state.ensemble
    plan = eraser.plan(request)  # type: ignore[arg-type]
    eraser.unlearn(request)  # type: ignore[arg-type]
    after = eraser._snapshot.state.ensemble
    retrained = frozenset(s for s in after.shards if after.shards[s] is not before.shards.get(s))
    gone = np.setdiff1d(before.graph.ids, after.graph.ids)
    return after, Change(before, retrained, plan.touched, gone)


def same(one: SampledAnswers, other: SampledAnswers) -> bool:
    """Whether two have the same bits, also in what is not saved."""
    assert one.seen is not None
    assert other.seen is not None
    pairs = [(one.tensors[name], other.tensors[name]) for name in one.tensors]
    pairs.append((one.seen, other.seen))
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), most=st.integers(1, 4), hub=st.sampled_from([2, 64]))
def test_refreshed_answers_are_those_of_a_fresh_fit(
    data: st.DataObject, most: int, hub: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "MAX_NEIGHBOURS", hub)
        model = data.draw(st.sampled_from(["gcn", "gat", "mlp"]))
        eraser = ge.GraphEraser(model=model, num_shards=4, epochs=1, aggregation="mean")
        eraser.fit(data.draw(small_graphs(min_nodes=15)))
        limit = data.draw(st.sampled_from([(1.0, None), (0.5, None), (1.0, 6)]))
        ensemble = eraser._snapshot.state.ensemble
        kept = collect(ensemble, sampled_nodes(ensemble.graph, limit, 0), most)
        for _ in range(3):
            request = data.draw(requests_for(eraser.graph_))
            gone = request.ids if isinstance(request, ge.Nodes) else ()
            if np.isin(eraser.graph_.train_nodes, gone).all():
                return
            ensemble, change = changed(eraser, request)
            nodes = sampled_nodes(ensemble.graph, limit, 0)
            if data.draw(st.booleans()):
                kept = SampledAnswers.restore(kept.tensors)
            kept = refresh(kept, ensemble, change, nodes, most)
            assert same(kept, collect(ensemble, nodes, most))


def test_only_stale_answers_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small_graph(3, n=300)
    eraser = ge.GraphEraser(num_shards=12, epochs=1, aggregation="mean").fit(graph)
    nodes = graph.train_nodes[::2]
    kept = collect(eraser._snapshot.state.ensemble, nodes, 3)
    gone = int(graph.train_nodes[1])
    ensemble, change = changed(eraser, ge.Nodes([gone]))
    asked_again: set[tuple[int, int]] = set()
    ask = Ensemble.asked_posteriors

    def asking(self: Ensemble, gathered: Gathered, asked: NDArray[np.int32]) -> NDArray[np.float32]:
        ids = gathered.nodes
        for row, slot in zip(*np.nonzero(asked >= 0), strict=True):
            asked_again.add((int(ids[row]), int(asked[row, slot])))
        return ask(self, gathered, asked)

    monkeypatch.setattr(Ensemble, "asked_posteriors", asking)
    fresh = refresh(kept, ensemble, change, nodes, 3)
    different = moved(graph, ensemble.graph, change.touched, ensemble.seed)
    looks_different = set(nodes[sees(seen_before(change.before, nodes), different)].tolist())
    expected = set()
    for node, before, after in zip(
        nodes.tolist(), kept.routes.asked, fresh.routes.asked, strict=True
    ):
        for shard in after[after >= 0].tolist():
            new = shard not in before.tolist() or shard in change.retrained
            if new or node in looks_different:
                expected.add((node, shard))
    assert asked_again == expected
    assert 0 < len(expected) < (fresh.routes.asked >= 0).sum() / 2


def test_an_empty_sample_says_nothing() -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=1, aggregation="mean").fit(small_graph())
    ensemble, change = changed(eraser, ge.Nodes(eraser.graph_.train_nodes[:1]))
    nobody = np.zeros(0, dtype=np.int64)
    empty = collect(change.before, nobody, 2)
    assert empty.mixed().shape == (0, 3)
    assert same(refresh(empty, ensemble, change, nobody, 2), collect(ensemble, nobody, 2))
    nodes = ensemble.graph.train_nodes[:4]
    assert same(refresh(empty, ensemble, change, nodes, 2), collect(ensemble, nodes, 2))
    some = collect(change.before, nodes, 2)
    assert same(refresh(some, ensemble, change, nobody, 2), collect(ensemble, nobody, 2))
