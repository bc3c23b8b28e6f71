"""The demonstration of every task: the same story, which ends in bits that are the same."""

from __future__ import annotations

import json

import pytest

from grapheraser.demo.tasks import SCENES, TYPED
from tests.cli.commands import run


@pytest.mark.long
@pytest.mark.parametrize(
    ("task", "more"), [*((task, []) for task in SCENES), *((task, ["--typed"]) for task in TYPED)]
)
def test_every_task_is_told_and_ends_exact(task: str, more: list[str]) -> None:
    done = run("demo", "--task", task, *more, "--requests", "2", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["identical"]
    assert told["statement"].startswith("exact")
    assert len(told["request_seconds"]) >= 1
    assert all(seconds > 0 for seconds in told["request_seconds"].values())


def test_a_task_without_a_story_is_refused() -> None:
    done = run("demo", "--task", "magic")
    assert done.returncode == 1
    assert "links" in done.stderr
    assert run("demo", "--task", "links", "--serve").returncode == 1
    assert "embeddings" in run("demo", "--task", "links", "--typed").stderr
