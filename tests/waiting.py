"""Wait for what comes about by itself, in another thread or process."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(reached: Callable[[], object], seconds: float = 300.0) -> None:
    """Return once something is true; fail if that takes too long."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.02)
