"""Settings of the service: by argument, environment variable or file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime, time, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints

from grapheraser.checks import flag, one_of, real, whole
from grapheraser.eraser.change import ALL, NONE, TOUCHED
from grapheraser.errors import ParameterError
from grapheraser.service.logs import JSON, LEVELS, TEXT
from grapheraser.store import read_text

PREFIX = "GRAPHERASER_SERVICE_"
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_OWNER = "the service"
PROCESS, THREAD, NO_WORKER = "process", "thread", "none"
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Settings:
    """The settings of a service.

    Args:
        database: URL of the database; empty: SQLite in a folder beside the run.
        window: seconds for which requests are gathered before a batch is carried out.
        batch: requests in a batch at the most; so many don't wait any longer.
        deadline_days: days in which a request has to be completed, unless it says so itself.
        alert_days: days before its deadline from which an open request is alerted on.
        refresh: which shards get fresh seeds: none, touched or all.
        publish_at: times of day (UTC) at which batches are carried out, such as 02:00,14:00;
            empty: at any time. Requests that are close to their deadline don't wait.
        retry_seconds: how long a failed request rests before it is tried again; twice as long
            after each failure.
        retry_most_seconds: how long it rests at the most.
        receipt_days: days for which a receipt lies ready to be collected.
        collected_hours: hours for which it can be collected again.
        backup_days: days for which backups are kept; tombstones can be read for as long.
        poll_seconds: how often to look for requests that another process has accepted.
        host: address to listen on.
        port: to listen on.
        rate: requests per second that each API key may make on average; 0: as its role usually
            may, requesters and auditors 20, operators 200, readers 1000.
        body_bytes: size of a request's body at the most.
        header_seconds: in which a connection has to send the headers of a request.
        body_seconds: in which it has to send the body, from then on.
        connections: at the same time. Beyond them, whoever has waited for longest without a whole
            request makes room; where all are at work, only questions about health are answered.
        name: of the model in the Open Inference Protocol; empty: that of the run's folder.
        answered: how many nodes a graph may have for all posteriors to be worked out before a
            version is served, so that predictions are looked up; 0: none.
        predict_most: nodes or pairs in one prediction at the most.
        session_hours: hours after which whoever signed in to the dashboard has to do so again.
        opendsr_domain: domain under which this processor answers OpenDSR requests; empty: none.
        opendsr_certificate: PEM file with the certificate that OpenDSR answers are signed under.
        opendsr_key: PEM file with its private key.
        witness: URLs of witnesses that cosign the log, with commas between; URL#KEY also says which
            key they sign with, else it is asked for.
        witness_quorum: cosignatures with which a checkpoint counts as witnessed; 0: all.
        callback_hosts: hosts, with commas between, that callbacks may be sent to without TLS or
            in the own network.
        callback_attempts: how often a callback is tried at the most.
        callback_seconds: how long a failed callback rests before it is tried again; twice as long
            after each failure.
        worker: where requests are carried out: in a process of its own, which leaves predictions
            alone; in a thread of the server's process, which needs half the memory; or none, where
            this process only accepts and serves.
        log_level: what is logged, to stderr: debug, info, warning or error. At info there is a line
            for each request that is accepted, begun, completed, failed or cancelled.
        log_format: of a line: text or json.
        access_log: log every HTTP request, at info: its method, the template of its route, status
            and milliseconds; no path, no address, no key.
    """

    database: str = ""
    window: float = 1.0
    batch: int = 1000
    deadline_days: float = 30.0
    alert_days: float = 3.0
    refresh: str = NONE
    publish_at: str = ""
    retry_seconds: float = 1.0
    retry_most_seconds: float = 3600.0
    receipt_days: float = 30.0
    collected_hours: float = 24.0
    backup_days: float = 90.0
    poll_seconds: float = 0.5
    host: str = "127.0.0.1"
    port: int = 8080
    rate: float = 0.0
    body_bytes: int = 10_000_000
    header_seconds: float = 10.0
    body_seconds: float = 60.0
    connections: int = 500
    name: str = ""
    answered: int = 100_000
    predict_most: int = 10_000
    session_hours: float = 12.0
    opendsr_domain: str = ""
    opendsr_certificate: str = ""
    opendsr_key: str = ""
    witness: str = ""
    witness_quorum: int = 0
    callback_hosts: str = ""
    callback_attempts: int = 20
    callback_seconds: float = 10.0
    worker: str = PROCESS
    log_level: str = "info"
    log_format: str = TEXT
    access_log: bool = False

    def __post_init__(self) -> None:
        for name in ("window", "alert_days", "rate"):
            real(name, _OWNER, getattr(self, name), 0)
        lasting = ("deadline_days", "receipt_days", "collected_hours", "backup_days")
        for name in (*lasting, "session_hours"):
            real(name, _OWNER, getattr(self, name), above=0, most=36_500)
        waited = ("retry_seconds", "retry_most_seconds", "poll_seconds", "callback_seconds")
        for name in (*waited, "header_seconds", "body_seconds"):
            real(name, _OWNER, getattr(self, name), above=0)
        for name in ("predict_most", "body_bytes", "connections", "callback_attempts"):
            whole(name, _OWNER, getattr(self, name), 1)
        whole("answered", _OWNER, self.answered, 0)
        whole("witness_quorum", _OWNER, self.witness_quorum, 0, len(self.witnesses))
        whole("batch", _OWNER, self.batch, 1, 100_000)
        whole("port", _OWNER, self.port, 0, 65_535)
        one_of("refresh", _OWNER, self.refresh, (NONE, TOUCHED, ALL))
        one_of("worker", _OWNER, self.worker, (PROCESS, THREAD, NO_WORKER))
        one_of("log_level", _OWNER, self.log_level, LEVELS)
        one_of("log_format", _OWNER, self.log_format, (TEXT, JSON))
        flag("access_log", _OWNER, self.access_log)
        self.times  # noqa: B018 - refuses what is no time

    @property
    def times(self) -> tuple[time, ...]:
        """The times of day at which batches are carried out, sorted; none: at any time."""
        found = []
        for text in filter(None, (part.strip() for part in self.publish_at.split(","))):
            match = _TIME.fullmatch(text)
            if match is None:
                raise ParameterError.of("publish_at", _OWNER, "times like 02:00,14:00", text)
            found.append(time(int(match[1]), int(match[2])))
        return tuple(sorted(found))

    @property
    def witnesses(self) -> list[str]:
        """The witnesses, one by one."""
        return [one.strip() for one in self.witness.split(",") if one.strip()]

    @property
    def alert(self) -> timedelta:
        return timedelta(days=self.alert_days)

    def rest(self, attempts: int) -> timedelta:
        """Return the time that a request rests after so many failed attempts."""
        doubled = self.retry_seconds * 2.0 ** min(attempts - 1, 60)
        return timedelta(seconds=min(doubled, self.retry_most_seconds))

    @classmethod
    def read(cls, file: Path | None = None, **given: Any) -> Settings:
        """Read the settings: arguments that aren't None, the environment, a TOML file, defaults."""
        found: dict[str, Any] = {} if file is None else _from_file(file)
        found |= _from_environment()
        return cls(**(found | {name: value for name, value in given.items() if value is not None}))


