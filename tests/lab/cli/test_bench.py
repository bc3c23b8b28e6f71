"""grapheraser bench."""

from __future__ import annotations

import pytest

from tests.cli.commands import run


def test_the_gpu_benchmark_needs_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    done = run("bench", "cuda")
    assert done.returncode == 1
    assert done.stderr.startswith("error[GE-011]: benchmark 'cuda' needs a GPU")


def test_an_option_that_a_benchmark_does_not_take_is_refused() -> None:
    done = run("bench", "links-cost", "--device", "cpu")
    assert done.returncode == 1
    assert "benchmark 'links-cost' has no option --device" in done.stderr


def test_a_benchmark_takes_the_models_that_it_measures_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def measured(
        models: tuple[str, ...] = ("gcn", "closed-form"), **_: object
    ) -> dict[str, object]:
        asked.extend(models)
        return {"rows": [], "partitions": []}

    monkeypatch.setattr("grapheraser_lab.bench.scale.run", measured)
    assert run("bench", "scale", "--models", "closed-form").returncode == 0
    assert asked == ["closed-form"]
    refused = run("bench", "scale", "--models", "closed")
    assert refused.returncode == 1
    assert "Choose from: gcn, " in refused.stderr
    assert "closed-form" in refused.stderr
