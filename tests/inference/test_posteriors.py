"""Posteriors equal the PyG module's, and a row's bits depend on nothing but its neighbourhood."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grapheraser.engines import ShardTask, ShardWeights, TrainingConfig, reference
from grapheraser.graph import Graph, Nodes
from grapheraser.inference import forward
from grapheraser.inference import posteriors as inference
from grapheraser.inference.gather import WHOLE, Bound, gather_field
from grapheraser.inference.posteriors import asked_posteriors, posteriors
from grapheraser.models import PRESETS, ModelSpec, declaration_of, initial_weights
from grapheraser.models.modules import build_module
from tests.engines.variants import DEEP, VARIANTS
from tests.inference.oracle import bounded_edges
from tests.strategies import small_graph, with_edge_values

EVERY = VARIANTS | DEEP


@functools.cache
def random_graph(n: int = 60, num_features: int = 90, seed: int = 0) -> Graph:
    """A graph with isolated nodes, nodes without features and features that nobody has."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, num_features)) * (rng.random((n, num_features)) < 0.08)
    x[3] = 0.0
    edges = rng.integers(0, n - 3, size=(2, 2 * n))
    edges = edges[:, edges[0] != edges[1]]
    return Graph.from_arrays(x, edges, rng.integers(0, 4, size=n), num_classes=4)


def random_weights(
    spec: ModelSpec, graph: Graph, columns: NDArray[np.int32], key: int
) -> ShardWeights:
    tensors: dict[str, NDArray[np.generic]] = {
        **initial_weights(spec, graph.num_features, graph.num_classes, columns, key)
    }
    rng = np.random.default_rng(key)
    for name in list(tensors):
        if name.endswith("bias") or name.startswith("norm"):
            shape = tensors[name].shape
            tensors[name] = rng.uniform(0.5, 1.5, size=shape).astype(np.float32)
        if spec.batch_norm and name.startswith("norm") and name.endswith(".weight"):
            width, norm = len(tensors[name]), name.split(".")[0]
            tensors[f"{norm}.running_mean"] = rng.normal(size=width).astype(np.float32)
            tensors[f"{norm}.running_var"] = rng.uniform(0.5, 2, size=width).astype(np.float32)
    return ShardWeights(columns, tensors)


def all_weights(spec: ModelSpec, graph: Graph) -> list[ShardWeights]:
    every = np.arange(graph.num_features, dtype=np.int32)
    return [
        random_weights(spec, graph, every, 1),
        random_weights(spec, graph, every[5:70:3].copy(), 2),
        random_weights(spec, graph, every[:0].copy(), 3),
    ]


def module_posteriors(
    spec: ModelSpec,
    weights: ShardWeights,
    graph: Graph,
    edge_index: NDArray[np.int64] | None = None,
) -> NDArray[np.float32]:
    module = build_module(spec, len(weights.columns), graph.num_classes)
    state = {name: torch.tensor(np.array(value)) for name, value in weights.tensors.items()}
    missing = module.load_state_dict(state, strict=False)
    assert not missing.unexpected_keys
    assert all(key.endswith(("eps", "num_batches_tracked")) for key in missing.missing_keys)
    x = torch.tensor(graph.x.toarray()[:, weights.columns])
    with torch.no_grad():
        edges = graph.edge_index if edge_index is None else edge_index
        logits = module.eval()(x, torch.tensor(edges))
    return np.asarray(torch.softmax(logits, dim=1).numpy())


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("name", EVERY)
def test_equal_the_pyg_module_on_the_whole_graph(name: str) -> None:
    graph, spec = random_graph(), EVERY[name]
    weights = all_weights(spec, graph)
    found = posteriors(spec, weights, graph, np.arange(graph.num_nodes))
    assert found.shape == (3, graph.num_nodes, graph.num_classes)
    assert found.dtype == np.float32
    for shard, shard_weights in enumerate(weights):
        expected = module_posteriors(spec, shard_weights, graph)
        np.testing.assert_allclose(found[shard], expected, atol=1e-5)


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=25, deadline=None)
@given(rows=st.lists(st.integers(0, 59), max_size=20))
def test_a_row_has_the_same_bits_whatever_else_is_asked_for(name: str, rows: list[int]) -> None:
    graph, spec = random_graph(), EVERY[name]
    weights = all_weights(spec, graph)[:2]
    everything = posteriors(spec, weights, graph, np.arange(graph.num_nodes))
    some = posteriors(spec, weights, graph, np.array(rows, dtype=np.int64))
    assert some.tobytes() == everything[:, rows].tobytes()


@pytest.mark.parametrize("name", EVERY)
def test_a_removal_changes_no_row_beyond_the_declared_reach(name: str) -> None:
    graph, spec = random_graph(n=300), EVERY[name]
    weights = all_weights(spec, graph)[1:2]
    gone = int(graph.ids[graph.degree == 2][0])
    rest = graph.without(Nodes([gone]))
    near = graph.within_hops(graph.positions([gone]), declaration_of(spec.kind).reach(spec))
    far = np.setdiff1d(graph.ids, graph.ids[near])
    before = posteriors(spec, weights, graph, graph.positions(far))
    after = posteriors(spec, weights, rest, rest.positions(far))
    assert len(far) > 50
    assert before.tobytes() == after.tobytes()


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("bound", [WHOLE, Bound(3, 11)], ids=["whole", "bounded"])
@pytest.mark.parametrize("name", EVERY)
def test_each_node_hears_the_pyg_modules_of_the_shards_it_asks(name: str, bound: Bound) -> None:
    graph, spec = random_graph(), EVERY[name]
    weights = dict(zip((0, 4, 9), all_weights(spec, graph), strict=True))
    asked = np.random.default_rng(5).permuted([[0, 4, 9, -1]] * graph.num_nodes, axis=1)
    asked = asked[:, :3].astype(np.int32)
    hops = max(2, spec.hops)
    gathered = gather_field(graph, np.arange(graph.num_nodes), bound, hops=hops)
    found = asked_posteriors(spec, weights, gathered, asked, graph.num_classes)
    edges = bounded_edges(graph, min(bound.most, graph.num_nodes), bound.key)
    for shard, shard_weights in weights.items():
        expected = module_posteriors(spec, shard_weights, graph, edges)
        rows, slots = np.nonzero(asked == shard)
        np.testing.assert_allclose(found[rows, slots], expected[rows], atol=1e-5)
    assert (found[asked < 0] == 0).all()


