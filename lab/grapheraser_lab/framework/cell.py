"""A cell: one measurement of the evaluation, addressed by everything that it depends on."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from grapheraser.canonical import canonical_json
from grapheraser.environment import versions
from grapheraser.registry import Registry

# Raise it when a kind's meaning changes, so that older results are not taken for new ones.
FORMAT = 3

Measure = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Kind:
    """A kind of cell.

    Attributes:
        measure: from a cell's configuration to its result, both ready for JSON.
        timed: whether the result is a duration; such cells run alone, one at a time.
        trains: whether it trains shards, which another device may do.
    """

    measure: Measure
    timed: bool = False
    trains: bool = False


KINDS: Registry[Kind] = Registry("kind of cell")


@dataclass(frozen=True)
class Cell:
    """A configuration as canonical JSON, so that equal ones are one cell.

    Attributes:
        kind: what is measured, a name in `KINDS`.
        text: the configuration.
    """

    kind: str
    text: str

    @classmethod
    def of(cls, kind: str, **config: Any) -> Cell:
        return cls(kind, canonical_json(config))

    @cached_property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = json.loads(self.text)
        return config

    @cached_property
    def digest(self) -> str:
        """SHA-256 of kind, configuration, format and the package's version."""
        parts = [FORMAT, versions()["grapheraser"], self.kind, self.text]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def timed(self) -> bool:
        return KINDS.get(self.kind).timed

    def __getitem__(self, key: str) -> Any:
        return self.config[key]

    def __str__(self) -> str:
        named = ("dataset", "model", "partition", "method", "requests", "num_shards", "seed")
        words = [str(self.config[key]) for key in named if self.config.get(key) is not None]
        return " ".join([self.kind, *words])


@dataclass(frozen=True)
class Result:
    """The measurement of a cell, and what produced it.

    Attributes:
        cell: the configuration.
        value: the measurement.
        seconds: how long it took.
        cpu_seconds: how much processor time that was.
        versions: of Python and the packages.
        hardware: processor and number of cores.
    """

    cell: Cell
    value: dict[str, Any]
    seconds: float
    cpu_seconds: float
    versions: dict[str, str]
    hardware: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.cell.kind,
            "digest": self.cell.digest,
            "config": self.cell.config,
            "result": self.value,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "versions": self.versions,
            "hardware": self.hardware,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Result:
        """Read what `to_dict` gave."""
        cell = Cell.of(data["kind"], **data["config"])
        times = data["seconds"], data["cpu_seconds"]
        return cls(cell, data["result"], *times, data["versions"], data["hardware"])


class Results:
    """The results at hand, by cell."""

    def __init__(self, results: Mapping[str, Result] | None = None) -> None:
        self._by_digest = dict(results or {})

    def add(self, result: Result) -> None:
        self._by_digest[result.cell.digest] = result

    def __contains__(self, cell: Cell) -> bool:
        return cell.digest in self._by_digest

    def get(self, cell: Cell) -> Result | None:
        return self._by_digest.get(cell.digest)

    def value(self, cell: Cell) -> dict[str, Any] | None:
        """The measurement; None where the cell failed or was not run."""
        result = self.get(cell)
        return None if result is None else result.value

    def by_run(self, cells: Iterable[Cell]) -> dict[int, dict[str, Any]]:
        """The measurements that there are of some cells, by their seeds."""
        known = {int(cell["seed"]): self.value(cell) for cell in cells}
        return {run: value for run, value in known.items() if value is not None}


def hardware() -> dict[str, Any]:
    """The processor that this process runs on."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("model name")]
        name = lines[0].split(":", 1)[1].strip() if lines else name
    except OSError:
        pass
    return {"processor": name, "cores": os.cpu_count()}
