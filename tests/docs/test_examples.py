"""The files in examples/: units, manifests, alerts, a board and models that say what is so."""

from __future__ import annotations

import configparser
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser import environment
from grapheraser.cli.app import app
from grapheraser.service.settings import Settings
from grapheraser.service.settings import variables as settings
from tests.service.api.conftest import Api, opened
from tests.strategies import small_graph

EXAMPLES = Path(__file__).parents[2] / "examples"


def stand_in() -> dict[str, ModuleType]:
    """As much of MLflow as the example needs, where it is not installed."""
    names = ("mlflow", "mlflow.models", "mlflow.pyfunc")
    mlflow, models, pyfunc = found = [ModuleType(name) for name in names]
    saved: dict[str, Any] = {}
    pyfunc.PythonModel = type("PythonModel", (), {})  # type: ignore[attr-defined]
    pyfunc.save_model = lambda **given: saved.update(given)  # type: ignore[attr-defined]
    pyfunc.saved = saved  # type: ignore[attr-defined]
    models.set_model = lambda model: saved.update(model=model)  # type: ignore[attr-defined]
    mlflow.pyfunc, mlflow.models = pyfunc, models  # type: ignore[attr-defined]
    return dict(zip(names, found, strict=True))


def test_the_mlflow_model_answers_with_the_bits_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    eraser = ge.GraphEraser(num_shards=2, epochs=2).fit(small_graph())
    eraser.save(tmp_path / "run")
    ids = eraser.graph_.ids[:5]
    is_installed = importlib.util.find_spec("mlflow") is not None
    if not is_installed:
        for name, module in stand_in().items():
            monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.spec_from_file_location("mlflow_model", EXAMPLES / "mlflow_model.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mlflow_model", example)
    spec.loader.exec_module(example)
    example.save(tmp_path / "run", tmp_path / "model")
    if is_installed:
        loaded = example.mlflow.pyfunc.load_model(str(tmp_path / "model"))
        found = loaded.predict([int(node) for node in ids])
    else:
        saved = example.mlflow.pyfunc.saved
        assert saved["artifacts"] == {"run": str(tmp_path / "run")}
        assert Path(saved["python_model"]) == EXAMPLES / "mlflow_model.py"
        model = saved["model"]
        model.load_context(SimpleNamespace(artifacts=saved["artifacts"]))
        found = model.predict(None, [int(node) for node in ids])
    np.testing.assert_array_equal(found, eraser.predict_proba(ids))


def test_a_batch_forgets_what_files_name_once(tmp_path: Path) -> None:
    eraser = ge.GraphEraser("closed-form").fit(small_graph())
    eraser.save(tmp_path / "run")
    gone = eraser.graph_.ids[:3].tolist()
    inbox = tmp_path / "erasures"
    inbox.mkdir()
    folders = (tmp_path / "run", inbox, tmp_path / "receipts")
    command = [sys.executable, *map(str, (EXAMPLES / "batch.py", *folders))]
    for expected in (3, 0):  # the second time all of them are gone
        (inbox / "today.txt").write_text("\n".join(map(str, gone)))
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == f"{expected} nodes forgotten\n"
        assert not list(inbox.iterdir())
    assert len(list((tmp_path / "receipts").iterdir())) == 3
    assert not ge.GraphEraser.load(tmp_path / "run").graph_.contains(gone).any()


@pytest.mark.long
def test_the_pipeline_learns_again_after_an_erasure() -> None:
    command = [sys.executable, str(EXAMPLES / "pipeline.py")]
    first, second = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert first.startswith("exact: ")
    assert float(second.split()[1]) > 0.5


def verbs() -> set[str]:
    return {command.name or "" for command in app.registered_commands}


def test_the_unit_starts_a_verb_that_exists() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(EXAMPLES / "grapheraser.service")
    program, verb, run = unit["Service"]["ExecStart"].split()
    assert program.endswith("/grapheraser")
    assert verb in verbs()
    assert run.startswith(unit["Service"]["ReadWritePaths"])
    if shutil.which("systemd-analyze"):
        done = subprocess.run(
            ["systemd-analyze", "verify", EXAMPLES / "grapheraser.service"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Unknown" not in done.stderr


def test_the_container_names_variables_and_verbs_that_exist() -> None:
    text = (EXAMPLES / "Containerfile").read_text()
    variables = set(re.findall(r"\bGRAPHERASER_\w+", text))
    assert variables <= environment.VARIABLES.keys() | settings().keys()
    assert set(re.findall(r"grapheraser (\w+)", text)) <= {*verbs(), "access"}
    assert '"serve"' in text
    for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE):
        *sources, _ = line.split()
        assert all((EXAMPLES.parent / source).exists() for source in sources)


# -- what operators load elsewhere -----------------------------------------------------------------


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    path = tmp_path_factory.mktemp("examples") / "people"
    ge.GraphEraser(num_shards=2, epochs=1).fit(small_graph()).save(path)
    with opened(path) as api:
        yield api


@pytest.fixture(scope="module")
def metrics(running: Api) -> dict[str, set[str]]:
    """The names that a service exports, each with the names of its labels."""
    metrics = running.parts.metrics
    metrics.requests.labels("/", "GET", "200").inc()
    metrics.seconds.labels("/", "GET").observe(1)
    metrics.callbacks.labels("given up").inc()
    found: dict[str, set[str]] = {}
    for line in metrics.page().decode().splitlines():
        if not line.startswith("#"):
            name, labels = re.match(r"(\w+)(?:\{(.*)\})? ", line).groups()  # type: ignore[union-attr]
            found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels or ""))
    return found


