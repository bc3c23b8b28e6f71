"""The promise: what `unlearn` leaves is what training on the rest gives, bit for bit.

Over small random graphs, every model and engine, every registered partition and aggregation, and
every selection of closed-form members.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.aggregation import AGGREGATORS, MEMBERS
from grapheraser.graph import Request
from grapheraser.graph.roles import SHARDED_ROLES
from grapheraser.models import KINDS, PRESETS
from grapheraser.models.spec import CLOSED_FORM
from grapheraser.partition import Partition
from grapheraser.receipts import EXACT, EXACT_GIVEN_PARTITION
from tests.strategies import (
    TwoHops,
    batches_for,
    engines,
    partitioners,
    requests_for,
    small_graphs,
)

SHARDED = [(kind, engine) for kind in KINDS for engine in engines()] + [("custom", "pyg")]
CASES = [*SHARDED, *((model, "auto") for model in CLOSED_FORM)]
PAPER = [name for name in PRESETS if name.endswith(":paper")]

pytestmark = pytest.mark.slow
every_case = pytest.mark.parametrize(("model", "engine"), CASES)
quick = settings(max_examples=8)


def eraser_of(model: str, engine: str, **changes: Any) -> ge.GraphEraser:
    settings_ = {"num_shards": 3, "epochs": 3, "executor": ge.LocalExecutor(1), **changes}
    return ge.GraphEraser(model=TwoHops if model == "custom" else model, engine=engine, **settings_)


@st.composite
def settings_drawn(draw: st.DrawFn, model: str) -> dict[str, Any]:
    sharded = model not in CLOSED_FORM
    aggregation = draw(st.sampled_from(list(AGGREGATORS))) if sharded else "routed"
    return {
        "partition": draw(st.sampled_from(partitioners())) if sharded else "hash",
        "aggregation": aggregation,
        "members": draw(_members()) if aggregation == "routed" else None,
        "sample": draw(st.sampled_from(["auto", "all", 0.5, 5])),
        "num_shards": draw(st.integers(1, 4)),
        "seed": draw(st.integers(0, 3)),
        "context": draw(st.sampled_from(list(SHARDED_ROLES))),
    }


def _members() -> st.SearchStrategy[list[str] | None]:
    """Mostly the default; None of a single shard is the shard alone."""
    some = st.lists(st.sampled_from(MEMBERS), min_size=1, unique=True)
    return st.one_of(st.none(), st.just(list(MEMBERS)), some)


def bits(eraser: ge.GraphEraser) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Everything that was learned and everything that is predicted, as bytes."""
    tensors = dict(eraser._snapshot.state.tensors())
    tensors["posteriors"] = eraser.predict_proba(eraser.graph_.ids)
    assert np.isfinite(tensors["posteriors"]).all()
    return {
        name: (str(array.dtype), array.shape, array.tobytes()) for name, array in tensors.items()
    }


def retrained(eraser: ge.GraphEraser, graph: ge.Graph, partition: Partition) -> ge.GraphEraser:
    """Training on the remaining data alone, by an eraser that never saw anything else."""
    return ge.GraphEraser(**eraser.get_params()).fit(graph, partition=partition)


def leaves_enough(graph: ge.Graph, batch: list[Request]) -> bool:
    return len(graph.without(batch).train_nodes) > 0


