"""The service under load, on loopback: submits, predictions, and requests until their receipts.

The service runs in a process of its own, started by `grapheraser serve`; this process sends. All of
it is bounded in count and in time.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.datasets import load_dataset
from grapheraser.errors import ServiceError
from grapheraser.graph import Graph
from grapheraser.nodes import GraphEraser
from grapheraser.service.client import Client
from grapheraser_lab.bench.http import Load, drive, message
from grapheraser_lab.figures.tables import filled

DATASETS = {"cora": 20, "physics": 100}  # with the number of shards
REQUESTS = 1000
PREDICTIONS, BATCH = 1000, 100
CONNECTIONS = {"submit": 32, "predict": 2}
SECONDS = 30.0  # of a phase at the most
PATIENCE = 180.0  # seconds until all requests have to be completed
# What is wanted, on two cores: per second; times as slow; seconds until all receipts.
SUBMITS, BATCHES, SLOWER, RECEIPTS = 300.0, 100.0, 3.0, 180.0

Report = Mapping[str, Any]
Say = Callable[[str], None]


def run(
    datasets: Iterable[str] = tuple(DATASETS),
    *,
    requests: int = REQUESTS,
    predictions: int = PREDICTIONS,
    seconds: float = SECONDS,
    progress: Say = lambda text: None,
) -> dict[str, Any]:
    """Measure the service for a run of each data set.

    Args:
        datasets: which.
        requests: how many erasures to submit.
        predictions: how many predictions to ask for while nothing else happens.
        seconds: how long a phase may take.
        progress: told how far it is.
    """
    rows = []
    for name in datasets:
        graph = load_dataset(name)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            shards = DATASETS.get(name, 20)
            progress(f"{name}: fitting {shards} shards")
            GraphEraser(num_shards=shards).fit(graph).save(path)
            with served(path) as target:
                counts = (requests, predictions)
                rows.append({"dataset": name} | _measured(target, graph, counts, seconds, progress))
    settings = {"connections": CONNECTIONS, "batch": BATCH, "window": 1.0}
    return {"benchmark": "service", "settings": settings, "rows": rows}


@dataclass(frozen=True)
class Target:
    """A service that listens."""

    name: str
    port: int
    key: str

    @property
    def client(self) -> Client:
        return Client(f"http://127.0.0.1:{self.port}", self.key)

    def message(self, method: str, path: str, body: bytes, **headers: str) -> bytes:
        """A request to it, as bytes."""
        sent = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return message(method, path, f"127.0.0.1:{self.port}", sent, body)


@contextmanager
def served(path: Path) -> Iterator[Target]:
    """`grapheraser serve` for a run, in a process of its own."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    words = [sys.executable, "-m", "grapheraser", "serve", str(path), "--json", "--port", str(port)]
    # No role's usual rate holds the load back.
    env = {**os.environ, "GRAPHERASER_SERVICE_RATE": "1000000"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            lines = []
            while (line := process.stdout.readline()) not in ("}\n", ""):
                lines.append(line)
            target = Target(path.name, port, json.loads("".join([*lines, "}"]))["key"])
            _wait_for(target.client)
            yield target
        finally:
            process.terminate()


def _wait_for(client: Client, seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            client.get("/api/v1/ready")
        except ServiceError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


def _measured(
    target: Target, graph: Graph, counts: tuple[int, int], seconds: float, progress: Say
) -> dict[str, Any]:
    """All phases against one service."""
    rng, (requests, predictions) = np.random.default_rng(0), counts
    asked = [_prediction(target, rng.choice(graph.test_nodes, BATCH)) for _ in range(predictions)]
    gone = rng.choice(graph.train_nodes, min(requests, graph.num_train // 2), replace=False)
    submits = [_submit(target, int(node)) for node in gone]
    address = ("127.0.0.1", target.port)
    many: dict[str, Any] = {"connections": CONNECTIONS["predict"], "seconds": seconds}
    drive(address, asked[:20], **many)  # warm
    progress(f"{target.name}: predictions while nothing else happens")
    idle = drive(address, asked, **many)
    progress(f"{target.name}: {len(submits)} submits, and predictions until all are completed")
    began = time.monotonic()
    submitted = drive(address, submits, connections=CONNECTIONS["submit"], seconds=seconds)
    watch = _Watch(target.client, len(submits))
    busy = drive(
        address,
        asked,
        connections=CONNECTIONS["predict"],
        seconds=PATIENCE,
        until=lambda: watch.done,
    )
    completed = watch.stop() - began
    found = list(target.client.requests(limit=len(submits), state="completed"))
    progress(f"{target.name}: collecting {len(found)} receipts")
    receipts = [_receipt(target, one["id"]) for one in found]
    collected = drive(address, receipts, connections=CONNECTIONS["submit"], seconds=seconds)
    return {
        "shards": DATASETS.get(target.name, 20),
        "submit": submitted.summary(),
        "predict_idle": idle.summary(),
        "predict_busy": busy.summary(),
        "requests": len(submits),
        "completed": len(found),
        "versions": target.client.model()["version"],
        "until_completed": completed,
        "receipts": sum(status == 200 for status in collected.statuses),
        "until_receipts": completed + collected.seconds,
        "slower": _ratio(busy, idle),
    }


class _Watch:
    """Asks now and then whether all requests are completed, in a thread."""

    def __init__(self, client: Client, count: int) -> None:
        self.done = False
        self._client, self._count = client, count
        self._at = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            open_ones = ["received", "planned", "retraining", "published", "erased", "failed"]
            if not list(self._client.requests(limit=1, state=open_ones)):
                break
            time.sleep(0.1)
        self._at, self.done = time.monotonic(), True

    def stop(self) -> float:
        """When all were completed, or patience ended."""
        self._thread.join()
        return self._at


def _prediction(target: Target, nodes: Any) -> bytes:
    """A prediction as Triton's client asks for it: raw bytes both ways."""
    raw = np.asarray(nodes, dtype="<i8").tobytes()
    tensor: dict[str, Any] = {"name": "nodes", "datatype": "INT64", "shape": [len(nodes)]}
    tensor["parameters"] = {"binary_data_size": len(raw)}
    asked = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
    head = json.dumps(asked).encode()
    path = f"/v2/models/{target.name}/infer"
    length = {"Inference_Header_Content_Length": str(len(head))}
    return target.message("POST", path, head + raw, **length)


def _submit(target: Target, node: int) -> bytes:
    body = json.dumps({"nodes": [node]}).encode()
    return target.message("POST", "/api/v1/requests", body, Idempotency_Key=f"bench-{node}")


def _receipt(target: Target, name: str) -> bytes:
    return target.message("GET", f"/api/v1/requests/{name}/receipt", b"")


def _ratio(busy: Load, idle: Load) -> float:
    return busy.quantile(0.99) / idle.quantile(0.99)


def markdown(report: Report) -> str:
    """One row per data set."""
    header = (
        "data set | shards | submits/s | p50 | p99 | predictions/s | p50 | p99 | "
        "p99 while retraining |  | all completed | with receipts | versions"
    )
    row = (
        "{dataset} | {shards} | {submit[rate]:.0f} | {submit[p50]:time} | {submit[p99]:time} | "
        "{predict_idle[rate]:.0f} | {predict_idle[p50]:time} | {predict_idle[p99]:time} | "
        "{predict_busy[p99]:time} | {slower:.1f}x | {completed:,} in {until_completed:time} | "
        "{receipts:,} in {until_receipts:time} | {versions}"
    )
    return "\n".join([filled(header, row, report["rows"]), "", *_verdicts(report)])


def _verdicts(report: Report) -> list[str]:
    """List what was wanted, and whether it was so."""
    lines = []
    for row in report["rows"]:
        held = {
            f"{SUBMITS:.0f} submits/s": row["submit"]["rate"] >= SUBMITS,
            f"{BATCHES:.0f} predictions/s": row["predict_idle"]["rate"] >= BATCHES,
            f"p99 while retraining at most {SLOWER:g}x": row["slower"] <= SLOWER,
            f"all receipts within {RECEIPTS:.0f} s": row["receipts"] == row["requests"]
            and row["until_receipts"] <= RECEIPTS,
        }
        said = ", ".join(f"{what}: {'yes' if so else 'no'}" for what, so in held.items())
        lines.append(f"{row['dataset']}: {said}")
    return lines