def check_query(query: str, metrics: dict[str, set[str]]) -> None:
    """Fail where a query names a metric or a label that there is not."""
    names = re.findall(r"\b(grapheraser_\w+)(?:\{([^}]*)\})?", query)
    assert names or query.startswith("up{")
    for name, labels in names:
        assert name in metrics, query
        assert set(re.findall(r"(\w+)=", labels)) <= metrics[name], query
        for label in re.findall(r"by \(([^)]*)\)", query):
            assert set(label.split(", ")) <= metrics[name], query


def loaded(name: str) -> list[Any]:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def test_alerts_are_about_metrics_that_the_service_exports(metrics: dict[str, set[str]]) -> None:
    (content,) = loaded("prometheus-rules.yaml")
    (group,) = content["groups"]
    for rule in group["rules"]:
        check_query(rule["expr"], metrics)
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}
    named = {rule["alert"] for rule in group["rules"]}
    assert len(named) == len(group["rules"])
    promised = ("requests_late", "requests_due_soon", "worker_trouble")
    assert all(any(name in rule["expr"] for rule in group["rules"]) for name in promised)
    if shutil.which("promtool"):
        subprocess.run(
            ["promtool", "check", "rules", EXAMPLES / "prometheus-rules.yaml"], check=True
        )


def test_the_board_is_about_metrics_that_the_service_exports(
    metrics: dict[str, set[str]],
) -> None:
    board = json.loads((EXAMPLES / "grafana.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    for query in queries:
        check_query(query, metrics)
    base = {re.sub("_(bucket|sum|count|created)$", "", name) for name in metrics}
    shown = {name for name in base if any(name in query for query in queries)}
    assert base == shown  # all of them
    places = [panel["gridPos"] for panel in board["panels"]]
    cells = [
        (x, y)
        for at in places
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))  # no panel lies on another
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_the_manifests_fit_each_other_and_the_service(running: Api) -> None:
    found = loaded("kubernetes.yaml")
    by_kind: dict[str, list[Any]] = {}
    for one in found:
        by_kind.setdefault(one["kind"], []).append(one)
    (deployment,), (service,), (config,) = (
        by_kind[kind] for kind in ("Deployment", "Service", "ConfigMap")
    )
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    labels = pod["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"] == labels
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]["type"]) == (
        1,
        "Recreate",
    )
    claims = {claim["metadata"]["name"] for claim in by_kind["PersistentVolumeClaim"]}
    volumes = pod["spec"]["volumes"]
    assert {volume["persistentVolumeClaim"]["claimName"] for volume in volumes} == claims
    assert {mount["name"] for mount in container["volumeMounts"]} == {v["name"] for v in volumes}
    ports = {port["name"] for port in container["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports

    assert container["args"][0] in verbs()
    # Kubernetes would set GRAPHERASER_SERVICE_HOST and more for a Service of this name.
    prefix = service["metadata"]["name"].upper().replace("-", "_")
    assert any(name.startswith(f"{prefix}_SERVICE_") for name in settings())
    assert pod["spec"]["enableServiceLinks"] is False
    values = {settings()[name]: text for name, text in config["data"].items()}
    assert values["host"] == "0.0.0.0"
    assert Settings(log_format=values["log_format"]).log_format == "json"
    assert int(values["port"]) == container["ports"][0]["containerPort"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        path = container[probe]["httpGet"]["path"]
        assert running.client.get(path).status_code in (200, 503)
        assert path in running.app.openapi()["paths"]
    uid = re.search(r"--uid (\d+)", (EXAMPLES / "Containerfile").read_text())
    assert uid is not None
    assert pod["spec"]["securityContext"]["runAsUser"] == int(uid[1])
    assert environment.VERSION in container["image"]