def variables() -> dict[str, str]:
    """Return the environment variables, each with the name of its setting."""
    return {PREFIX + field.name.upper(): field.name for field in fields(Settings)}


def _from_file(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(read_text(file))
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{file}: not a TOML file ({error}).") from error
    known = {field.name for field in fields(Settings)}
    if odd := sorted(found.keys() - known):
        near = get_close_matches(odd[0], known, n=1)
        raise ParameterError(
            f"{file}: there is no setting {odd[0]!r}. Choose from: {', '.join(sorted(known))}.",
            hint=f"did you mean {near[0]!r}?" if near else None,
        )
    hints = get_type_hints(Settings)
    return {
        name: float(value) if hints[name] is float and type(value) is int else value
        for name, value in found.items()
    }


def _from_environment() -> dict[str, Any]:
    hints, known = get_type_hints(Settings), variables()
    found: dict[str, Any] = {}
    for variable in sorted(name for name in os.environ if name.startswith(PREFIX)):
        if variable not in known:
            raise _unknown_variable(variable, known)
        kind, text = hints[known[variable]], os.environ[variable]
        try:
            found[known[variable]] = _FLAGS[text.lower()] if kind is bool else kind(text)
        except (ValueError, KeyError):
            noun = {int: "a whole number", float: "a number", bool: "true or false"}[kind]
            raise ParameterError(f"{variable} must be {noun}. Got {text!r}.") from None
    return found


def _unknown_variable(variable: str, known: Iterable[str]) -> ParameterError:
    """Make the error for a variable that is no setting; it names the nearest that is."""
    short = [name.removeprefix(PREFIX) for name in known]  # what all share makes nothing near
    near = get_close_matches(variable.removeprefix(PREFIX), short, n=1)
    hint = (
        f"did you mean {PREFIX}{near[0]}?"
        if near
        else "docs/reference/variables.md lists all of them."
    )
    if variable.startswith((f"{PREFIX}HOST_", f"{PREFIX}PORT_")):
        hint = (
            "Kubernetes sets it for a Service named 'grapheraser': set enableServiceLinks: false."
        )
    return ParameterError(f"{variable} is set, and there is no such setting.", hint=hint)


def is_time(times: tuple[time, ...], last: datetime, now: datetime) -> bool:
    """Tell whether one of the times of day has come since ``last``, or there are none."""
    if not times or now - last >= timedelta(days=1):
        return True
    days = {last.date(), now.date()}
    return any(last < datetime.combine(day, at, now.tzinfo) <= now for day in days for at in times)
