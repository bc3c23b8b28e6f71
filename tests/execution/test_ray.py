"""Ray: the same bits on a cluster, every failure under its shard, and a node that is lost."""

from __future__ import annotations

import logging
import os
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.environment import versions
from grapheraser.errors import (
    GraphError,
    MissingExtraError,
    ParameterError,
    TrainingError,
    WorkerError,
)
from grapheraser.execution import ProcessExecutor, RayExecutor, held, resolve_executor
from grapheraser.execution import ray as on_ray
from grapheraser.graph import edit_of
from tests.strategies import TwoHops, small_graph

# Of every node; the second one declares GPUs that it need not have.
SMALL: dict[str, Any] = {"object_store_memory": 80_000_000, "include_dashboard": False}
OTHER: dict[str, Any] = {"object_store_memory": 80_000_000, "num_cpus": 1, "num_gpus": 2}


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    executor = resolve_executor("ray")
    with pytest.raises(MissingExtraError, match="executor 'ray'") as caught:
        executor.map(abs, [1], names=[1])
    assert "'.[ray]'" in str(caught.value.hint)


def bits(eraser: ge.GraphEraser) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in eraser._snapshot.state.tensors().items()}


def odd_ones_fail(value: int) -> int:
    if value % 2:
        raise GraphError(f"{value} is odd", hint="add one")
    return value


def crashes(folder: Path, value: int) -> int:
    """Ends its process the first time that it is called with a value."""
    mark = folder / str(value)
    if not mark.exists():
        mark.touch()
        os._exit(1)
    return value


def noted(folder: Path, value: int) -> Any:
    """A result that is too large to travel with a reply; notes each time that it was computed.

    The first of each node is there at once, the others when they are told to go on.
    """
    import numpy as np

    (folder / f"begun-{node_id()}-{secrets.token_hex(4)}").touch()
    both_begun(folder)
    while value >= 2 and not (folder / "go").exists():
        time.sleep(0.02)
    result = np.full(50_000, value)
    (folder / f"done-{value}-{secrets.token_hex(4)}").touch()
    return result


def node_id() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


def both_begun(folder: Path) -> None:
    """Wait until tasks run on two nodes."""
    deadline = time.monotonic() + 120
    while len({note.name.split("-")[1] for note in folder.glob("begun-*")}) < 2:
        assert time.monotonic() < deadline, "only one node works"
        time.sleep(0.05)


