"""Ray: the same bits on a cluster, every failure under its shard, and a node that is lost."""

from __future__ import annotations

import logging
import os
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.errors import GraphError, MissingExtraError, ParameterError, TrainingError
from grapheraser.execution import RayExecutor, resolve_executor
from tests.strategies import TwoHops


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    executor = resolve_executor("ray")
    with pytest.raises(MissingExtraError, match="executor 'ray'") as caught:
        executor.map(abs, [1], names=[1])
    assert "grapheraser[ray]" in str(caught.value.hint)


def bits(eraser: ge.GraphEraser) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in eraser._state.tensors().items()}


def odd_ones_fail(value: int) -> int:
    if value % 2:
        raise GraphError(f"{value} is odd", hint="add one")
    return value


def surroundings(_: int) -> dict[str, Any]:
    import ray

    threads = [value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")]
    return {"threads": threads, "pid": os.getpid(), "node": ray.get_runtime_context().get_node_id()}


def slow_module(folder: Path, in_channels: int, out_channels: int) -> TwoHops:
    """A module that notes where its training starts, and waits until both nodes train."""
    import ray

    if ray.is_initialized() and ray.get_runtime_context().worker.mode == ray.WORKER_MODE:
        (folder / f"{ray.get_runtime_context().get_node_id()}-{secrets.token_hex(4)}").touch()
        deadline = time.monotonic() + 30
        while len({note.name.partition("-")[0] for note in folder.iterdir()}) < 2:
            assert time.monotonic() < deadline, "only one node trains"
            time.sleep(0.05)
        time.sleep(1)
    return TwoHops(in_channels, out_channels)


@pytest.fixture(scope="module")
def ray_settings() -> Iterator[None]:
    """Quiet, local, and with a token of its own instead of one in the home folder."""
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "")  # so that what Ray sets it to goes with the fixture
        patch.delenv("RAY_AUTH_MODE")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        yield


@pytest.mark.slow
def test_a_ray_that_it_started_ends_with_the_block(ray_settings: None) -> None:
    import ray

    with RayExecutor() as executor:
        first, again = (executor.map(surroundings, [0], names=[0]) for _ in range(2))
        assert first[0]["node"] == again[0]["node"]
        assert ray.is_initialized()
    assert not ray.is_initialized()


def test_a_cluster_that_is_not_there_is_refused(
    ray_settings: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody_answers(*_: Any, **__: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr("ray.init", nobody_answers)
    monkeypatch.setenv("RAY_ADDRESS", "nowhere:6379")
    with pytest.raises(ParameterError, match=r"'address' of RayExecutor .* Got 'nowhere:6379'"):
        RayExecutor().map(abs, [1], names=[1])


# -- a cluster of two nodes on this machine -------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(ray_settings: None) -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    checks = {"health_check_period_ms": 1000, "health_check_timeout_ms": 2000}
    cluster: Any = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, "_system_config": checks},
    )
    ray.init(cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    cluster.add_node(num_cpus=1)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.slow
def test_results_and_failures_come_whole_and_in_order(cluster: Any) -> None:
    ticks: list[None] = []
    executor = RayExecutor()
    found = executor.map(abs, [-3, 2, -1], names=[0, 1, 2], tick=lambda: ticks.append(None))
    assert found == [3, 2, 1]
    assert len(ticks) == 3
    assert executor.map(abs, [], names=[]) == []
    assert executor.slots() == 2
    with pytest.raises(TrainingError) as caught:
        executor.map(odd_ones_fail, [0, 1, 2, 3], names=[10, 11, 12, 13])
    assert list(caught.value.failures) == [11, 13]
    failure = caught.value.failures[11]
    assert type(failure) is GraphError
    assert failure.hint == "add one"
    places = executor.map(surroundings, [0, 1, 2, 3], names=range(4))
    assert os.getpid() not in {place["pid"] for place in places}
    assert {value for place in places for value in place["threads"]} == {"1"}


@pytest.mark.slow
def test_only_an_interrupt_cancels_and_only_what_has_not_finished(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[Any] = []
    monkeypatch.setattr("ray.cancel", cancelled.append)

    def interrupt() -> None:
        raise KeyboardInterrupt

    executor = RayExecutor()
    with pytest.raises(TrainingError):
        executor.map(odd_ones_fail, [0, 1], names=[0, 1])
    assert not cancelled
    with pytest.raises(KeyboardInterrupt):
        executor.map(time.sleep, [0.1, 0.5, 0.5], names=range(3), tick=interrupt)
    assert len(cancelled) == 2
    assert executor.map(abs, [-1, -2], names=[0, 1]) == [1, 2]


@pytest.mark.slow
def test_a_cluster_gives_the_bits_of_one_process(cluster: Any, small: ge.Graph) -> None:
    import ray

    erasers = [
        ge.GraphEraser(num_shards=3, epochs=3, partition="hash", executor=executor).fit(small)
        for executor in ("local", "ray")
    ]
    assert bits(erasers[0]) == bits(erasers[1])
    receipts = [eraser.unlearn(ge.Nodes(small.train_nodes[:1])) for eraser in erasers]
    assert receipts[0].retrained == receipts[1].retrained
    assert bits(erasers[0]) == bits(erasers[1])
    assert ray.is_initialized(), "what somebody else has started stays"


@pytest.mark.slow
def test_a_node_lost_during_fit_costs_time_and_no_bit(
    cluster: Any, small: ge.Graph, tmp_path: Path
) -> None:
    (lost,) = cluster.worker_nodes
    killed = threading.Event()

    def kill_once_it_trains() -> None:
        while not list(tmp_path.glob(f"{lost.node_id}-*")):
            time.sleep(0.02)
        cluster.remove_node(lost, allow_graceful=False)
        killed.set()

    factory = partial(slow_module, tmp_path)
    here, there = (
        partial(ge.GraphEraser, num_shards=5, epochs=2, model=factory, executor=executor)
        for executor in ("local", RayExecutor())
    )
    killer = threading.Thread(target=kill_once_it_trains, daemon=True)
    killer.start()
    fitted = there().fit(small)
    assert killed.wait(timeout=30)
    assert bits(fitted) == bits(here().fit(small))
    assert len(list(tmp_path.iterdir())) > 5, "the lost shard was retrained on the other node"
    cluster.add_node(num_cpus=1)
