"""Every registered partitioner keeps the contract, and the suite catches those that don't."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import count

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.partition import (
    PARTITIONERS,
    Assignment,
    BrokenContractError,
    check_case,
    check_partitioner,
    partition_graph,
    resolve_partitioner,
)
from tests.partition.strategies import graphs

METHODS = [
    name for name in PARTITIONERS if name != "kaminpar" or importlib.util.find_spec("kaminpar")
]


@pytest.mark.parametrize("method", METHODS)
def test_awkward_graphs(method: str, capfd: pytest.CaptureFixture[str]) -> None:
    check_partitioner(method)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("method", METHODS)
@settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(data=st.data(), graph=graphs(), seed=st.integers(0, 2**40), gamma=st.sampled_from([0, 0.2]))
def test_any_graph(method: str, data: st.DataObject, graph: Graph, seed: int, gamma: float) -> None:
    num_shards = data.draw(st.integers(1, len(graph.train_nodes)))
    partition = check_case(method, graph, num_shards, seed=seed, gamma=gamma)
    if resolve_partitioner(method).strict:
        assert partition.sizes.max() <= partition.capacity
    if method != "hash":
        assert partition.sizes.min() >= 1
    assert set(partition.nodes) == set(graph.train_nodes)


@pytest.mark.parametrize("method", METHODS)
def test_k_of_one_and_k_of_n(method: str) -> None:
    graph = Graph.from_arrays(
        np.eye(9), np.stack([np.arange(8), np.arange(1, 9)]), np.zeros(9, dtype=int)
    )
    assert set(partition_graph(graph, method, num_shards=1).labels) == {0}
    if method != "hash":
        assert sorted(partition_graph(graph, method, num_shards=9).labels) == list(range(9))


_PROBE = """
import sys, hashlib, numpy as np
from grapheraser.graph import Graph
from grapheraser.partition import partition_graph
rng = np.random.Generator(np.random.PCG64(0))
pairs = rng.integers(0, 400, size=(1600, 2))
pairs = pairs[pairs[:, 0] != pairs[:, 1]]
graph = Graph.from_arrays(rng.random((400, 30)), pairs.T, rng.integers(0, 3, 400))
for method in sys.argv[1:]:
    labels = partition_graph(graph, method, num_shards=7, seed=5).labels
    print(method, hashlib.sha256(labels.tobytes()).hexdigest())
"""


def test_the_number_of_threads_changes_nothing() -> None:
    digests = set()
    for threads in ("1", "4"):
        names = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        env = os.environ | dict.fromkeys(names, threads)
        env["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        probe = [sys.executable, "-c", _PROBE, *METHODS]
        digests.add(subprocess.run(probe, env=env, capture_output=True, check=True).stdout)
    assert len(digests) == 1
    assert digests.pop().count(b"\n") == len(METHODS)


def good(graph: Graph, num_shards: int, seed: int) -> NDArray[np.int64]:
    return (np.arange(graph.num_nodes) + seed) % num_shards


def test_a_function_of_ones_own_passes() -> None:
    check_partitioner(good)


def test_a_partitioner_that_is_not_deterministic_is_caught() -> None:
    calls = count()
    with pytest.raises(BrokenContractError, match="two partitions for one seed"):
        check_partitioner(lambda graph, k, seed: good(graph, k, next(calls)))


def _overwrite(array: NDArray[np.generic]) -> None:
    array.flags.writeable = True
    array[:] = 0


@pytest.mark.parametrize(
    "change",
    [
        lambda graph: _overwrite(graph.y),
        lambda graph: _overwrite(graph.x.data),
        lambda graph: _overwrite(graph.indices),
        lambda graph: vars(graph._contents).update(y=0 * graph.y),
    ],
    ids=["labels", "features", "edges", "attribute"],
)
def test_a_partitioner_that_changes_its_graph_is_caught(change: Callable[[Graph], None]) -> None:
    def careless(graph: Graph, num_shards: int, seed: int) -> NDArray[np.int64]:
        change(graph)
        return good(graph, num_shards, seed)

    with pytest.raises(BrokenContractError, match="changed its input graph"):
        check_partitioner(careless)


def test_a_partitioner_that_leaves_the_range_is_caught() -> None:
    with pytest.raises(BrokenContractError, match=r"labels in \[0, 0\]"):
        check_partitioner(lambda graph, k, seed: np.arange(graph.num_nodes) + 1)


def test_a_strict_partitioner_that_overfills_is_caught() -> None:
    class Careless:
        name = "careless"
        inputs: frozenset[str] = frozenset()
        strict = True

        def __call__(
            self, graph: Graph, num_shards: int, *, capacity: int, seed: int
        ) -> Assignment:
            return Assignment(np.zeros(graph.num_nodes, dtype=np.int64))

    with pytest.raises(BrokenContractError, match="put 12 nodes into a shard that may hold 6"):
        check_partitioner(Careless())


def test_a_function_that_overfills_is_noted() -> None:
    graph = Graph.from_arrays(np.ones((6, 1)), np.zeros((2, 0), int), np.zeros(6, int))
    partition = partition_graph(graph, lambda g, k, s: np.zeros(6, dtype=int), num_shards=2)
    assert partition.notes == ("1 shards hold more than 3 nodes; the largest holds 6",)
