"""The way of a request as it is shown, and what pages say about it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from grapheraser.errors import EmptyEnsembleError, StorageFullError, TrainingError
from grapheraser.service.dashboard import shell
from grapheraser.service.dashboard.requests import STEPS, steps_of
from grapheraser.service.queue.requests import Event, Request, State
from grapheraser.service.worker.carrier import NO_NAMES, reason_of

BEGAN = datetime(2030, 1, 1, 23, 59, 58, tzinfo=UTC)


def request(state: str, reason: str | None = None, retry: datetime | None = None) -> Request:
    asked = Request(1, "a" * 32, "run", "erase", {"nodes": 1}, State(state), BEGAN, BEGAN)
    return replace(asked, reason=reason, retry_at=retry)


def history(*states: str) -> list[Event]:
    """One step a second."""
    return [
        Event(at, "run", "a" * 32, State(state), BEGAN + timedelta(seconds=at))
        for at, state in enumerate(states)
    ]


ALL = [state.value for state in STEPS]


@pytest.mark.parametrize("count", range(1, 7))
def test_what_is_done_is_told_from_what_is_next(count: int) -> None:
    steps = steps_of(request(ALL[count - 1]), history(*ALL[:count]))
    assert [step.state.value for step in steps] == ALL
    assert [step.at is not None for step in steps] == [at < count for at in range(6)]
    assert [at for at, step in enumerate(steps) if step.is_next] == ([count] if count < 6 else [])
    assert [step.seconds for step in steps[:count]] == [None, *[1.0] * (count - 1)]


@pytest.mark.parametrize(
    ("states", "reached"),
    [
        (["received", "planned", "retraining", "failed"], ["received"]),
        (["received", "planned", "retraining", "failed", "planned"], ["received", "planned"]),
        (["received", "planned", "retraining", "received"], ["received"]),
        (["received", "planned", "failed", "received", "planned"], ["received", "planned"]),
        (["received", "cancelled"], ["received"]),
    ],
)
def test_a_step_that_is_taken_again_undoes_those_after_it(
    states: list[str], reached: list[str]
) -> None:
    steps = steps_of(request(states[-1]), history(*states))
    assert [step.state.value for step in steps if step.at] == reached
    waits = states[-1] not in ("failed", "cancelled")
    assert sum(step.is_next for step in steps) == waits


def test_where_nothing_was_there_no_version_is_shown() -> None:
    states = ["received", "planned", "erased", "completed"]
    steps = steps_of(request("completed"), history(*states))
    assert [step.state.value for step in steps] == states


@pytest.mark.parametrize(
    ("reason", "retry", "advice"),
    [
        (reason_of(EmptyEnsembleError("nobody left")), None, "delete the run"),
        (reason_of(StorageFullError("full")), BEGAN, "room on the disk"),
        (reason_of(TrainingError({})), BEGAN, "which shard"),
        (reason_of(MemoryError()), BEGAN, "more memory"),
        (reason_of(ValueError()), BEGAN, "by itself"),
        (NO_NAMES, None, "Cancel it"),
    ],
)
def test_a_failure_says_what_to_do(reason: str, retry: datetime | None, advice: str) -> None:
    assert advice in shell.advice(request("failed", reason, retry))
    assert shell.advice(request("completed", reason)) == ""
    assert "Error" not in shell.spoken(reason)


def test_times_are_told_by_the_hour_on_the_same_day() -> None:
    later = BEGAN + timedelta(seconds=1)
    assert ">23:59:59<" in shell.clock(later, BEGAN)
    assert ">2030-01-02 00:00:00 UTC<" in shell.clock(BEGAN + timedelta(seconds=2), BEGAN)
    assert 'datetime="2030-01-01T23:59:58.000Z"' in shell.moment(BEGAN)
    assert shell.moment(None) == "-"


def test_what_is_named_is_counted_in_words() -> None:
    assert shell.named({"subjects": 1, "nodes": 2, "features": 1}) == (
        "1 subject, 2 nodes and 1 feature row"
    )
    assert shell.named({}) == "nothing"