def surroundings(_: int) -> dict[str, Any]:
    threads = [value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")]
    return {
        "threads": threads,
        "pid": os.getpid(),
        "node": node_id(),
        "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "greeting": os.environ.get("GREETING"),
    }


def slow_module(folder: Path, in_channels: int, out_channels: int) -> TwoHops:
    """A module that notes where its training starts, and waits until both nodes train."""
    import ray

    if ray.is_initialized() and ray.get_runtime_context().worker.mode == ray.WORKER_MODE:
        (folder / f"begun-{node_id()}-{secrets.token_hex(4)}").touch()
        both_begun(folder)
        time.sleep(1)
    return TwoHops(in_channels, out_channels)


@pytest.mark.long
def test_a_ray_that_it_started_ends_with_the_block(ray_settings: None) -> None:
    import ray

    with RayExecutor(workers=1) as executor:
        first, again = (executor.map(surroundings, [0], names=[0]) for _ in range(2))
        assert first[0]["node"] == again[0]["node"]
        assert ray.is_initialized()
    assert not ray.is_initialized()


def test_a_cluster_that_is_not_there_is_refused(
    ray_settings: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody_answers(*_: Any, **__: Any) -> None:
        raise ConnectionError

    wanted = r"'address' of RayExecutor .* Got '{}' \(ConnectionRefusedError"
    with pytest.raises(ParameterError, match=wanted.format("127.0.0.1:1")) as caught:
        RayExecutor("127.0.0.1:1").map(abs, [1], names=[1])
    assert "ray start --head" in str(caught.value.hint)
    monkeypatch.setattr("ray.init", nobody_answers)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(ParameterError, match=r"Got 'auto' \(ConnectionError"):
        RayExecutor().map(abs, [1], names=[1])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (RayExecutor(num_gpus=-1), "'num_gpus' of RayExecutor"),
        (RayExecutor(num_cpus=float("nan")), "'num_cpus' of RayExecutor"),
        (RayExecutor(max_retries=-2), "'max_retries' of RayExecutor"),
        (RayExecutor(workers=0), "'workers' of RayExecutor"),
        (RayExecutor(options={"num_gpus": 2}), "'options' of RayExecutor has 'num_gpus'"),
    ],
)
def test_what_tasks_reserve_is_checked(bad: RayExecutor, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        bad.map(abs, [1], names=[1])


def test_a_device_says_what_a_task_reserves() -> None:
    assert resolve_executor("ray", "cuda") == RayExecutor(num_gpus=1)
    assert resolve_executor("ray", "cpu") == RayExecutor()
    with pytest.raises(ParameterError, match="Ray chooses the GPU"):
        resolve_executor("ray", "cuda:1")


def test_a_worker_with_other_versions_is_refused() -> None:
    assert on_ray._call(abs, -1, versions()) == 1
    with pytest.raises(WorkerError, match=r"other bits: it has torch .* instead of 1\.0\."):
        on_ray._call(abs, -1, versions() | {"torch": "1.0"})


@pytest.mark.long
def test_a_worker_without_memory_and_a_cluster_without_gpus_are_reported(
    ray_settings: None,
) -> None:
    from ray.cluster_utils import Cluster

    full = {"memory_usage_threshold": 0.001, "memory_monitor_refresh_ms": 50}
    cluster: Any = Cluster(
        initialize_head=True,
        head_node_args={**SMALL, "num_cpus": 1, "_system_config": full},
    )
    try:
        with RayExecutor(cluster.address, max_retries=0) as executor:
            with pytest.raises(TrainingError) as caught:
                executor.map(time.sleep, [20], names=[7])
            failure = caught.value.failures[7]
            assert isinstance(failure, WorkerError)
            assert failure.message.startswith("out of memory: ")
            assert "make shards smaller" in str(failure.hint)
            assert "RAY_task_oom_retries" not in os.environ
            with pytest.raises(UserWarning, match="1 CPUs and 2 GPUs for a task; waiting"):
                RayExecutor(num_gpus=2).map(abs, [1], names=[1])
    finally:
        cluster.shutdown()
    with pytest.raises(ParameterError, match="no node of the cluster has 1 CPUs and 64 GPUs"):
        RayExecutor(num_gpus=64, workers=1).map(abs, [1], names=[1])


# -- a cluster of two nodes on this machine -------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(ray_settings: None) -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    checks = {"health_check_period_ms": 1000, "health_check_timeout_ms": 2000}
    cluster: Any = Cluster(
        initialize_head=True, head_node_args={**SMALL, "num_cpus": 1, "_system_config": checks}
    )
    ray.init(cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    cluster.add_node(**OTHER)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@contextmanager
def killing(cluster: Any, folder: Path) -> Iterator[None]:
    """A block in which the second node is killed once a task has begun there, and replaced."""
    (lost,) = cluster.worker_nodes
    killed = threading.Event()

    def kill_once_it_works() -> None:
        while not list(folder.glob(f"begun-{lost.node_id}-*")):
            time.sleep(0.02)
        cluster.remove_node(lost, allow_graceful=False)
        killed.set()

    threading.Thread(target=kill_once_it_works, daemon=True).start()
    yield
    assert killed.wait(timeout=60)
    cluster.add_node(**OTHER)


@pytest.mark.long
def test_results_and_failures_come_whole_and_in_order(cluster: Any) -> None:
    ticks: list[None] = []
    executor = RayExecutor()
    found = executor.map(abs, [-3, 2, -1], names=[0, 1, 2], tick=lambda: ticks.append(None))
    assert found == [3, 2, 1]
    assert len(ticks) == 3
    assert executor.map(abs, [], names=[]) == []
    with pytest.raises(TrainingError) as caught:
        executor.map(odd_ones_fail, [0, 1, 2, 3], names=[10, 11, 12, 13])
    assert list(caught.value.failures) == [11, 13]
    failure = caught.value.failures[11]
    assert type(failure) is GraphError
    assert failure.hint == "add one"
    places = executor.map(surroundings, [0, 1, 2, 3], names=range(4))
    assert os.getpid() not in {place["pid"] for place in places}
    assert {value for place in places for value in place["threads"]} == {"1"}


@pytest.mark.long
def test_resources_are_declared_in_parts_and_tasks_get_them(cluster: Any) -> None:
    assert RayExecutor().slots() == 2
    assert RayExecutor(workers=1).slots() == 1
    assert RayExecutor(num_cpus=0.3).slots() == 6, "whole tasks, node by node"
    assert RayExecutor(num_gpus=0.5, num_cpus=0).slots() == 4
    assert RayExecutor(num_gpus=1).slots() == 1, "one CPU beside two GPUs"
    hello = {"runtime_env": {"env_vars": {"GREETING": "hello"}}}
    executor = RayExecutor(num_gpus=1, num_cpus=0, options=hello)
    places = executor.map(surroundings, range(4), names=range(4))
    (other,) = cluster.worker_nodes
    assert {place["node"] for place in places} == {other.node_id}
    assert {place["gpus"] for place in places} <= {"0", "1"}
    assert {place["greeting"] for place in places} == {"hello"}
    assert {value for place in places for value in place["threads"]} == {"1"}


@pytest.mark.long
@pytest.mark.parametrize(("executor", "room"), [(RayExecutor(), 4), (RayExecutor(workers=1), 1)])
def test_no_more_tasks_are_made_than_there_is_room_for(
    cluster: Any, executor: RayExecutor, room: int
) -> None:
    made = 0

    def tasks() -> Iterator[int]:
        nonlocal made
        for task in range(12):
            made += 1
            yield -task

    finished: dict[int, Any] = {}
    most = 0
    for place, outcome in executor.stream(abs, tasks()):
        most = max(most, made - len(finished))
        finished[place] = outcome
    assert finished == {task: task for task in range(12)}
    assert most == room


@pytest.mark.long
def test_a_lost_worker_is_replaced_so_often_and_no_more(cluster: Any, tmp_path: Path) -> None:
    work = partial(crashes, tmp_path)
    assert RayExecutor().map(work, [0, 1], names=[0, 1]) == [0, 1]
    with pytest.raises(TrainingError) as caught:
        RayExecutor(max_retries=0).map(work, [0, 2, 1], names=[10, 12, 11])
    assert list(caught.value.failures) == [12]
    assert isinstance(caught.value.failures[12], WorkerError)
    assert "WorkerCrashedError" in str(caught.value)


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize("executor", ["process", "ray"])
def test_every_model_forgets_elsewhere_as_if_it_were_fitted_here(
    request: pytest.FixtureRequest, executor: str
) -> None:
    """Changed in other processes, each ends in the bits of a fresh fit of the rest in this one."""
    runs_on: Any = ProcessExecutor(2)
    if executor == "ray":
        request.getfixturevalue("cluster")
        runs_on = RayExecutor()
    graph = small_graph()
    gone: Any = [ge.Nodes(graph.train_nodes[:2]), ge.Features(graph.train_nodes[3:5])]
    changed = ge.SetLabels(graph.train_nodes[6:8], [0, 1])
    rest = graph.without(gone)
    rest = rest.updated(edit_of(rest, [changed]))
    with held(runs_on):
        for model in ("gcn", "sage", "gat", "gin", "mlp"):
            options: Any = {"model": model, "num_shards": 3, "epochs": 2, "partition": "hash"}
            eraser = ge.GraphEraser(**options, executor=runs_on).fit(graph)
            eraser.unlearn(gone)
            eraser.update(changed)
            assert bits(eraser) == bits(ge.GraphEraser(**options).fit(rest)), model


@pytest.mark.long
def test_a_cluster_gives_the_bits_of_one_process(
    cluster: Any, small: ge.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    erasers = [
        ge.GraphEraser(num_shards=3, epochs=3, partition="hash", executor=executor).fit(small)
        for executor in ("local", "ray")
    ]
    assert bits(erasers[0]) == bits(erasers[1])
    receipts = [eraser.unlearn(ge.Nodes(small.train_nodes[:1])) for eraser in erasers]
    assert receipts[0].retrained == receipts[1].retrained
    assert bits(erasers[0]) == bits(erasers[1])
    relabelled = ge.SetLabels(small.train_nodes[1:4], [0, 1, 0])
    receipts = [eraser.update(relabelled) for eraser in erasers]
    assert receipts[0].retrained == receipts[1].retrained
    assert bits(erasers[0]) == bits(erasers[1])
    assert erasers[1].verify().identical
    monkeypatch.setattr("grapheraser.nodes.scoring.BLOCK", 7)
    found = []
    for eraser in erasers:
        eraser.predict_to(tmp_path / "scores.csv", posteriors=True)
        found.append((tmp_path / "scores.csv").read_bytes())
    assert found[0] == found[1]
    assert ray.is_initialized(), "what somebody else has started stays"


@pytest.mark.long
def test_a_node_lost_during_fit_and_unlearn_costs_time_and_no_bit(
    cluster: Any, small: ge.Graph, tmp_path: Path
) -> None:
    forget = ge.Nodes(small.train_nodes[:12])
    here, there = (
        ge.GraphEraser(
            num_shards=5, epochs=2, model=partial(slow_module, tmp_path), executor=executor
        )
        for executor in ("local", RayExecutor())
    )
    with killing(cluster, tmp_path):
        there.fit(small)
    assert len(list(tmp_path.iterdir())) > 5, "the lost shard was trained on the other node"
    assert bits(there) == bits(here.fit(small))
    for note in tmp_path.iterdir():
        note.unlink()
    with killing(cluster, tmp_path):
        receipt = there.unlearn(forget)
    assert len(list(tmp_path.iterdir())) > len(receipt.retrained) > 1
    assert receipt.retrained == here.unlearn(forget).retrained
    assert bits(there) == bits(here)


@pytest.mark.long
def test_results_that_are_lost_with_a_node_are_computed_again(cluster: Any, tmp_path: Path) -> None:
    (lost,) = cluster.worker_nodes
    finished: dict[int, Any] = {}
    for place, outcome in RayExecutor().stream(partial(noted, tmp_path), range(4)):
        if not finished:
            while len(list(tmp_path.glob("begun-*"))) < 4:
                time.sleep(0.02)
            (tmp_path / "go").touch()  # one on each node, while nobody asks for results
            while len({note.name.split("-")[1] for note in tmp_path.glob("done-*")}) < 4:
                time.sleep(0.02)
            cluster.remove_node(lost, allow_graceful=False)
        finished[place] = outcome
    assert {place: set(result) for place, result in finished.items()} == {n: {n} for n in range(4)}
    assert len(list(tmp_path.glob("done-*"))) > 4
    cluster.add_node(**OTHER)
