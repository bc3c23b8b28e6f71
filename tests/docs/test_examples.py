"""The files in examples/: a unit, a container and an MLflow model that say what is so."""

from __future__ import annotations

import configparser
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser import environment
from grapheraser.cli.app import app
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
    from grapheraser.service.settings import variables as settings

    assert variables <= environment.VARIABLES.keys() | settings().keys()
    assert set(re.findall(r"grapheraser (\w+)", text)) <= {*verbs(), "access"}
    assert '"serve"' in text
    for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE):
        *sources, _ = line.split()
        assert all((EXAMPLES.parent / source).exists() for source in sources)
