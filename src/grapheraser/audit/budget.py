"""A budget of time that loops can ask."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Budget:
    """Seconds that may be spent; ``None`` is no limit."""

    seconds: float | None = None  # how many
    clock: Callable[[], float] = time.monotonic  # what tells the time
    started: float = field(default=float("nan"))  # when it began

    def __post_init__(self) -> None:
        if self.started != self.started:
            object.__setattr__(self, "started", self.clock())

    @property
    def spent(self) -> float:
        """Seconds since it began."""
        return self.clock() - self.started

    @property
    def left(self) -> float:
        """Seconds that remain."""
        return float("inf") if self.seconds is None else self.seconds - self.spent

    def share(self, part: float) -> Budget:
        """Return a budget of that part of what is left."""
        seconds = None if self.seconds is None else max(self.left, 0.0) * part
        return Budget(seconds, self.clock)

    def rounds(self, most: int, *, least: int = 1) -> Iterator[int]:
        """Count up to ``most``, as long as the next round would fit; at least to ``least``."""
        for number in range(most):
            mean = self.spent / number if number else 0.0
            if number >= least and self.left < mean:
                return
            yield number


UNLIMITED = Budget()
