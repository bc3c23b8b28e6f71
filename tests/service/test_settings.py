"""Settings: arguments before the environment before a file, and nothing is silently ignored."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from grapheraser.errors import ParameterError
from grapheraser.service.settings import Settings, is_time, variables

ROOT = Path(__file__).parents[2]


def test_arguments_come_before_the_environment_before_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "service.toml"
    file.write_text('window = 5\nbatch = 7\nport = 9000\nrefresh = "touched"\n')
    monkeypatch.setenv("GRAPHERASER_SERVICE_BATCH", "8")
    monkeypatch.setenv("GRAPHERASER_SERVICE_PORT", "9001")
    monkeypatch.setenv("GRAPHERASER_SERVICE_WORKER", "none")
    found = Settings.read(file, port=9002, batch=None)
    assert (found.window, found.batch, found.port) == (5.0, 8, 9002)
    assert (found.refresh, found.worker, found.deadline_days) == ("touched", "none", 30.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": -1},
        {"batch": 0},
        {"deadline_days": 0},
        {"refresh": "some"},
        {"publish_at": "25:00"},
        {"publish_at": "2:00"},
        {"port": 70_000},
        {"worker": "yes"},
        {"retry_seconds": 0},
        {"log_level": "loud"},
        {"log_format": "xml"},
        {"access_log": "yes"},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        Settings(**wrong)


@pytest.mark.parametrize("content", ["windows = 3", "window = ", '[window]\nx = "y"'])
def test_a_file_that_can_not_be_used_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "service.toml"
    file.write_text(content)
    with pytest.raises(ParameterError):
        Settings.read(file)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("BATCH", "many"),
        ("WORKER", "yes"),
        ("WINDOW", ""),
        ("ACCESS_LOG", "yes"),
        ("LOG_LEVEL", "9"),
    ],
)
def test_a_variable_that_can_not_be_used_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(f"GRAPHERASER_SERVICE_{name}", text)
    with pytest.raises(ParameterError, match=f"(?i){name}"):
        Settings.read()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("BACTH", "did you mean GRAPHERASER_SERVICE_BATCH?"),
        ("LOG_FORMATT", "did you mean GRAPHERASER_SERVICE_LOG_FORMAT?"),
        ("PORT_8080_TCP", "enableServiceLinks: false"),
        ("ZZZ", "docs/reference/variables.md"),
        ("QQQQQQQQQQQQQQQQQQQQQQQQQQQ", "docs/reference/variables.md"),
    ],
)
def test_a_mistyped_variable_is_refused_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.setenv(f"GRAPHERASER_SERVICE_{name}", "1")
    with pytest.raises(ParameterError, match=name) as error:
        Settings.read()
    assert said in str(error.value.hint)


def test_a_mistyped_setting_of_a_file_is_refused_with_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text("windows = 3")
    with pytest.raises(ParameterError) as error:
        Settings.read(file)
    assert error.value.hint == "did you mean 'window'?"


@pytest.mark.parametrize(("text", "value"), [("true", True), ("0", False), ("False", False)])
def test_a_flag_is_read_from_a_variable(
    monkeypatch: pytest.MonkeyPatch, text: str, value: bool
) -> None:
    monkeypatch.setenv("GRAPHERASER_SERVICE_ACCESS_LOG", text)
    assert Settings.read().access_log is value


def test_every_setting_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "variables.md").read_text()
    rows = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert len(variables()) == len(fields(Settings))
    assert variables().keys() <= rows


def test_a_request_rests_twice_as_long_after_each_failure() -> None:
    settings = Settings(retry_seconds=1.0, retry_most_seconds=10.0)
    assert [settings.rest(n).total_seconds() for n in range(1, 7)] == [1, 2, 4, 8, 10, 10]
    assert settings.rest(10_000) == timedelta(seconds=10)


@pytest.mark.parametrize(
    ("last", "now", "due"),
    [
        ((15, 1, 0), (15, 1, 59), False),
        ((15, 1, 0), (15, 2, 0), True),
        ((15, 2, 0), (15, 2, 1), False),
        ((15, 23, 0), (16, 1, 0), False),
        ((15, 23, 0), (16, 2, 30), True),
        ((15, 3, 0), (16, 3, 0), True),
        ((15, 3, 0), (15, 1, 0), False),
    ],
)
def test_batches_are_carried_out_at_the_times_of_day(
    last: tuple[int, int, int], now: tuple[int, int, int], due: bool
) -> None:
    times = Settings(publish_at="02:00").times
    assert times == (time(2, 0),)
    assert is_time(times, _at(*last), _at(*now)) is due
    assert is_time((), _at(*last), _at(*now))


def _at(day: int, hour: int, minute: int) -> datetime:
    return datetime(2030, 6, day, hour, minute, tzinfo=UTC)
