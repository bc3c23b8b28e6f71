"""grapheraser recommend."""

from __future__ import annotations

from tests.cli.commands import data, run


def test_recommend_ends_with_a_command_that_follows_its_advice() -> None:
    options = ("--model", "mlp", "--shards", 4, "--epochs", 2)
    advice = data("recommend", "demo", *options)
    assert {"closed-form", "closed-form, richer", "mlp", "mlp shards"} == set(advice["f1"])
    assert advice["reasons"]
    *told, command = run("recommend", "demo", *options).stdout.strip().split("\n")
    assert told[: len(advice["reasons"])] == advice["reasons"]
    assert any(f"Differences below {advice['margin']:.3f} may be chance" in line for line in told)
    for name, f1 in advice["f1"].items():
        assert any(line.split() == [*name.split(), f"{f1:.3f}"] for line in told)
    assert command.startswith(f"grapheraser fit demo --model {advice['model']}")
    assert ("--shards 4" in command) == (advice["num_shards"] == 4)
    assert "--epochs 2" in command


def test_recommend_measures_the_graph_that_fit_would_see() -> None:
    options = ("--model", "closed-form", "--split", "random", "--context", "all")
    command = run("recommend", "demo", *options).stdout.strip().split("\n")[-1]
    assert "--split random --context all" in command
    done = run("recommend", "demo", "--model", "closed-form", "--context", "some")
    assert "'context'" in done.stderr
    assert "has no public split" in run("recommend", "demo", "--split", "public").stderr
