"""grapheraser recommend."""

from __future__ import annotations

from tests.cli.commands import data, run


def test_recommend_ends_with_a_command_that_follows_its_advice() -> None:
    options = ("--model", "mlp", "--shards", 4, "--epochs", 2)
    advice = data("recommend", "demo", *options)
    assert advice["num_shards"] == 4
    assert len(advice["reasons"]) == 4
    *_, command = run("recommend", "demo", *options).stdout.strip().split("\n")
    assert command.startswith(f"grapheraser fit demo --model mlp --partition {advice['partition']}")
    assert ("--wide-expert" in command) == (advice["global_expert"] == "wide")