@every_case
@quick
@given(st.data())
def test_unlearned_equals_retrained(model: str, engine: str, data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    drawn = data.draw(settings_drawn(model))
    eraser = eraser_of(model, engine, **drawn).fit(graph)
    cut = eraser.partition_
    batch = data.draw(
        st.lists(requests_for(graph), min_size=1, max_size=3).filter(
            lambda batch: leaves_enough(graph, batch)
        )
    )
    receipt = eraser.unlearn(batch)
    rest = graph.without(batch)
    assert eraser.graph_ == rest
    assert bits(eraser) == bits(retrained(eraser, rest, cut))
    exact = drawn["partition"] == "hash" or model in CLOSED_FORM
    claim = EXACT if exact else EXACT_GIVEN_PARTITION
    own = model == "custom"
    assert receipt.statement == (claim.replace(EXACT, f"{EXACT} as replayed") if own else claim)
    enough = drawn["num_shards"] <= rest.with_context(drawn["context"]).num_sharded
    if exact and enough:
        assert bits(eraser) == bits(ge.GraphEraser(**eraser.get_params()).fit(rest))
    assert eraser.verify().identical


@pytest.mark.parametrize("engine", engines())
@pytest.mark.parametrize("model", PAPER)
@settings(max_examples=3)
@given(st.data())
def test_unlearned_equals_retrained_for_the_papers_models(
    model: str, engine: str, data: st.DataObject
) -> None:
    graph, context = data.draw(small_graphs()), data.draw(st.sampled_from(list(SHARDED_ROLES)))
    eraser = eraser_of(model, engine, context=context).fit(graph)
    cut, batch = eraser.partition_, data.draw(batches_for(graph))
    eraser.unlearn(batch)
    assert bits(eraser) == bits(retrained(eraser, graph.without(batch), cut))


@pytest.mark.parametrize("aggregation", list(AGGREGATORS))
@pytest.mark.parametrize("partition", [*partitioners(), "given"])
@settings(max_examples=3)
@given(st.data())
def test_unlearned_equals_retrained_for_every_cut_and_aggregation(
    partition: str, aggregation: str, data: st.DataObject
) -> None:
    graph, context = data.draw(small_graphs()), data.draw(st.sampled_from(list(SHARDED_ROLES)))
    given_cut = None
    if partition == "given":
        whole = graph.with_context(context)
        given_cut = ge.partition_graph(whole, "random", num_shards=4, seed=9, gamma=0.5)
    name = "random" if partition == "given" else partition
    eraser = eraser_of("gcn", "auto", partition=name, aggregation=aggregation, context=context)
    eraser.fit(graph, partition=given_cut)
    cut = eraser.partition_
    for request in data.draw(batches_for(graph)):
        graph = graph.without(request)
        eraser.unlearn(request)
        assert bits(eraser) == bits(retrained(eraser, graph, cut))


@every_case
@settings(max_examples=5)
@given(st.data())
def test_the_order_of_deletions_and_their_batching_do_not_matter(
    model: str, engine: str, data: st.DataObject
) -> None:
    graph = data.draw(small_graphs())
    drawn = data.draw(settings_drawn(model))
    batch = data.draw(batches_for(graph))
    at_once = eraser_of(model, engine, **drawn).fit(graph)
    cut = at_once.partition_
    at_once.unlearn(batch)
    one_by_one = eraser_of(model, engine, **drawn).fit(graph, partition=cut)
    for request in data.draw(st.permutations(batch)):
        one_by_one.unlearn(request)
    assert bits(one_by_one) == bits(at_once)
    assert len(one_by_one.receipts_) == len(batch)


@every_case
@settings(max_examples=5)
@given(st.data())
def test_deleting_then_inserting_elsewhere_leaves_no_trace_of_the_first(
    model: str, engine: str, data: st.DataObject
) -> None:
    graph = data.draw(small_graphs())
    drawn = data.draw(settings_drawn(model))
    gone = int(data.draw(st.sampled_from(graph.train_nodes.tolist())))
    rest = graph.without(ge.Nodes([gone]))
    row = data.draw(
        st.lists(st.integers(0, 3), min_size=rest.num_features, max_size=rest.num_features)
    )
    others = data.draw(st.lists(st.sampled_from(rest.ids.tolist()), max_size=4))
    new = gone if data.draw(st.booleans(), label="under its old id") else 1000

    eraser = eraser_of(model, engine, **drawn).fit(graph)
    cut = eraser.partition_
    eraser.unlearn(ge.Nodes([gone]))
    eraser.insert(new, row, 1, others)

    never_knew = retrained(eraser, rest, cut)
    never_knew.insert(new, row, 1, others)
    assert bits(eraser) == bits(never_knew)
    assert eraser.partition_.inputs == never_knew.partition_.inputs

    afresh = retrained(eraser, rest.with_node(new, row, 1, others), eraser.partition_)
    assert bits(eraser) == bits(afresh)


@pytest.mark.parametrize(("model", "engine"), SHARDED)
@settings(max_examples=6)
@given(st.data())
def test_unlearned_equals_retrained_with_a_halo(
    model: str, engine: str, data: st.DataObject
) -> None:
    """Over sequences of nodes, edges, features and insertions."""
    graph = data.draw(small_graphs())
    partition = data.draw(st.sampled_from(["hash", "blpa"]))
    drawn = {
        "num_shards": data.draw(st.integers(2, 4)),
        "seed": data.draw(st.integers(0, 3)),
        "context": data.draw(st.sampled_from(list(SHARDED_ROLES))),
    }
    eraser = eraser_of(model, engine, partition=partition, halo=True, **drawn).fit(graph)
    for step in range(data.draw(st.integers(1, 4))):
        before = dict(eraser.shards_)
        if data.draw(st.booleans(), label="insert"):
            others = data.draw(st.lists(st.sampled_from(graph.ids.tolist()), max_size=4))
            receipt = eraser.insert(1000 + step, graph.x[[0]], 1, others)
            graph = graph.with_node(1000 + step, graph.x[[0]], 1, others)
        else:
            request = data.draw(requests_for(graph))
            if not leaves_enough(graph, [request]):
                continue
            plan = eraser.plan(request)
            receipt = eraser.unlearn(request)
            graph = graph.without(request)
            assert receipt.retrained == plan.retrain
        for shard, weights in eraser.shards_.items():
            assert (weights is before.get(shard)) == (shard not in receipt.retrained)
        assert bits(eraser) == bits(retrained(eraser, graph, eraser.partition_))
    assert eraser.verify().identical


@pytest.mark.parametrize(("model", "engine"), SHARDED)
@settings(max_examples=5)
@given(st.data())
def test_other_shards_keep_their_very_weights(model: str, engine: str, data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    context = data.draw(st.sampled_from(list(SHARDED_ROLES)))
    eraser = eraser_of(model, engine, num_shards=4, context=context).fit(graph)
    request = data.draw(requests_for(graph).filter(lambda request: leaves_enough(graph, [request])))
    before, plan = dict(eraser.shards_), eraser.plan(request)
    receipt = eraser.unlearn(request)
    assert receipt.retrained == plan.retrain
    assert eraser.shards_.keys() == before.keys() - set(plan.emptied)
    for shard, weights in eraser.shards_.items():
        assert (weights is before[shard]) == (shard not in plan.retrain)


@pytest.mark.parametrize(
    ("model", "engine"),
    [*(("gcn", engine) for engine in engines()), *((model, "auto") for model in CLOSED_FORM)],
)
@settings(max_examples=10)
@given(st.data())
def test_a_run_that_was_saved_in_between_forgets_the_same_way(
    tmp_path_factory: pytest.TempPathFactory, model: str, engine: str, data: st.DataObject
) -> None:
    graph = data.draw(small_graphs())
    drawn = data.draw(settings_drawn(model))
    batch = data.draw(batches_for(graph))
    stayed = eraser_of(model, engine, **drawn).fit(graph)
    folder = tmp_path_factory.mktemp("run")
    stayed.save(folder / "run")
    for request in batch:
        stayed.unlearn(request)
        came_back = ge.GraphEraser.load(folder / "run")
        came_back.unlearn(request)
        came_back.save(folder / "run")
    assert bits(ge.GraphEraser.load(folder / "run")) == bits(stayed)