@pytest.mark.parametrize("name", PRESETS | DEEP)
@settings(max_examples=10, deadline=None)
@given(rows=st.lists(st.integers(0, 59), max_size=20), seed=st.integers(0, 99))
def test_an_answer_has_the_same_bits_whatever_else_is_asked(
    name: str, rows: list[int], seed: int
) -> None:
    graph, spec = random_graph(), EVERY[name]
    weights = dict(enumerate(all_weights(spec, graph)))
    hops = max(2, spec.hops)
    every, bound = np.arange(graph.num_nodes), Bound(4, 1)
    all_asked = np.tile(np.arange(3, dtype=np.int32), (graph.num_nodes, 1))
    gathered = gather_field(graph, every, bound, hops=hops)
    everything = asked_posteriors(spec, weights, gathered, all_asked, graph.num_classes)
    asked = np.random.default_rng(seed).integers(-1, 3, size=(len(rows), 1)).astype(np.int32)
    gathered = gather_field(graph, np.array(rows, dtype=np.int64), bound, hops=hops)
    some = asked_posteriors(spec, weights, gathered, asked, graph.num_classes)
    for row, shard, answer in zip(rows, asked[:, 0], some[:, 0], strict=True):
        expected = everything[row, shard] if shard >= 0 else np.zeros_like(answer)
        assert answer.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", PRESETS)
def test_several_threads_give_the_same_bits_as_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, spec = random_graph(), PRESETS[name]
    weights = dict(enumerate(all_weights(spec, graph)))
    asked = np.random.default_rng(2).permuted([[0, 1, 2, -1]] * graph.num_nodes, axis=1)
    asked = asked[:, :2].astype(np.int32)
    gathered = gather_field(graph, np.arange(graph.num_nodes))
    one = asked_posteriors(spec, weights, gathered, asked, graph.num_classes)
    started: list[int] = []

    def pool(workers: int) -> ThreadPoolExecutor:
        started.append(workers)
        return ThreadPoolExecutor(workers)

    monkeypatch.setattr(inference, "_WORTH_THREADS", 1)
    monkeypatch.setattr(inference, "worker_count", lambda asked: 2)
    monkeypatch.setattr(inference, "ThreadPoolExecutor", pool)
    several = asked_posteriors(spec, weights, gathered, asked, graph.num_classes)
    assert started == [2]
    assert several.tobytes() == one.tobytes()


@pytest.mark.parametrize("name", VARIANTS)
def test_layer_by_layer_gives_the_bits_of_the_fused_passes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, spec = random_graph(), VARIANTS[name]
    weights, rows = all_weights(spec, graph)[:2], np.arange(0, graph.num_nodes, 3)
    fused = posteriors(spec, weights, graph, rows)
    monkeypatch.setattr(forward, spec.kind, forward.deep)
    assert posteriors(spec, weights, graph, rows).tobytes() == fused.tobytes()


def test_no_positions_and_no_shards_are_empty() -> None:
    graph, spec = random_graph(), PRESETS["gcn"]
    assert posteriors(spec, [], graph, np.arange(3)).shape == (0, 3, 4)
    none = np.zeros(0, dtype=np.int64)
    assert posteriors(spec, all_weights(spec, graph), graph, none).shape == (3, 0, 4)


@pytest.mark.parametrize("most", [2, 10**6])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", [name for name in EVERY if name.startswith("gcn")])
def test_posteriors_along_weighted_and_directed_edges_are_those_of_pyg(
    name: str, directed: bool, most: int
) -> None:
    graph = with_edge_values(small_graph(5, ties=4), directed=directed)
    spec = EVERY[name]
    weights = reference.train_shard(ShardTask(0, graph, 1), TrainingConfig(spec, epochs=5))
    module = build_module(spec, len(weights.columns), graph.num_classes)
    reference.load_tensors(module, weights.tensors).eval()
    assert graph.edge_weight is not None
    carried = dict(zip(map(tuple, graph.edge_index.T.tolist()), graph.edge_weight, strict=True))
    # Of each node the edges that come in from a neighbour that counts.
    edges = [pair for pair in bounded_edges(graph, most, 7).T.tolist() if tuple(pair) in carried]
    x = torch.tensor(graph.x.toarray()[:, weights.columns])
    with torch.no_grad():
        values = torch.tensor([carried[tuple(pair)] for pair in edges])
        scores = module(x, torch.tensor(edges).T, values)
    found = posteriors(spec, [weights], graph, np.arange(graph.num_nodes), Bound(most, 7))
    np.testing.assert_allclose(found[0], torch.softmax(scores, dim=1).numpy(), atol=1e-6)
