"""Fresh seeds for retrained shards: recorded, exact given them, and unlike each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.eraser.state import fit_state
from grapheraser.errors import ParameterError
from grapheraser.graph.pages.files import index_content
from tests.store.runs import forge
from tests.strategies import small_graph


def bits(eraser: ge.GraphEraser | ge.LinkEraser) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in eraser._snapshot.state.tensors().items()}


def afresh(eraser: ge.GraphEraser | ge.LinkEraser) -> dict[str, bytes]:
    """S(G, P, recorded seeds), trained from nothing but those."""
    now = eraser._snapshot
    state = fit_state(now.settings, now.state.graph, now.state.partition, now.state.seeds)
    return {name: array.tobytes() for name, array in state.tensors().items()}


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_any_sequence_of_requests_ends_in_the_fit_with_the_recorded_seeds(
    data: st.DataObject,
) -> None:
    model = data.draw(st.sampled_from(["gcn", "sage", "mlp"]))
    expert = data.draw(st.booleans())
    eraser = ge.GraphEraser(model, num_shards=3, epochs=2, global_expert=expert)
    eraser.fit(small_graph())
    for _ in range(data.draw(st.integers(1, 3))):
        policy = data.draw(st.sampled_from(["none", "touched", "all"]))
        node = data.draw(st.sampled_from(eraser.graph_.train_nodes.tolist()))
        before = dict(eraser._snapshot.state.seeds)
        receipt = eraser.unlearn(ge.Nodes([node]), refresh=policy)
        seeds = dict(eraser._snapshot.state.seeds)
        fresh = {shard for shard, seed in seeds.items() if before.get(shard) != seed}
        expected = {"none": set(), "touched": set(receipt.retrained), "all": set(eraser.shards_)}
        assert fresh == expected[policy]
        assert {r.shard: r.seed for r in receipt.shards if r.shard in fresh} == {
            shard: seeds[shard] for shard in fresh
        }
    assert bits(eraser) == afresh(eraser)
    assert eraser.verify().identical


def test_two_runs_that_refresh_are_unlike_and_their_partition_is_the_same() -> None:
    graph = small_graph()
    node = ge.Nodes(graph.train_nodes[:1])
    one, two, plain = (ge.GraphEraser(num_shards=3, epochs=2).fit(graph) for _ in range(3))
    one.unlearn(node, refresh="all")
    two.unlearn(node, refresh="all")
    plain.unlearn(node)
    assert np.array_equal(one.partition_.labels, plain.partition_.labels)
    for shard in plain.shards_:
        digests = {eraser.shards_[shard].digest for eraser in (one, two, plain)}
        assert len(digests) == 3
    assert one.receipts_[-1].statement == "exact"
    assert any("refresh='all'" in note for note in one.receipts_[-1].aggregation["notes"])


def test_the_seeds_are_kept_and_later_requests_use_them(tmp_path: Path) -> None:
    graph = small_graph()
    eraser = ge.GraphEraser(num_shards=3, epochs=2).fit(graph)
    (shard,) = eraser.unlearn(ge.Nodes(graph.train_nodes[:1]), refresh="touched").retrained
    seed = eraser._snapshot.state.seeds[shard]
    eraser.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run")
    assert dict(back._snapshot.state.seeds) == {shard: seed}
    assert back.verify().identical
    mate = next(n for n in back.partition_.members(shard).tolist() if n in back.graph_.train_nodes)
    receipts = [run.unlearn(ge.Nodes([mate])) for run in (eraser, back)]
    assert [r.seed for r in receipts[0].shards] == [seed]
    assert bits(back) == bits(eraser) == afresh(back)
    eraser.reshard(2)
    assert not eraser._snapshot.state.seeds, "a fresh fit seeds everything from the run's seed"
    assert eraser.verify().identical


def test_another_seed_in_the_folder_is_noticed(tmp_path: Path) -> None:
    graph = small_graph()
    eraser = ge.GraphEraser(num_shards=3, epochs=2).fit(graph)
    (shard,) = eraser.unlearn(ge.Nodes(graph.train_nodes[:1]), refresh="touched").retrained
    eraser.save(tmp_path / "run")
    (file,) = (tmp_path / "run").glob("shards-*.npy")
    index = np.load(file)
    index["seed"][index["start"] == shard] += 1
    forge(tmp_path / "run", file, index_content(index))
    found = ge.GraphEraser.load(tmp_path / "run").verify()
    assert not found.identical
    assert any(difference.startswith("seeds of the shards") for difference in found.differences)


@pytest.mark.gnn
def test_links_refresh_too() -> None:
    eraser = ge.LinkEraser(members="shards", num_shards=2, epochs=1, width=4).fit(small_graph())
    before = {shard: weights.digest for shard, weights in eraser.shards_.items()}
    eraser.unlearn(ge.Nodes(eraser.graph_.ids[:1]), refresh="all")
    assert all(weights.digest != before[shard] for shard, weights in eraser.shards_.items())
    assert bits(eraser) == afresh(eraser)


def test_what_has_no_seeds_or_is_no_policy_is_refused() -> None:
    graph = small_graph()
    closed = ge.GraphEraser("closed-form").fit(graph)
    with pytest.raises(ParameterError, match="must be 'none' for a run without shards"):
        closed.unlearn(ge.Nodes(graph.train_nodes[:1]), refresh="all")
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(graph)
    with pytest.raises(ParameterError, match="'refresh' of unlearn must be"):
        eraser.unlearn(ge.Nodes(graph.train_nodes[:1]), refresh="some")
    assert not eraser.receipts_
    assert not closed.receipts_
